#!/usr/bin/env bash
# A tool of an MCP server that returns NaN works, and its caller is told that the server has broken its own schema.
#
# Expected: a function that is declared to return a float may return NaN or infinity, as Python's float may; the answer says so
# somehow, or the tool fails with an error of its own.
# What really happens: the server derives an output schema with the type "number" and sends null in structuredContent, with
# isError false and the text "NaN" beside it. Clients check the one against the other: the Python SDK raises RuntimeError,
# the TypeScript SDK McpError -32602. The tool has run, its result is lost, and the error looks like one of the protocol.
# Versions: mcp 2.3.0 (PyPI) as server and client, @modelcontextprotocol/sdk 1.32.2 (npm) as client; Node 20, Python 3.11.
# Why it matters: means of empty columns are NaN. A host that repeats calls after errors of the protocol repeats one that has
# taken effect, and authors of servers must declare `float | None`, or replace NaN, to be heard at all.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2

cat >server.py <<'PYTHON'
from mcp.server.mcpserver import MCPServer

server = MCPServer("means")


@server.tool()
def mean(values: list[float]) -> float:
    """The mean of some values."""
    with open("ran", "a") as file:
        file.write("ran\n")
    return sum(values) / len(values) if values else float("nan")


server.run()
PYTHON

cat >client.py <<'PYTHON'
import asyncio

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    async with stdio_client(StdioServerParameters(command="python/bin/python", args=["server.py"])) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            for values in ([1.0, 2.0], []):
                try:
                    answer = await session.call_tool("mean", {"values": values})
                    print("Python:", values, answer.structured_content)
                except Exception as error:
                    print("Python:", values, type(error).__name__, str(error).splitlines()[0])


asyncio.run(main())
PYTHON

cat >client.mjs <<'NODE'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "finding", version: "1" });
await client.connect(new StdioClientTransport({ command: "python/bin/python", args: ["server.py"], stderr: "ignore" }));
await client.listTools();
for (const values of [[1, 2], []]) {
  try {
    const answer = await client.callTool({ name: "mean", arguments: { values } });
    console.log("TypeScript:", JSON.stringify(values), JSON.stringify(answer.structuredContent));
  } catch (error) {
    console.log("TypeScript:", JSON.stringify(values), error.constructor.name, error.message);
  }
}
await client.close();
NODE

raw() { # prints the answer itself
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"finding","version":"1"}}}'
		sleep 5
		echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
		echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mean","arguments":{"values":[]}}}'
		sleep 3
	} | timeout 60 python/bin/python server.py 2>/dev/null | python3 -c '
import json, sys
for line in sys.stdin:
    if (answer := json.loads(line)).get("id") == 2:
        result = answer["result"]
        print("on the wire:", result["content"][0]["text"], json.dumps(result["structuredContent"]), result["isError"])'
}

{
	raw
	python/bin/python client.py 2>/dev/null
	node client.mjs
	echo "the tool ran $(wc -l <ran) times"
} | tee seen
diff seen - <<'SEEN'
on the wire: NaN {"result": null} False
Python: [1.0, 2.0] {'result': 1.5}
Python: [] RuntimeError Invalid structured content returned by tool mean: None is not of type 'number'
TypeScript: [1,2] {"result":1.5}
TypeScript: [] McpError MCP error -32602: Structured content does not match the tool's output schema: data/result must be number
the tool ran 5 times
SEEN
echo "as stated"
