#!/usr/bin/env bash
# The input schema that a server publishes is neither the least nor the most that it accepts.
#
# Expected: the inputSchema of sequentialthinking says what the tool takes: nextThoughtNeeded is a boolean or any string, and
# totalThoughts is an integer.
# What really happens: the server refuses nextThoughtNeeded "no", which its schema allows (only "true" and "false" are taken),
# and takes totalThoughts "3", which its schema forbids, and returns it as the number 3. The schema is derived from a check
# that converts values, and such a conversion has no form in JSON Schema.
# Versions: @modelcontextprotocol/server-sequential-thinking 2026.8.31 with @modelcontextprotocol/sdk 1.32.2 and zod 4.6.7;
# Node 20.
# Why it matters: a host that checks inputs against the schema refuses calls that the server would answer, and a model that
# reads the schema sends calls that the server refuses. Show the server's own error to the model in any case, and let
# operators switch the host's check off.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --silent --no-audit --no-fund --ignore-scripts --prefix . \
	@modelcontextprotocol/server-sequential-thinking@2026.8.31 @modelcontextprotocol/sdk@1.32.2 zod@4.6.7

call='"method":"tools/call","params":{"name":"sequentialthinking","arguments":{"thought":"a","thoughtNumber":1'
{
	echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"finding","version":"1"}}}'
	sleep 3
	echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
	echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
	echo '{"jsonrpc":"2.0","id":3,'"$call"',"totalThoughts":3,"nextThoughtNeeded":"no"}}}'
	echo '{"jsonrpc":"2.0","id":4,'"$call"',"totalThoughts":"3","nextThoughtNeeded":false}}}'
	sleep 3
} | timeout 60 node_modules/.bin/mcp-server-sequential-thinking 2>/dev/null | python3 -c '
import json, sys
answers = {m.get("id"): m.get("result") for m in map(json.loads, sys.stdin)}
properties = answers[2]["tools"][0]["inputSchema"]["properties"]
for name in ("nextThoughtNeeded", "totalThoughts"):
    print("schema of", name, json.dumps({k: v for k, v in properties[name].items() if k in ("type", "enum")}))
for number, what in ((3, "nextThoughtNeeded \"no\":"), (4, "totalThoughts \"3\":")):
    print(what, "refused" if answers[number].get("isError") else "taken, with totalThoughts " + json.dumps(answers[number]["structuredContent"]["totalThoughts"]))
' | tee seen
diff seen - <<'SEEN'
schema of nextThoughtNeeded {"type": ["boolean", "string"]}
schema of totalThoughts {"type": "integer"}
nextThoughtNeeded "no": refused
totalThoughts "3": taken, with totalThoughts 3
SEEN
echo "as stated"
