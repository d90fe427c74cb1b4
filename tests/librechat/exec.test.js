// LibreChat's own client, unmodified, against a running server: shell scripts that call
// tools, and programs without tools.
//
// The environment is that of client.test.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  createBashExecutionTool,
  createBashProgrammaticToolCallingTool,
  createCodeExecutionTool,
  createProgrammaticToolCallingTool,
} from '@librechat/agents';
import { tool } from '@librechat/agents/langchain/tools';

const { FERMATA_URL: baseUrl, FERMATA_KEY: key, FERMATA_ERRORS: errors = 'http' } = process.env;
assert.ok(baseUrl && key, 'set FERMATA_URL and FERMATA_KEY');
const inline = errors === 'inline';
const server = { baseUrl, authHeaders: { Authorization: `Bearer ${key}` } };

/** Runs a script with tools as LibreChat does. Returns the message and how often each tool ran. */
async function script(code, functions = {}, args = {}) {
  const ran = {};
  const toolMap = new Map();
  const toolDefs = [];
  for (const [name, run] of Object.entries(functions)) {
    const definition = { name, description: `Test tool ${name}.`, schema: { type: 'object', properties: {} } };
    ran[name] = 0;
    toolMap.set(name, tool((input) => {
      ran[name] += 1;
      return run(input);
    }, definition));
    toolDefs.push({ name, description: definition.description, parameters: definition.schema });
  }
  const client = createBashProgrammaticToolCallingTool(server);
  const call = { name: 'run_tools_with_bash', id: 'toolu_1', type: 'tool_call', args: { code, ...args }, toolMap, toolDefs };
  const [message, error] = await client.invoke(call).then((m) => [m], (e) => [undefined, e.message]);
  return { content: message?.content, artifact: message?.artifact, error, ran };
}

/** Calls one of the executors as LibreChat does. */
async function execute(create, args, params = {}) {
  const message = await create({ ...server, ...params }).invoke({ name: 'run', id: 'toolu_1', type: 'tool_call', args });
  assert.match(message.artifact.session_id, /^[A-Za-z0-9_-]{21}$/);
  return message.content;
}

test('a script with several rounds and parallel calls', async () => {
  const { content, ran } = await script(
    `for city in $(list_cities | jq -r '.[]'); do
    { x=$(get_weather "{\\"city\\":\\"$city\\"}"); printf '%s\\n' "$x" > /mnt/data/$city.json; } &
done
wait
cat /mnt/data/*.json | jq -s 'map(.degrees) | add'
save_report '{"text":"Ça va ☀"}' | jq -r .`,
    {
      'list-cities': () => ['Paris', 'Rome', 'Oslo'],
      get_weather: ({ city }) => ({ city, degrees: city.length }),
      'save.report': ({ text }) => `saved ${text.length} characters`,
    },
  );
  assert.equal(content, 'stdout:\n13\nsaved 7 characters');
  assert.deepEqual(ran, { 'list-cities': 1, get_weather: 3, 'save.report': 1 });
});

test('a script under the strictest options', async () => {
  const { content } = await script('set -euo pipefail\nx=$(get)\necho "$x"', { get: () => ({ a: [1, null, 'ü'] }) });
  assert.equal(content, 'stdout:\n{"a":[1,null,"ü"]}');
});

test('a failing tool that a script catches', async () => {
  const { content, ran } = await script('x=$(lookup 2>/dev/null) || echo "caught $x"', {
    lookup: () => {
      throw new Error('no row 2');
    },
  });
  assert.equal(content, 'stdout:\ncaught {"error":"no row 2"}');
  assert.deepEqual(ran, { lookup: 1 });
});

test('a failing tool that a script does not catch', async () => {
  const { error } = await script('set -e\nlookup >/dev/null\necho after', {
    lookup: () => {
      throw new Error('the database is away');
    },
  });
  assert.match(error, /Code execution failed\. Execution exited with code 1\n\nStderr:\nthe database is away/);
});

test('a script that exits', async () => {
  const { error } = await script('noop >/dev/null; nosuch', { noop: () => 1 });
  assert.match(error, /Execution exited with code 127\n\nStderr:\n.*nosuch: command not found/);
});

test('a script that takes too long', async () => {
  const { error, ran } = await script('noop; sleep 100', { noop: () => 1 }, { timeout: 1000 });
  assert.ok(error.includes(inline ? 'Execution exceeded the time limit.' : 'Code execution is temporarily unavailable.'), error);
  assert.deepEqual(ran, { noop: 1 });
});

test('25 calls in a row exceed the round limit', async () => {
  const { error, ran } = await script('for n in {1..25}; do noop; done', { noop: () => 1 });
  assert.ok(error.includes(inline ? 'Code execution failed.' : 'was rejected.'), error);
  assert.deepEqual(ran, { noop: 20 });
});

test('a script that needs no tool', async () => {
  const { content } = await script('echo "$((6 * 7))"', {}, { tool_manifest: [] });
  assert.equal(content, 'stdout:\n42');
});

test('a program that needs no tool', async () => {
  const message = await createProgrammaticToolCallingTool(server).invoke({
    name: 'run_tools_with_code', id: 'toolu_1', type: 'tool_call', toolMap: new Map(), toolDefs: [],
    args: { code: 'import math\nprint(math.prod([6, 7]))\nawait asyncio.sleep(0)\nprint(f"""a\nb""")', tool_manifest: [] },
  });
  assert.match(message.content, /^stdout:\n42\na\n\s*b$/);
});

test('the code executor', async () => {
  const run = (lang, code, args = []) => execute(createCodeExecutionTool, { lang, code, args });
  assert.equal(await run('py', 'import sys\nprint("ü", sys.argv[1:])', ['a b', 'c']), "stdout:\nü ['a b', 'c']");
  assert.equal(await run('bash', 'echo "$# $1"', ['a b', 'c']), 'stdout:\n2 a b');
  assert.match(await run('py', 'print(1)\n1 / 0'), /^stdout:\n1\n\nstderr:\nTraceback [^]*ZeroDivisionError: division by zero$/);
  await assert.rejects(run('rs', 'fn main() {}'), /was rejected/);
});

test('the bash executor', async () => {
  const run = (command, args = []) => execute(createBashExecutionTool, { command, args });
  assert.equal(await run('echo "$1"', ["it's"]), "stdout:\nit's");
  assert.match(await run('cat missing'), /stderr:\ncat: missing: No such file or directory$/);
  assert.match(await run('kill -9 $$'), /stderr:\n\[sandbox\] Killed by SIGKILL$/);
});

test('another profile is refused for good', async () => {
  const refused = /This is a permanent capability mismatch\. Do not retry/;
  await assert.rejects(execute(createBashExecutionTool, { command: 'echo 1' }, { executionProfile: 'stateful' }), refused);
  await assert.rejects(execute(createCodeExecutionTool, { lang: 'py', code: '1' }, { executionProfile: 'stateful' }), refused);
  assert.equal(await execute(createBashExecutionTool, { command: 'echo 1' }, { executionProfile: 'default' }), 'stdout:\n1');
});

test('an attached workspace is refused for good', async () => {
  const params = { workspaceId: 'w1', workspaceInstanceId: 'a'.repeat(64) };
  await assert.rejects(execute(createBashExecutionTool, { command: 'echo 1' }, params), /permanent capability mismatch/);
});
