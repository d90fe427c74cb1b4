// Sends requests to the server. The key is in sessionStorage and in the header of requests, nowhere else.

import { CutOff } from "./sse.js";

const keyPlace = "fermata.key";
const largestAnswer = 64 << 20;

// The routes are relative to the page, so that they are found behind a proxy that adds a prefix.
const base = location.pathname.replace(/console\/?$/, "");

// The key, if the browser forbids sessionStorage.
let remembered = null;

export function getKey() {
  try {
    return sessionStorage.getItem(keyPlace);
  } catch {
    return remembered;
  }
}

export function setKey(key) {
  remembered = key;
  try {
    if (key === null) sessionStorage.removeItem(keyPlace);
    else sessionStorage.setItem(keyPlace, key);
  } catch {
    // The key is in remembered until the page is closed.
  }
}

// A Refusal is an answer of the server that does not report success.
export class Refusal extends Error {
  constructor(status, text, seconds = 0) {
    super(text);
    this.status = status;
    this.seconds = seconds;
  }
}

let refused = () => {};

// onRefusedKey sets what happens when the server does not accept the key.
export function onRefusedKey(f) {
  refused = f;
}

// request sends a request and returns the answer if it is a success. Otherwise it throws a Refusal,
// a CutOff if there is no answer, or the AbortError of the signal.
export async function request(path, { method = "GET", accept = "application/json", body, headers = {}, signal, key = getKey() } = {}) {
  const all = new Headers({ Accept: accept, ...headers });
  if (key !== null) all.set("Authorization", "Bearer " + key);
  if (body !== undefined) all.set("Content-Type", "application/json");
  let response;
  try {
    response = await fetch(base + path, {
      method, body, signal, headers: all, cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new CutOff("the server cannot be reached");
  }
  noteTime(response);
  if (response.ok) return response;
  const refusal = await refusalOf(response);
  if (response.status === 401 && key === getKey()) refused();
  throw refusal;
}

// How far the server's clock is ahead of ours, in milliseconds.
let ahead = 0;

// noteTime compares our clock with the server's. The header has whole seconds, so a smaller difference is
// ignored.
function noteTime(response) {
  const difference = Date.parse(response.headers.get("Date")) + 500 - Date.now();
  if (Number.isFinite(difference)) ahead = Math.abs(difference) < 2000 ? 0 : difference;
}

// serverNow is the present moment on the server's clock.
export function serverNow() {
  return Date.now() + ahead;
}

async function refusalOf(response) {
  const seconds = Number(response.headers.get("Retry-After")) || 0;
  let text = `The server answered with status ${response.status}`;
  try {
    const answer = JSON.parse(await readText(response, 1 << 20));
    text = [answer.error, answer.message, answer.details].filter((t) => typeof t === "string" && t !== "").join(": ") || text;
  } catch {
    // Without a text, the status must do.
  }
  return new Refusal(response.status, text, seconds);
}

// readBytes returns the body of an answer, of which it reads at most limit bytes.
export async function readBytes(response, limit) {
  const reader = response.body.getReader();
  const pieces = [];
  let total = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return new Blob(pieces).arrayBuffer();
      total += value.length;
      if (total > limit) throw new Refusal(0, "The answer is larger than the console can show");
      pieces.push(value);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export async function readText(response, limit = largestAnswer) {
  return new TextDecoder().decode(await readBytes(response, limit));
}

// query returns the query of a URL. Undefined and empty values are left out; a list repeats its parameter.
export function query(values) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of [value].flat()) {
      if (one !== undefined && one !== null && one !== "") all.append(name, one);
    }
  }
  const text = all.toString();
  return text === "" ? "" : "?" + text;
}

// problem returns the text of an error for the person.
export function problem(error) {
  if (error instanceof Refusal) {
    return error.status === 429 && error.seconds > 0 ? `${error.message} (try again in ${error.seconds} s)` : error.message;
  }
  return error instanceof CutOff ? "The connection to the server broke: " + error.message : String(error?.message ?? error);
}
