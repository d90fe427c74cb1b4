// Runs Python programs with tools through LibreChat's own, unmodified client, and checks what the
// model would see and how often each tool was called.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createProgrammaticToolCallingTool } from '@librechat/agents';

import { failureOf, inFlight, inline, listen, rejected, runner, tools } from './host.js';

const run = runner(createProgrammaticToolCallingTool, 'run_tools_with_code');
const failed = 'Programmatic execution failed: ';

const invoke = (code, host, { timeout, ...options } = {}) =>
  run(timeout === undefined ? { code } : { code, timeout }, host, options);
const failure = (...args) => failureOf(invoke(...args));

const noop = { noop: () => 'unused' };

test('several rounds, with parallel calls', async () => {
  const host = tools({
    'list-cities': () => ['Paris', 'Rome', 'Oslo'],
    get_weather: ({ city }) => ({ city, degrees: city.length }),
    'save report': ({ text }) => `saved ${text.length} characters`,
  });
  const message = await invoke(
    `cities = await list_cities()
reports = await asyncio.gather(*(get_weather(city=city) for city in cities))
total = sum(report["degrees"] for report in reports)
print([report["city"] for report in reports], total)
print(await save_report(text="Ça va ☀"))`,
    host,
  );
  assert.equal(message.content, "stdout:\n['Paris', 'Rome', 'Oslo'] 13\nsaved 7 characters");
  assert.deepEqual(host.ran, { 'list-cities': 1, get_weather: 3, 'save report': 1 });
  assert.match(message.artifact.session_id, /^[A-Za-z0-9_-]{21}$/);
  assert.deepEqual(message.artifact.files, []);
});

test('a hundred parallel calls are one round', async () => {
  const host = tools({ square: ({ n }) => n * n });
  const message = await invoke('print(sum(await asyncio.gather(*(square(n=n) for n in range(100)))))', host);
  assert.equal(message.content, 'stdout:\n328350');
  assert.deepEqual(host.ran, { square: 100 });
});

test('a failing tool that the program catches', async () => {
  const host = tools({
    lookup: ({ id }) => {
      if (id === 2) {
        throw new Error('no row 2');
      }
      return { id };
    },
  });
  const message = await invoke(
    `for id in (1, 2, 3):
    try:
        print(await lookup(id=id))
    except RuntimeError as error:
        print("caught", type(error).__name__, error)`,
    host,
  );
  assert.equal(message.content, "stdout:\n{'id': 1}\ncaught ToolExecutionError no row 2\n{'id': 3}");
  assert.deepEqual(host.ran, { lookup: 3 });
});

test('a failing tool that the program does not catch', async () => {
  const host = tools({
    lookup: () => {
      throw new Error('the database is away');
    },
  });
  const seen = await failure('print("before")\nawait lookup()\nprint("after")', host);
  assert.ok(seen.startsWith(`${failed}Code execution failed.\n\nStderr:\nTraceback (most recent call last):\n`), seen);
  assert.match(seen, /, line 2\b/);
  assert.match(seen, /ToolExecutionError: the database is away\s*$/);
  assert.deepEqual(host.ran, { lookup: 1 });
});

test('a tool that the host does not know', async () => {
  const host = tools({ known: () => 1 });
  host.toolDefs.push({ name: 'unknown', parameters: { type: 'object', properties: {} } });
  const seen = await failure('await unknown()', host);
  assert.match(seen, /ToolExecutionError: Tool 'unknown' not found\. Available tools: known\s*$/);
  assert.deepEqual(host.ran, { known: 0 });
});

test('twenty sequential calls are allowed', async () => {
  const host = tools({ step: ({ n }) => n + 1 });
  const message = await invoke('n = 0\nwhile n < 20:\n    n = await step(n=n)\nprint(n)', host);
  assert.equal(message.content, 'stdout:\n20');
  assert.deepEqual(host.ran, { step: 20 });
});

test('25 sequential calls exceed the round limit', async () => {
  const host = tools({ step: ({ n }) => n + 1 });
  const seen = await failure('n = 0\nwhile n < 25:\n    n = await step(n=n)\nprint(n)', host);
  assert.ok(seen.startsWith(failed + (inline ? 'Code execution failed.' : rejected)), seen);
  assert.deepEqual(host.ran, { step: 20 });
});

test('a program that takes too long', async () => {
  const host = tools({ step: () => 1 });
  const seen = await failure('await step()\nprint("working", flush=True)\nwhile True:\n    pass', host, { timeout: 1000 });
  const want = inline
    ? 'Code execution failed. Execution exceeded the time limit.'
    : 'Code execution is temporarily unavailable. Please retry.';
  assert.ok(seen.startsWith(failed + want), seen);
  assert.deepEqual(host.ran, { step: 1 });
});

test('a syntax error', async () => {
  const host = tools(noop);
  const seen = await failure('print("fine")\nif True print("broken")', host);
  assert.ok(seen.startsWith(`${failed}Code execution failed.\n\nStderr:\n`), seen);
  assert.match(seen, /, line 2\n {4}if True print\("broken"\)\n/);
  assert.match(seen, /SyntaxError: /);
  assert.deepEqual(host.ran, { noop: 0 });
});

test('a program that exits', async () => {
  const seen = await failure('import sys\nsys.exit(3)', tools(noop));
  assert.ok(seen.startsWith(`${failed}Code execution failed. Execution exited with code 3`), seen);
});

test('a program that prints nothing', async () => {
  const message = await invoke('1 + 1', tools(noop));
  assert.equal(message.content, "stdout: Empty. Ensure you're writing output explicitly.");
});

test('a user who stops the answer ends the program', async (t) => {
  const user = new AbortController();
  const ids = [];
  const answers = [];
  let ended;
  const end = new Promise((resolve) => {
    ended = resolve;
  });
  const baseUrl = await listen(t, {
    asked: async ({ headers }) => {
      ids.push(headers['x-librechat-code-request-id']);
      if (ids.length === 2) {
        await inFlight(ids[1]);
        user.abort();
      }
    },
    answered: (answer) => {
      answers.push(answer);
      // The pause comes first, then the cancellation and the end of the program in any order.
      if (answers.length === 3) {
        ended();
      }
    },
  });
  const host = tools({ ask: () => 1 });
  await assert.rejects(invoke('await ask()\nwhile True:\n    pass', host, { baseUrl, signal: user.signal, timeout: 60_000 }));
  await end;
  const cancelled = answers.find(({ path }) => path === '/exec/programmatic/cancel');
  assert.deepEqual([cancelled?.status, cancelled?.body], [202, { status: 'cancellation_requested' }]);
  const program = answers.slice(1).find((answer) => answer !== cancelled);
  assert.match(program.body.error, /cancelled/);
  assert.deepEqual(host.ran, { ask: 1 });
});

test('a wrong key', async () => {
  const seen = await failure('print(1)', tools(noop), { authHeaders: { Authorization: 'Bearer wrong' } });
  assert.ok(seen.startsWith(`${failed}Code execution is not authorized.`), seen);
});

test('executions side by side stay apart', async () => {
  const runs = Array.from({ length: 8 }, async (_, n) => {
    const host = tools({ echo: ({ value }) => value });
    const message = await invoke(`a = await echo(value=${n})\nb = await echo(value=a * 10)\nprint(a, b)`, host);
    assert.equal(message.content, `stdout:\n${n} ${n * 10}`);
    assert.deepEqual(host.ran, { echo: 2 });
  });
  await Promise.all(runs);
});
