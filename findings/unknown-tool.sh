#!/usr/bin/env bash
# One mistake, the name of a tool that does not exist, is a protocol error for some SDKs and a result for others.
#
# Expected: the specification of MCP names unknown tools as the example of a protocol error: an answer with "error" and the
# code -32602. Results with isError are for failures of a tool that ran.
# What really happens: a server with the Python SDK 2.3.0 answers so. A server with the TypeScript SDK 1.32.2 answers with a
# result that has isError, and the text "MCP error -32602: ..." inside of it, so the code is there only for readers. A server
# with the Python SDK 1.30.0 answers with a result, too, whose text has no code at all.
# Versions: @modelcontextprotocol/server-memory 2026.8.31 (SDK 1.32.2), mcp-server-time 2026.10.19 (mcp 2.3.0),
# mcp-server-calculator 0.2.1 (mcp 1.30.0); Node 20, Python 3.11.
# Why it matters: a host that tells "the call was wrong" from "the tool has failed" by the kind of the answer, such as to
# decide if a call may be repeated or has cost anything, is wrong for most servers. Compare the name with the list of tools
# before the call.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --silent --no-audit --no-fund --ignore-scripts --prefix node \
	@modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/sdk@1.32.2
python3 -m pip install --quiet --disable-pip-version-check --target new mcp-server-time==2026.10.19 mcp==2.3.0
python3 -m pip install --quiet --disable-pip-version-check --target old mcp-server-calculator==0.2.1 mcp==1.30.0

call() { # calls a tool that no server has, and prints the answer
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"finding","version":"1"}}}'
		sleep 5
		echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
		echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"no_such_tool","arguments":{}}}'
		sleep 3
	} | timeout 60 "$@" 2>/dev/null | python3 -c '
import json, sys
for line in sys.stdin:
    answer = json.loads(line)
    if answer.get("id") == 2:
        if "error" in answer:
            print("error", answer["error"]["code"], answer["error"]["message"])
        else:
            print("result, isError", answer["result"].get("isError"), answer["result"]["content"][0]["text"])'
}

{
	echo "TypeScript 1.32.2: $(call env MEMORY_FILE_PATH="$dir/memory.json" node/node_modules/.bin/mcp-server-memory)"
	echo "Python 2.3.0: $(call env PYTHONPATH="$dir/new" python3 new/bin/mcp-server-time)"
	echo "Python 1.30.0: $(call env PYTHONPATH="$dir/old" python3 old/bin/mcp-server-calculator)"
} | tee seen
diff seen - <<'SEEN'
TypeScript 1.32.2: result, isError True MCP error -32602: Tool no_such_tool not found
Python 2.3.0: error -32602 Unknown tool: no_such_tool
Python 1.30.0: result, isError True Unknown tool: no_such_tool
SEEN
echo "as stated"
