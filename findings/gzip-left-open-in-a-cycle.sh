#!/usr/bin/env bash
# A gzip file that a script leaves open inside of a reference cycle is cut off at exit with CPython 3.14, and not before.
#
# Expected: as up to CPython 3.13, a GzipFile that nobody has closed is finished when the interpreter ends: a file of 28 bytes
# that gzip -t accepts.
# What really happens: with CPython 3.14.6, GzipFile.__del__ imports a module to warn about the open file. In a cycle it runs so
# late that nothing can be imported any more, so it ends with an ImportError before the file is closed. Only the 14 bytes of the
# header and of an empty start are there. Two messages on stderr begin with "Exception ignored"; the exit status is 0.
# Versions: CPython 3.14.6 (the portable build in the Go module github.com/kluctl/go-embed-python v0.0.0-3.14.6-20260610-1)
# beside 3.11.11 (the same module, v0.0.0-3.11.11-20241219-1).
# Why it matters: a server that runs other people's scripts and collects their files sees an exit status of 0 and a broken file.
# It has to close what the script has left open while imports still work, or to say that the file is not complete.
set -euo pipefail
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "this needs Linux on x86-64" >&2; exit 1; }
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
import gzip

class Report: pass

report = Report()
report.me = report
report.file = gzip.GzipFile("out.gz", "wb", mtime=0)
report.file.write(b"data")
PY

for version in v0.0.0-3.11.11-20241219-1 v0.0.0-3.14.6-20260610-1; do
	module=$(GOFLAGS=-modcacherw GOMODCACHE=$dir/modules go mod download -json "github.com/kluctl/go-embed-python@$version" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')
	python3 unpack.py "$module/python/internal/data/linux-amd64" "$dir/$version"
	rm -f out.gz
	"$version/bin/python3" script.py 2>said
	whole=broken
	gzip -t out.gz 2>/dev/null && whole=whole
	echo "$("$version/bin/python3" -V): $(stat -c %s out.gz) bytes, $whole, $(grep -c "^Exception ignored" said || true) messages"
done | tee seen
diff seen - <<'SEEN'
Python 3.11.11: 28 bytes, whole, 0 messages
Python 3.14.6: 14 bytes, broken, 2 messages
SEEN
echo "as stated"
