#!/usr/bin/env bash
# In early releases of CPython 3.11, asyncio.run makes the text of what the main coroutine returns, twice, and drops both.
#
# Expected: asyncio.run(main()) returns the result of main. It calls no method of the result.
# What really happens: with CPython 3.11.2 of Debian 12 the __repr__ of the result is called two times. asyncio.run sets a
# handler for SIGINT, a functools.partial with the task of main. When main has returned, it asks for the handler by
# signal.getsignal, and sets the old one by signal.signal. Both look the handler up in an enumeration, and the error of
# that look-up, which the signal module drops, has the text of the handler, of its task, and so of the task's result. With
# CPython 3.11.11 it is not called: there, what is no number is not looked up.
# Versions: python3.11-minimal, libpython3.11-minimal and libpython3.11-stdlib 3.11.2-6+deb12u8 of Debian 12, beside CPython
# 3.11.11 (the portable build in the Go module github.com/kluctl/go-embed-python v0.0.0-3.11.11-20241219-1).
# Why it matters: a coroutine that returns a large table pays for its text twice, and a result whose __repr__ has side
# effects, such as a lazy query, runs it. It does not happen if SIGINT has another handler than Python's own.
set -euo pipefail
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "this needs Linux on x86-64" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "this needs the packages of Debian 12" >&2; exit 1; }
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"

cat >unpack.py <<'PY'
import gzip, json, pathlib, sys

packed, target = map(pathlib.Path, sys.argv[1:])
for file in json.loads((packed / "files.json").read_text())["files"]:
    source, place = packed / file["name"], target / file["name"]
    if file["perm"] & 1 << 31:
        place.mkdir(parents=True)
    elif file["perm"] & 1 << 27:
        place.symlink_to(file["symlink"])
    else:
        whole = gzip.decompress((source.parent / (source.name + ".gz")).read_bytes()) if file.get("compressed") else source.read_bytes()
        place.write_bytes(whole)
        place.chmod(file["perm"] & 0o777)
PY
cat >script.py <<'PY'
import asyncio, platform, signal

class Table:
    shown = 0

    def __repr__(self):
        Table.shown += 1
        return "a table"

async def main():
    return Table()

asyncio.run(main())
first, Table.shown = Table.shown, 0
signal.signal(signal.SIGINT, signal.SIG_IGN)
asyncio.run(main())
print(f"Python {platform.python_version()}: shown {first} times; {Table.shown} times with another handler")
PY

debian=3.11.2-6+deb12u8
apt-get -q download "python3.11-minimal=$debian" "libpython3.11-minimal=$debian" "libpython3.11-stdlib=$debian" >apt.log 2>&1 ||
	{ cat apt.log >&2; exit 1; }
for package in *.deb; do dpkg -x "$package" debian; done
module=$(GOFLAGS=-modcacherw GOMODCACHE=$dir/modules go mod download -json github.com/kluctl/go-embed-python@v0.0.0-3.11.11-20241219-1 |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
python3 unpack.py "$module/python/internal/data/linux-amd64" "$dir/portable"

{
	PYTHONHOME=$dir/debian/usr debian/usr/bin/python3.11 script.py
	portable/bin/python3 script.py
} | tee seen
diff seen - <<'SEEN'
Python 3.11.2: shown 2 times; 0 times with another handler
Python 3.11.11: shown 0 times; 0 times with another handler
SEEN
echo "as stated"
