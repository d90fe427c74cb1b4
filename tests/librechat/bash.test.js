// Runs shell scripts with tools through LibreChat's own, unmodified client, and checks what the
// model would see and how often each tool was called.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createBashProgrammaticToolCallingTool } from '@librechat/agents';

import { failureOf, inline, rejected, runner, tools } from './host.js';

const run = runner(createBashProgrammaticToolCallingTool, 'run_tools_with_bash');
const failed = 'Bash programmatic execution failed: ';

const invoke = (code, host, { timeout, ...options } = {}) =>
  run(timeout === undefined ? { code } : { code, timeout }, host, options);
const failure = (...args) => failureOf(invoke(...args));

test('thirty parallel calls, twenty times, are within the limit of rounds', async () => {
  const host = tools({ square: ({ n }) => n * n });
  const message = await invoke(
    `cd /dev/shm
for round in {1..20}; do
    for n in {1..30}; do square "{\\"n\\": $n}" >$n & done
    wait
done
echo $(($(cat $(seq 30) | paste -sd +)))`,
    host,
  );
  assert.equal(message.content, 'stdout:\n9455');
  assert.deepEqual(host.ran, { square: 600 });
});

test('a failing tool that the script catches', async () => {
  const host = tools({
    lookup: ({ id }) => {
      if (id === 2) {
        throw new Error('no row 2');
      }
      return { id };
    },
  });
  const message = await invoke(
    `set -e
for id in 1 2 3; do
    row=$(lookup "{\\"id\\": $id}" 2>/dev/null) || echo caught
    echo "$row"
done`,
    host,
  );
  assert.equal(message.content, 'stdout:\n{"id":1}\ncaught\n{"error":"no row 2"}\n{"id":3}');
  assert.deepEqual(host.ran, { lookup: 3 });
});

test('a failing tool that the script does not catch', async () => {
  const host = tools({
    lookup: () => {
      throw new Error('the database is away');
    },
  });
  const seen = await failure("set -e\necho before\nlookup '{}'\necho after", host);
  assert.equal(seen, `${failed}Code execution failed. Execution exited with code 1\n\nStderr:\nthe database is away\n`);
  assert.deepEqual(host.ran, { lookup: 1 });
});

test('a tool that the host does not know', async () => {
  const host = tools({ known: () => 1 });
  host.toolDefs.push({ name: 'unknown', parameters: { type: 'object', properties: {} } });
  const message = await invoke('unknown 2>/dev/null || echo caught', host);
  assert.equal(message.content, `stdout:\n{"error":"Tool 'unknown' not found. Available tools: known"}\ncaught`);
  assert.deepEqual(host.ran, { known: 0 });
});

test('25 sequential calls exceed the round limit', async () => {
  const host = tools({ step: ({ n }) => n + 1 });
  const seen = await failure('n=0; while [ "$n" -lt 25 ]; do n=$(step "{\\"n\\": $n}"); done; echo $n', host);
  assert.ok(seen.startsWith(failed + (inline ? 'Code execution failed.' : rejected)), seen);
  assert.deepEqual(host.ran, { step: 20 });
});

test('a script that takes too long', async () => {
  const host = tools({ step: () => 1 });
  const seen = await failure("step '{}'; while :; do :; done", host, { timeout: 1000 });
  const want = inline
    ? 'Code execution failed. Execution exceeded the time limit.'
    : 'Code execution is temporarily unavailable. Please retry.';
  assert.ok(seen.startsWith(failed + want), seen);
  assert.deepEqual(host.ran, { step: 1 });
});

test('a script that exits', async () => {
  const host = tools({ noop: () => 0 });
  const seen = await failure('echo why >&2; exit 3', host);
  assert.equal(seen, `${failed}Code execution failed. Execution exited with code 3\n\nStderr:\nwhy\n`);
  assert.match(await failure('nosuch', host), /Execution exited with code 127\n\nStderr:\n.*nosuch: command not found/);
});

test('a wrong key', async () => {
  const seen = await failure('noop', tools({ noop: () => 0 }), { authHeaders: { Authorization: 'Bearer wrong' } });
  assert.ok(seen.startsWith(`${failed}Code execution is not authorized.`), seen);
});
