// The state of one execution, derived from its events. This file does not depend on the page.

import { serverNow } from "./server.js";
import { visibleLine } from "./text.js";
import { Wrapped, border } from "./wrapped.js";

// The limits of the output that is kept to be shown.
const mostText = 1 << 20;
const mostLines = 100_000;
const longestPiece = 4096;

// pieces yields a line in pieces. Each is so short that it costs little to draw it again and again.
function* pieces(line) {
  for (let from = 0, to; from < line.length; from = to) {
    to = border(line, Math.min(line.length, from + longestPiece));
    yield line.slice(from, to);
  }
}

// An Output is what a program has printed, as lines that are safe to show.
export class Output {
  wrapped = new Wrapped();
  size = 0;
  dropped = 0;
  // complains is true if the program has printed to stderr.
  complains = false;
  // open is the last line, while its end has not arrived.
  open = null;

  add(stream, text) {
    const parts = text.split("\n");
    parts.forEach((part, i) => {
      const ends = i < parts.length - 1;
      for (const piece of pieces(part)) this.print(stream, piece);
      if (ends && part === "" && this.open?.stream !== stream) this.print(stream, "");
      if (ends) this.open = null;
    });
    this.trim();
  }

  // print adds a piece of a line. A line that has become too long is continued on another one.
  print(stream, piece) {
    const goesOn = this.open?.stream === stream;
    if (stream === "stderr") this.complains = true;
    this.size += piece.length;
    if (goesOn && this.open.raw.length + piece.length <= longestPiece) {
      this.open.raw += piece;
      this.wrapped.changeLast(visibleLine(this.open.raw));
      return;
    }
    this.open = { stream, raw: piece };
    this.wrapped.push({ text: visibleLine(piece), stream, goesOn });
  }

  // trim drops the oldest lines once the limit is exceeded by a quarter.
  trim() {
    const { lines } = this.wrapped;
    if (this.size < 1.25 * mostText && lines.length < 1.25 * mostLines) return;
    let n = 0;
    while (n < lines.length - 1 && (this.size > mostText || lines.length - n > mostLines)) this.size -= lines[n++].text.length;
    this.size = Math.max(0, this.size);
    this.dropped += n;
    this.wrapped.drop(n);
  }

  get text() {
    return this.wrapped.lines.map((line, i) => (i > 0 && !line.goesOn ? "\n" : "") + line.text).join("");
  }
}

// An Execution is what is known about one execution.
export class Execution {
  constructor(id = null) {
    this.id = id;
    this.principal = undefined; // Set if the person is an operator.
    this.seq = 0;
    this.summary = null;
    this.started = null;
    this.status = null;
    this.output = new Output();
    this.calls = [];
    this.byCall = new Map();
    this.waiting = new Set();
    this.spans = [];
    this.round = 0;
    this.expires = null;
    this.since = null;
    this.files = [];
    this.judged = [];
    this.ended = null;
    this.first = null;
    this.latest = null;
  }

  // apply applies one event. It ignores events that were applied before, and unknown ones.
  apply(event) {
    if (!Number.isSafeInteger(event?.seq) || event.seq <= this.seq) return;
    this.seq = event.seq;
    const at = Date.parse(event.time);
    this.first ??= at;
    this.latest = at;
    switch (event.type) {
      case "execution.started":
        this.id ??= event.execution;
        this.started = event;
        this.turn("running", at);
        break;
      case "output":
        this.output.add(event.stream === "stderr" ? "stderr" : "stdout", String(event.text ?? ""));
        break;
      case "call.started":
        this.begin(event, at);
        break;
      case "approval.requested":
        this.begin(event, at).asked = true;
        break;
      case "approval.given":
      case "approval.refused":
        this.decide(event);
        break;
      case "call.completed":
      case "call.failed":
        this.finish(event, at);
        break;
      case "execution.paused":
        this.round = event.round;
        this.waiting = new Set(event.waiting);
        this.expires = Date.parse(event.expires_at);
        this.since = at;
        this.turn("paused", at);
        break;
      case "execution.resumed":
        this.waiting = new Set();
        this.expires = this.since = null;
        this.turn("running", at);
        break;
      case "file.stored":
        if (event.file !== null && typeof event.file === "object") this.files.push(event.file);
        break;
      case "output.judged":
        if (event.output !== null && typeof event.output === "object") this.judged.push(event.output);
        break;
      case "execution.ended":
        this.waiting = new Set();
        this.expires = null;
        this.ended = event;
        this.turn(String(event.status), at);
        break;
      default:
    }
  }

  begin(event, at) {
    const known = this.byCall.get(event.call);
    if (known?.decided !== undefined && known.end === null) { // The call was approved, and begins now.
      known.at = at;
      return known;
    }
    const call = { ...event, index: this.calls.length, at, end: null, state: "open", asked: false };
    this.calls.push(call);
    this.byCall.set(event.call, call);
    return call;
  }

  // decide notes that somebody has approved or refused a call.
  decide(event) {
    const call = this.byCall.get(event.call);
    if (call === undefined) return;
    call.asked = false;
    call.decided = { given: event.type === "approval.given", by: event.by, reason: event.reason };
    this.waiting.delete(event.call);
  }

  finish(event, at) {
    const call = this.byCall.get(event.call);
    if (call === undefined) return;
    call.end = at;
    call.took = event.took_ms;
    call.state = event.type === "call.failed" ? "failed" : "completed";
    for (const name of ["output", "cost", "error", "code", "where"]) if (event[name] !== undefined) call[name] = event[name];
    this.waiting.delete(event.call);
  }

  // turn notes that the execution has got another status at a moment.
  turn(status, at) {
    const last = this.spans.at(-1);
    if (last !== undefined && last.to === null) last.to = at;
    this.status = status;
    if (status === "running" || status === "paused") this.spans.push({ status, from: at, to: null });
  }

  // now is the present moment, or the end of an execution that has ended.
  get now() {
    if (this.ended !== null && this.latest !== null) return this.latest;
    return Math.max(serverNow(), this.latest ?? 0);
  }

  get waits() {
    return this.calls.filter((call) => this.waiting.has(call.call));
  }

  // lineOf returns the line that a call claims to come from, if the program has that line.
  lineOf(call) {
    const lines = this.lines;
    return Number.isSafeInteger(call.line) && call.line >= 1 && call.line <= lines ? call.line : null;
  }

  get code() {
    return typeof this.started?.code === "string" ? this.started.code : null;
  }

  get lines() {
    const code = this.code;
    if (code === null) return 0;
    if (this.counted !== code) {
      this.counted = code;
      this.lineCount = code.split("\n").length;
    }
    return this.lineCount;
  }
}
