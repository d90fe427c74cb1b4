// Checks files that LibreChat's own client carries from one call to the next. The client keeps only
// references to them, in its sessions; the server keeps the files.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { conversation, request, tools } from './host.js';

const summary = (files, images = 0) =>
  `Generated files:\nSession files: ${files} persisted file(s) are available in /mnt/data, including ${images} image(s).`;

/** Checks what the model sees of a call: the output, then perhaps of how many files it is told. */
function sees(message, output, files) {
  const [shown, rest] = message.content.split('\n\nGenerated files:\n');
  assert.equal(shown, output);
  assert.equal(rest !== undefined, files !== undefined, message.content);
  if (files !== undefined) {
    assert.ok(`Generated files:\n${rest}`.startsWith(files), message.content);
  }
}

/** The names in a session as the client remembers them. */
const remembered = (sessions) => sessions.get('execute_code').files.map((file) => file.name).sort();

const nothing = "stdout: Empty. Ensure you're writing output explicitly.";

test('what one call writes the next one reads, in every tool', async () => {
  const host = tools({ ask: ({ n }) => n + 1 });
  const sessions = new Map();
  const call = conversation({ host, sessions });
  const steps = [
    ['execute_code', { lang: 'py', code: 'import os\nos.mkdir("out")\nopen("out/ü.txt", "w").write("1\\n")' }],
    ['bash_tool', { command: 'cat out/ü.txt; echo 2 >>out/ü.txt' }],
    ['run_tools_with_code', { code: 'text = open("out/ü.txt").read()\nprint(text, end="")\nopen("out/ü.txt", "w").write(f"{text}{await ask(n=2)}\\n")' }],
    ['run_tools_with_bash', { code: 'cat out/ü.txt; ask \'{"n": 3}\' >>out/ü.txt' }],
  ];
  let read = nothing;
  let before;
  for (const [n, [name, args]] of steps.entries()) {
    const message = await call(name, args);
    sees(message, read, summary(1));
    const [file] = message.artifact.files;
    assert.deepEqual(
      [file.name, file.modified_from],
      ['out/ü.txt', before && { id: before.id, storage_session_id: before.storage_session_id }],
      name,
    );
    assert.deepEqual(remembered(sessions), ['out/ü.txt']);
    read = `${n === 0 ? 'stdout:' : read}\n${n + 1}`;
    before = file;
  }
  sees(await call('bash_tool', { command: 'cat out/*' }), read);
  assert.deepEqual(host.ran, { ask: 2 });
});

test('files that are read only are carried on, without a word', async () => {
  const sessions = new Map();
  const call = conversation({ sessions });
  await call('bash_tool', { command: 'echo 1 >a; echo 2 >b' });
  for (let i = 0; i < 2; i += 1) {
    sees(await call('execute_code', { lang: 'py', code: 'print(open("a").read() + open("b").read(), end="")' }), 'stdout:\n1\n2');
    assert.deepEqual(remembered(sessions), ['a', 'b']);
  }
  sees(await call('bash_tool', { command: 'echo 3 >c; cat a b c' }), 'stdout:\n1\n2\n3', summary(1));
  assert.deepEqual(remembered(sessions), ['a', 'b', 'c']);
});

test('a deleted file stays deleted', async () => {
  const host = tools({ ask: () => 1 });
  for (const [name, args] of [
    ['bash_tool', { command: 'rm b' }],
    ['run_tools_with_code', { code: 'await ask()\nos.remove("b")' }],
  ]) {
    const sessions = new Map();
    const call = conversation({ host, sessions });
    await call('bash_tool', { command: 'echo 1 >a; echo 2 >b' });
    const message = await call(name, args);
    assert.deepEqual(message.artifact.deleted_files, ['b'], name);
    assert.deepEqual(remembered(sessions), ['a'], name);
    sees(await call('bash_tool', { command: 'ls' }), 'stdout:\na');
  }
});

