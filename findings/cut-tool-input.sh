#!/usr/bin/env bash
# A tool input that max_tokens cuts in the middle of a number has a wrong number with Anthropic's SDK for Python, and no
# number with the one for TypeScript. Neither raises an error.
#
# Expected: the same stream gives the same final message in both, or an error, since the JSON of the input has no end.
# What really happens: both complete what has come of the input, and drop a text that is cut. A number that is cut is dropped
# by TypeScript and kept by Python, as if it were whole: of {"keep": "a.txt", "count": 1250} cut after 12, a Python host gets
# a count of 12, which is a fine input for every schema.
# Versions: anthropic 2.14.0 (PyPI), @anthropic-ai/sdk 1.14.0 (npm); Node 20, Python 3.11.
# Why it matters: a host that runs the tools of the final message without looking at stop_reason runs a call that the model
# has not made, and a schema does not find it. Do not run the last call of a message whose stop_reason is max_tokens.
set -euo pipefail
dir=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check anthropic==2.14.0
npm install --silent --no-audit --no-fund --ignore-scripts @anthropic-ai/sdk@1.14.0

# The stream of a message with one tool call, whose input is the text of the first message of the request.
cat >server.py <<'PYTHON'
import http.server, json

class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
                   "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        block = {"type": "tool_use", "id": "toolu_1", "name": "prune", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": request["messages"][0]["content"]}
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": None}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON

cat >client.py <<'PYTHON'
import json, sys
import anthropic

client = anthropic.Anthropic(api_key="k", base_url=sys.argv[1], max_retries=0)
for cut in sys.argv[2:]:
    asked = [{"role": "user", "content": cut}]
    with client.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
        message = stream.get_final_message()
    print("Python:", cut, "is", json.dumps(message.content[0].input), message.stop_reason)
PYTHON

cat >client.mjs <<'NODE'
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ apiKey: "k", baseURL: process.argv[2], maxRetries: 0 });
for (const cut of process.argv.slice(3)) {
  const asked = [{ role: "user", content: cut }];
  const message = await client.messages.stream({ model: "m", max_tokens: 9, messages: asked }).finalMessage();
  console.log("TypeScript:", cut, "is", JSON.stringify(message.content[0].input), message.stop_reason);
}
NODE

python3 server.py >port &
server=$!
until [ -s port ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat port)
cuts=('{"keep": "a.txt", "count": 12' '{"keep": ["a.txt"], "days": [1, 2' '{"count": 12, "keep": "a.t')
{
	python/bin/python client.py "$url" "${cuts[@]}"
	node client.mjs "$url" "${cuts[@]}"
} | tee seen
diff seen - <<'SEEN'
Python: {"keep": "a.txt", "count": 12 is {"keep": "a.txt", "count": 12} max_tokens
Python: {"keep": ["a.txt"], "days": [1, 2 is {"keep": ["a.txt"], "days": [1, 2]} max_tokens
Python: {"count": 12, "keep": "a.t is {"count": 12} max_tokens
TypeScript: {"keep": "a.txt", "count": 12 is {"keep":"a.txt"} max_tokens
TypeScript: {"keep": ["a.txt"], "days": [1, 2 is {"keep":["a.txt"],"days":[1]} max_tokens
TypeScript: {"count": 12, "keep": "a.t is {"count":12} max_tokens
SEEN
echo "as stated"
