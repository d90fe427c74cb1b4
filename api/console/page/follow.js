// Follows the events of an execution. It connects again if a connection breaks.

import { parse } from "./json.js";
import { Refusal, query, readText, request } from "./server.js";
import { readEvents } from "./sse.js";

const shortestWait = 1000;
const longestWait = 30_000;

// A Follower applies the events of the execution with this id, and calls arrived() after each piece
// of the stream. It calls state(name, detail) when its state changes: "connecting", "live", "lost" (detail:
// milliseconds until the next try), "ended", "none" (the server keeps no events of the execution) or
// "refused" (detail: the error).
export class Follower {
  constructor({ id, execution, arrived, state }) {
    Object.assign(this, { id, execution, arrived, state });
    this.stopped = new AbortController();
    this.wake = () => {};
    this.online = () => this.wake();
    window.addEventListener("online", this.online);
  }

  async run() {
    const { signal } = this.stopped;
    let wait = shortestWait;
    while (!signal.aborted) {
      this.state("connecting");
      const before = this.execution.seq;
      try {
        await this.read(signal);
        if (this.execution.ended !== null) return this.state("ended");
      } catch (error) {
        if (signal.aborted) return undefined;
        if (error instanceof Refusal && error.status === 404) return this.state("none");
        if (error instanceof Refusal && error.status !== 429 && error.status < 500) return this.state("refused", error);
        if (error instanceof Refusal) wait = Math.max(wait, error.seconds * 1000);
      }
      if (this.execution.seq > before) wait = shortestWait;
      this.state("lost", wait);
      await this.sleep(wait * (0.8 + Math.random() * 0.4));
      wait = Math.min(longestWait, wait * 2);
    }
    return undefined;
  }

  async read(signal) {
    const { seq } = this.execution;
    const response = await request(`executions/${this.id}/events`, {
      accept: "text/event-stream", headers: seq > 0 ? { "Last-Event-ID": String(seq) } : {}, signal,
    });
    this.state("live");
    await readEvents(response, (frames) => {
      for (const frame of frames) this.execution.apply(parse(frame.data));
      this.arrived();
    });
  }

  // retry tries again at once.
  retry() {
    this.wake();
  }

  sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      this.stopped.signal.addEventListener("abort", this.wake, { once: true });
    });
  }

  stop() {
    this.stopped.abort();
    window.removeEventListener("online", this.online);
  }
}

// catchUp applies the events that an execution lacks.
export async function catchUp(id, execution, signal) {
  for (let more = true; more;) {
    const path = `executions/${id}/events` + query({ after: execution.seq || undefined, limit: 1000 });
    const page = parse(await readText(await request(path, { signal })));
    for (const event of page.data) execution.apply(event);
    more = page.next !== null && page.next !== undefined && page.data.length > 0;
  }
}
