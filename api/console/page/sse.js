// Reads a stream of server-sent events from the body of an answer. EventSource cannot send a key.

const longestFrame = 8 << 20;
const silence = 40_000;

// A CutOff means that the stream ended too early.
export class CutOff extends Error {}

// readEvents calls take with the frames of each piece that arrives: [{id, event, data}, …]. The
// server sends a comment every 15 s; a stream that is silent for longer is dead.
export async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser();
  try {
    for (;;) {
      const { done, value } = await withDeadline(reader.read());
      if (done) return;
      const frames = parser.push(value);
      if (frames.length > 0) take(frames);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function withDeadline(promise) {
  let timer;
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new CutOff("the server is silent")), silence);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

class Parser {
  rest = "";
  frame = { id: "", event: "message", data: "" };
  empty = true;

  // push takes a piece of the stream and returns the frames that it completes.
  push(piece) {
    const text = this.rest + piece;
    const frames = [];
    let from = 0;
    for (let to; (to = text.indexOf("\n", from)) >= 0; from = to + 1) {
      const line = text.slice(from, text[to - 1] === "\r" && to > from ? to - 1 : to);
      if (line !== "") this.line(line);
      else if (!this.empty) {
        frames.push(this.frame);
        this.frame = { id: "", event: "message", data: "" };
        this.empty = true;
      }
    }
    this.rest = text.slice(from);
    if (this.rest.length + this.frame.data.length > longestFrame) throw new CutOff("an event is too long");
    return frames;
  }

  line(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.frame.data += (this.frame.data === "" ? "" : "\n") + value;
    else if (name === "id" || name === "event") this.frame[name] = value;
    else return;
    this.empty = false;
  }
}