test('a failed program with tools leaves nothing to the next call', async () => {
  const host = tools({ ask: () => 1 });
  const sessions = new Map();
  const call = conversation({ host, sessions });
  await call('bash_tool', { command: 'echo 1 >a' });
  for (const [name, code] of [
    ['run_tools_with_code', 'open("/mnt/data/b", "w").write("x")\nopen("/mnt/data/a", "w").write("x")\nawait ask()\n1 / 0'],
    ['run_tools_with_bash', "echo x | tee /mnt/data/a >/mnt/data/b; ask '{}' >/dev/null; false"],
  ]) {
    const message = await call(name, { code });
    assert.equal(message.status, 'error');
    assert.match(message.content, /any files written during this failed call were not registered/);
    assert.deepEqual(remembered(sessions), ['a']);
    sees(await call('bash_tool', { command: 'ls; cat a' }), 'stdout:\na\n1');
  }
});

test('images are counted', async () => {
  const message = await conversation()('execute_code', { lang: 'py', code: 'open("plot.png", "wb").write(b"PNG")\nopen("plot.csv", "w")' });
  sees(message, nothing, summary(2, 1));
});

/** Uploads a file as the app does, and returns a session of the client that has it. */
async function upload(name, content, fields = {}) {
  const form = new FormData();
  for (const [field, value] of Object.entries({ kind: 'user', id: 'user-1', ...fields })) {
    form.append(field, value);
  }
  form.append('file', new Blob([content]), name);
  const body = await (await request('/upload', { method: 'POST', body: form })).json();
  assert.equal(body.message, 'success', JSON.stringify(body));
  const file = { id: body.files[0].fileId, name, storage_session_id: body.storage_session_id, resource_id: fields.id ?? 'user-1', kind: fields.kind ?? 'user' };
  return new Map([['execute_code', { session_id: file.storage_session_id, files: [file], lastUpdated: Date.now() }]]);
}

test('an uploaded file, in every tool', async () => {
  const host = tools({ ask: () => 1 });
  const content = Uint8Array.from({ length: 100_000 }, (_, i) => i % 251);
  for (const [name, args] of [
    ['execute_code', { lang: 'py', code: 'import hashlib\nprint(hashlib.sha256(open("data.bin", "rb").read()).hexdigest())' }],
    ['bash_tool', { command: 'sha256sum <data.bin | cut -d " " -f 1' }],
    ['run_tools_with_code', { code: 'import hashlib\nawait ask()\nprint(hashlib.sha256(open("data.bin", "rb").read()).hexdigest())' }],
    ['run_tools_with_bash', { code: "ask '{}' >/dev/null; sha256sum <data.bin | cut -d ' ' -f 1" }],
  ]) {
    const sessions = await upload('data.bin', content);
    const message = await conversation({ host, sessions })(name, args);
    const want = Buffer.from(await crypto.subtle.digest('SHA-256', content)).toString('hex');
    sees(message, `stdout:\n${want}`);
    assert.equal(message.artifact.files[0].inherited, true, name);
  }
});

test('a changed upload is a new file', async () => {
  const sessions = await upload('a.csv', 'a,b\n');
  const [uploaded] = sessions.get('execute_code').files;
  const call = conversation({ sessions });
  sees(await call('bash_tool', { command: 'echo 1,2 >>a.csv' }), nothing, summary(1));
  sees(await call('bash_tool', { command: 'cat a.csv' }), 'stdout:\na,b\n1,2');
  const original = await request(`/download/${uploaded.storage_session_id}/${uploaded.id}?kind=user&id=user-1`);
  assert.equal(await original.text(), 'a,b\n');
});

test('a file that is read-only stays as it is', async () => {
  for (const fields of [{ read_only: 'true' }, { kind: 'agent', id: 'agent_1', read_only: 'true' }]) {
    const sessions = await upload('a.csv', 'a,b\n', fields);
    const call = conversation({ sessions });
    sees(await call('bash_tool', { command: 'chmod u+w a.csv; echo 1,2 >>a.csv' }), nothing);
    sees(await call('bash_tool', { command: 'cat a.csv' }), 'stdout:\na,b');
  }
});

test('conversations side by side stay apart', async () => {
  await Promise.all(Array.from({ length: 3 }, async (_, n) => {
    const call = conversation();
    await call('bash_tool', { command: `echo ${n} >a` });
    sees(await call('execute_code', { lang: 'py', code: 'print(open("a").read(), end="")' }), `stdout:\n${n}`);
  }));
});
