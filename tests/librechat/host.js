// What the tests need around LibreChat's client: the address of the server, tools, and
// conversations that carry files from one call to the next.
//
// FERMATA_URL and FERMATA_KEY are the server's address and a key, FERMATA_OTHER_KEY is the key of
// another principal, and FERMATA_ERRORS is how the server reports failed programs: by the HTTP
// status (http, the default) or in answers with status 200 (inline).

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';

import {
  ToolNode,
  createBashExecutionTool,
  createBashProgrammaticToolCallingTool,
  createCodeExecutionTool,
  createProgrammaticToolCallingTool,
} from '@librechat/agents';
import { AIMessage } from '@librechat/agents/langchain/messages';
import { tool } from '@librechat/agents/langchain/tools';

const { FERMATA_URL: url, FERMATA_KEY: key, FERMATA_OTHER_KEY: otherKey, FERMATA_ERRORS: errors = 'http' } = process.env;
assert.ok(url && key && otherKey, 'set FERMATA_URL, FERMATA_KEY and FERMATA_OTHER_KEY');

/** Whether the server reports failed programs in answers with status 200. */
export const inline = errors === 'inline';

/** What the client adds to the error of a request that the server refused. */
export const rejected = 'The code execution request was rejected. Please check the tool input and try again.';

/** How the client is told where the server is. */
export const server = { baseUrl: url, authHeaders: { Authorization: `Bearer ${key}` } };

/** Sends a request to the server as the app does, with a path below its address. */
export function request(path, init = {}) {
  return fetch(url + path, { ...init, headers: { ...init.headers, ...server.authHeaders } });
}

/**
 * Listens between the client and the server, until the test ends. Requests and answers
 * go through as they are, even if the client has left; asked and answered see them.
 */
export async function listen(t, { asked, answered }) {
  const between = createServer(async (incoming, outgoing) => {
    const { method, headers, url: path } = incoming;
    const body = await buffer(incoming);
    asked({ path, headers });
    const answer = await fetch(url + path, { method, headers, body });
    const text = await answer.text();
    answered({ path, status: answer.status, body: JSON.parse(text) });
    outgoing.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text);
  });
  await once(between.listen(0, '127.0.0.1'), 'listening');
  t.after(() => between.close());
  return `http://127.0.0.1:${between.address().port}`;
}

/** Waits until the server has a request with this id, which another key may not cancel then. */
export async function inFlight(id) {
  const headers = { 'Content-Type': 'application/json', 'X-API-Key': otherKey };
  const body = JSON.stringify({ request_id: id });
  let status;
  while (status !== 403) {
    ({ status } = await fetch(`${url}/exec/programmatic/cancel`, { method: 'POST', headers, body }));
  }
}

/** Tools as a host has them, and a count of how often each ran. */
export function tools(functions) {
  const ran = Object.fromEntries(Object.keys(functions).map((name) => [name, 0]));
  const toolMap = new Map();
  const toolDefs = [];
  for (const [name, run] of Object.entries(functions)) {
    const definition = { name, description: `Test tool ${name}.`, schema: { type: 'object', properties: {} } };
    const counted = (input) => {
      ran[name] += 1;
      return run(input);
    };
    toolMap.set(name, tool(counted, definition));
    toolDefs.push({ name, description: definition.description, parameters: definition.schema });
  }
  return { ran, toolMap, toolDefs };
}

/** Returns a function that has a tool of the client run, as LibreChat does. */
export function runner(create, name) {
  return (args, { toolMap, toolDefs } = {}, { signal, ...options } = {}) =>
    create({ ...server, ...options }).invoke({ name, id: 'toolu_1', type: 'tool_call', args, toolMap, toolDefs }, { signal });
}

/** What the model sees of a call that fails. */
export async function failureOf(call) {
  const error = await call.then(
    (message) => assert.fail(`got the answer ${JSON.stringify(message.content)}, want a failure`),
    (reason) => reason,
  );
  return error.message;
}

/**
 * A conversation with all that runs code in it. The client's own node calls the tools,
 * remembers files in sessions, and gives them to the next call.
 */
export function conversation({ host = tools({}), sessions = new Map() } = {}) {
  const node = new ToolNode({
    tools: [
      createCodeExecutionTool(server),
      createBashExecutionTool(server),
      createProgrammaticToolCallingTool(server),
      createBashProgrammaticToolCallingTool(server),
      ...host.toolMap.values(),
    ],
    toolRegistry: new Map(host.toolDefs.map((def) => [def.name, { ...def, allowed_callers: ['code_execution'] }])),
    sessions,
  });
  let calls = 0;
  return async (name, args) => {
    calls += 1;
    const call = { name, args, id: `toolu_${calls}`, type: 'tool_call' };
    const { messages } = await node.invoke({ messages: [new AIMessage({ content: '', tool_calls: [call] })] });
    return messages.at(-1);
  };
}
