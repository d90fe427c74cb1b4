#!/usr/bin/env bash
# An MCP server of PyPI that is pinned to its exact version stops starting when its SDK has a new major version.
#
# Expected: mcp-server-sqlite 2025.4.25, pinned with ==, goes on working as on the day of its release.
# What really happens: it requires "mcp>=1.6.0" without an upper bound. pip installs the SDK 2, whose class Server has no
# method list_resources, so the server ends with an AttributeError before it reads its first message. With "mcp<2" beside
# it the same version of the server works.
# Versions: mcp-server-sqlite 2025.4.25, with mcp 2.3.0 and with mcp 1.30.0; Python 3.11.
# Why it matters: hosts start servers with "uvx NAME==VERSION" or pip, and such a pin holds the server but not its SDK. All
# that the host sees is a process that ends at its start. Pin the SDK, too, or use a file of locked versions.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"finding","version":"1"}}}'
try() { # installs the server with this version of the SDK, and sends it the first message of a session
	python3 -m pip install --quiet --disable-pip-version-check --target "$1" mcp-server-sqlite==2025.4.25 "mcp==$1"
	{ echo "$hello"; sleep 5; } | PYTHONPATH=$dir/$1 timeout 60 python3 "$1/bin/mcp-server-sqlite" --db-path "$dir/$1.db" >"$1.out" 2>"$1.err" || true
	echo "mcp $1: answers: $(grep -c '"serverInfo"' "$1.out" || true), last line of stderr: $(grep -o "^AttributeError.*" "$1.err" || echo none)"
}

{
	try 2.3.0
	try 1.30.0
	grep -h "^Requires-Dist: mcp" 2.3.0/mcp_server_sqlite-*.dist-info/METADATA
} | tee seen
diff seen - <<'SEEN'
mcp 2.3.0: answers: 0, last line of stderr: AttributeError: 'Server' object has no attribute 'list_resources'
mcp 1.30.0: answers: 1, last line of stderr: none
Requires-Dist: mcp[cli]>=1.6.0
SEEN
echo "as stated"
