// The client of the official SDK for TypeScript against a server, in its two generations: version 1 with
// its sessions (FERMATA_CLIENT=1), and version 2 (FERMATA_CLIENT=2). client_test.go runs it.
import assert from "node:assert/strict";
import { test } from "node:test";

const version = process.env.FERMATA_CLIENT;
const { Client } = await import(version === "1" ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = await import(
  version === "1" ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client"
);

const elicitation = version === "1" ? (await import("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema : "elicitation/create";

// connected calls use with a client of /mcp, and closes it. answer, if it is given, is called in place of a
// person who is asked.
async function connected(use, answer) {
  const options = version === "1" ? {} : { versionNegotiation: { mode: "auto" } };
  const client = new Client({ name: "test", version: "1" }, { ...options, capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler(elicitation, answer);
  const headers = { Authorization: `Bearer ${process.env.FERMATA_KEY}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.FERMATA_URL}/mcp`), { requestInit: { headers } }));
  try {
    await use(client);
  } finally {
    await client.close();
  }
}

// run calls run_program.
function run(client, args, options) {
  const params = { name: "run_program", arguments: args };
  return version === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

test("the tools are listed", () =>
  connected(async (client) => {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((t) => t.name).sort(), ["list_files", "read_file", "run_program", "search_tools", "wait_for_program"]);
  }));

test("a program runs, and its file is read", () =>
  connected(async (client) => {
    const { structuredContent: done } = await run(client, { code: "open('a.txt', 'w').write('of the file')\nprint('out')\n[1, 2]" });
    assert.equal(done.status, "completed");
    assert.equal(done.stdout, "out\n");
    assert.deepEqual(done.value, [1, 2]);
    const file = await client.callTool({ name: "read_file", arguments: { session: done.session, path: "a.txt" } });
    assert.equal(file.structuredContent.text, "of the file");
  }));

test("a mistake is told", () =>
  connected(async (client) => {
    const refused = await run(client, { code: "1", language: "ruby" });
    assert.equal(refused.isError, true);
    assert.match(refused.content[0].text, /language must be python or bash/);
  }));

test("progress is told, and cancelling cancels", () =>
  connected(async (client) => {
    const stop = new AbortController();
    const told = [];
    const answer = run(client, { code: "import time\nprint('begun', flush=True)\ntime.sleep(120)", timeout: 150000 }, {
      signal: stop.signal,
      onprogress: (p) => {
        told.push(p.message);
        if (/begun/.test(p.message)) stop.abort();
      },
    });
    await assert.rejects(answer);
    assert.ok(told.some((message) => /begun/.test(message)), `told: ${told}`);
    const headers = { Authorization: `Bearer ${process.env.FERMATA_KEY}` };
    for (let left = 50; ; left--) {
      const page = await (await fetch(`${process.env.FERMATA_URL}/executions?limit=1`, { headers })).json();
      if (page.data[0].status === "cancelled") break;
      assert.ok(left > 0, `the program is ${page.data[0].status}`);
      await new Promise((done) => setTimeout(done, 200));
    }
  }));

for (const approve of [true, false]) {
  test(`a person ${approve ? "approves" : "refuses"} a call`, () => {
    const asked = [];
    return connected(
      async (client) => {
        const { structuredContent: done } = await run(client, { code: "from fermata_tools.shop import Shop\nShop.pay(amount=3)", toolsets: ["shop.pay"] });
        assert.equal(asked.length, 1);
        assert.match(asked[0], /shop\.pay with this input:\n\{"amount":3\}/);
        assert.equal(done.status, approve ? "completed" : "error");
        if (!approve) assert.match(done.error, /refused: as I like/);
      },
      async (request) => {
        asked.push(request.params.message);
        return { action: "accept", content: { approve, reason: "as I like" } };
      },
    );
  });
}
