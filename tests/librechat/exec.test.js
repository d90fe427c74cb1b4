// Runs programs without tools through LibreChat's own, unmodified client, and checks what the client
// does about features that this server lacks.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  createBashExecutionTool,
  createBashProgrammaticToolCallingTool,
  createCodeExecutionTool,
  createProgrammaticToolCallingTool,
  createToolSearch,
} from '@librechat/agents';

import { failureOf, runner, server, tools } from './host.js';

const code = runner(createCodeExecutionTool, 'execute_code');
const bash = runner(createBashExecutionTool, 'bash_tool');
const pythonWithTools = runner(createProgrammaticToolCallingTool, 'run_tools_with_code');
const bashWithTools = runner(createBashProgrammaticToolCallingTool, 'run_tools_with_bash');

const failed = 'Execution error:\n\n';
const empty = "stdout: Empty. Ensure you're writing output explicitly.\n";

test('Python', async () => {
  const message = await code({
    lang: 'py', code: 'import sys\nprint("Ça va", sys.argv[1:])\nprint("no", file=sys.stderr)', args: ['a b', '☀'],
  });
  assert.equal(message.content, "stdout:\nÇa va ['a b', '☀']\n\nstderr:\nno");
  assert.match(message.artifact.session_id, /^[A-Za-z0-9_-]{21}$/);
});

test('Python that fails', async () => {
  const message = await code({ lang: 'py', code: 'print("before")\n1 / 0' });
  assert.ok(message.content.startsWith('stdout:\nbefore\n\nstderr:\nTraceback (most recent call last):\n'), message.content);
  assert.match(message.content, /, line 2\b[^]*\nZeroDivisionError: division by zero$/);
});

test('Python that takes too long', async () => {
  const message = await code({ lang: 'py', code: 'print("before")\nwhile True:\n    pass' }, {}, { timeout: 1000 });
  assert.equal(message.content, 'stdout:\nbefore\n\nstderr:\n[sandbox] Time limit exceeded');
});

test('Bash', async () => {
  const message = await bash({ command: 'printf "%s|" "$@"; echo no >&2', args: ['a b', '☀'] });
  assert.equal(message.content, 'stdout:\na b|☀|\nstderr:\nno');
});

test('Bash that fails', async () => {
  const message = await bash({ command: 'cat /mnt/data/missing; exit 3' });
  assert.ok(message.content.startsWith(`${empty}stderr:\n`), message.content);
  assert.match(message.content, /No such file or directory$/);
});

test('Bash that kills itself', async () => {
  const message = await bash({ command: 'echo before; kill -9 $$' });
  assert.equal(message.content, 'stdout:\nbefore\n\nstderr:\n[sandbox] Killed by SIGKILL');
});

test('Bash that takes too long', async () => {
  const message = await bash({ command: 'echo before; sleep 100' }, {}, { timeout: 1000 });
  assert.equal(message.content, 'stdout:\nbefore\n\nstderr:\n[sandbox] Time limit exceeded');
});

test('programs with tools that need none', async () => {
  const host = tools({ unused: () => 0 });
  const python = 'import asyncio\nprint(await asyncio.sleep(0, "Ça va"))';
  const message = await pythonWithTools({ code: python, tool_manifest: [] }, host);
  assert.equal(message.content, 'stdout:\nÇa va');
  assert.equal((await bashWithTools({ code: 'echo ☀', tool_manifest: [] }, host)).content, 'stdout:\n☀');
  assert.deepEqual(host.ran, { unused: 0 });
});

test('a wrong key', async () => {
  const wrong = { authHeaders: { Authorization: 'Bearer wrong' } };
  for (const call of [() => code({ lang: 'py', code: '1' }, {}, wrong), () => bash({ command: 'true' }, {}, wrong)]) {
    assert.equal(await failureOf(call()), `${failed}Code execution is not authorized. Verify access before trying again.`);
  }
});

test('a key in the address is not sent', async () => {
  const options = { baseUrl: server.baseUrl.replace('http://', `http://${process.env.FERMATA_KEY}:@`), authHeaders: undefined };
  const seen = await failureOf(bash({ command: 'echo 1' }, {}, options));
  assert.equal(seen, `${failed}Code execution is temporarily unavailable. Please retry.`);
});

test('other languages are refused for good', async () => {
  for (const lang of ['js', 'ts', 'c', 'cpp', 'java', 'php', 'rs', 'go', 'd', 'f90', 'r']) {
    const seen = await failureOf(code({ lang, code: '1' }));
    assert.match(seen, /Code execution is not supported by the selected environment\..*Do not retry/, lang);
  }
});

test('stateful sessions and attached workspaces are refused for good', async () => {
  const stateful = { executionProfile: 'stateful' };
  const workspace = { workspaceId: 'project', workspaceInstanceId: 'a'.repeat(64) };
  const host = tools({ noop: () => 0 });
  for (const [name, call] of Object.entries({
    'stateful Python': () => code({ lang: 'py', code: '1' }, {}, stateful),
    'stateful bash': () => bash({ command: 'true' }, {}, stateful),
    'stateful Python with tools': () => pythonWithTools({ code: 'await noop()' }, host, stateful),
    'stateful bash with tools': () => bashWithTools({ code: 'noop' }, host, stateful),
    'bash in a workspace': () => bash({ command: 'true' }, {}, workspace),
    'bash with tools in a workspace': () => bashWithTools({ code: 'noop' }, host, workspace),
  })) {
    const seen = await failureOf(call());
    assert.match(seen, /Code execution is not supported by the selected environment\..*Do not retry/, name);
  }
});

test('the profile that the server has is accepted', async () => {
  const options = { executionProfile: 'default' };
  const host = tools({ ask: () => 1 });
  assert.equal((await code({ lang: 'py', code: 'print(1)' }, {}, options)).content, 'stdout:\n1');
  assert.equal((await bash({ command: 'echo 1' }, {}, options)).content, 'stdout:\n1');
  assert.equal((await pythonWithTools({ code: 'print(await ask())' }, host, options)).content, 'stdout:\n1');
  assert.equal((await bashWithTools({ code: 'ask' }, host, options)).content, 'stdout:\n1');
});

test('tool search is local, not with the code interpreter', async () => {
  const toolRegistry = new Map([['get_weather', { name: 'get_weather', description: 'Weather of a city', defer_loading: true }]]);
  const search = async (mode) => {
    const tool = createToolSearch({ ...server, mode, toolRegistry });
    return (await tool.invoke({ name: 'tool_search', id: 'toolu_1', type: 'tool_call', args: { query: 'weather' } })).content;
  };
  assert.match(await search('local'), /get_weather/);
  // In this mode the client sends JavaScript, and no credentials.
  assert.match(await search('code_interpreter'), /^Tool search failed: HTTP error! status: 40[01]/);
});
