// The report of an execution while it runs and afterwards: output, calls, files and the end.

import { h, painter, say, setChildren, setText } from "./dom.js";
import { CallsBox } from "./calls.js";
import { OutputBox } from "./output.js";
import { FilesBox } from "./stored.js";
import { OutputsBox } from "./outputs.js";
import { brief, count, isLive, plural, size, span, statusClass, statusWord } from "./text.js";

// pill returns an element that shows a status as a coloured word.
export function pill() {
  return h("span.pill");
}

export function setPill(element, status) {
  element.className = "pill is-" + statusClass(status);
  setText(element, statusWord(status));
}

// A Report shows one execution.
export class Report {
  // changed() is called after each change; goTo(line) when the person asks for a line.
  constructor({ changed, goTo }) {
    this.execution = null;
    this.changed = changed;
    this.output = new OutputBox();
    this.calls = new CallsBox(goTo);
    this.files = new FilesBox();
    this.outputs = new OutputsBox();
    this.end = h("section.end", { "aria-label": "The end", hidden: true });
    this.update = painter(() => this.paint());
    this.timer = setInterval(() => {
      if (this.execution !== null && isLive(this.execution.status) && this.execution.latest !== null) this.update();
    }, 500);
  }

  show(execution) {
    this.execution = execution;
    this.status = null;
    this.drawnEnd = null;
    this.update();
  }

  paint() {
    const { execution } = this;
    if (execution === null) return;
    this.output.show(execution);
    this.calls.show(execution);
    this.files.show(execution.files, execution.principal);
    this.outputs.show(execution.judged);
    this.paintEnd(execution);
    this.tell(execution);
    this.changed();
  }

  // tell announces a new status to people who use a screen reader.
  tell(execution) {
    const now = `${execution.status} ${execution.round} ${execution.waiting.size}`;
    if (now === this.status || execution.status === null) return;
    this.status = now;
    const waits = execution.status === "paused" ? `, waits for ${plural(execution.waiting.size, "call")}` : "";
    say(`${statusWord(execution.status)}${waits}`);
  }

  paintEnd(execution) {
    const { ended } = execution;
    this.end.hidden = ended === null;
    if (ended === null || this.drawnEnd === ended) return;
    this.drawnEnd = ended;
    const facts = [
      ["Reason", ended.reason && brief(ended.reason, 60)],
      ["Exit code", Number.isInteger(ended.exit_code) ? String(ended.exit_code) : null],
      ["Ran", Number.isFinite(ended.ran_ms) ? span(ended.ran_ms) : null],
      ["Rounds", Number.isFinite(ended.rounds) ? count(ended.rounds) : null],
      ["Calls", Number.isFinite(ended.calls) ? count(ended.calls) : null],
      ["stdout", Number.isFinite(ended.stdout_bytes) ? size(ended.stdout_bytes) : null],
      ["stderr", Number.isFinite(ended.stderr_bytes) ? size(ended.stderr_bytes) : null],
      ["Output", ended.truncated ? "cut at its limit" : null],
    ];
    this.end.className = "end is-" + statusClass(ended.status);
    setChildren(this.end, [
      h("h2", {}, statusWord(ended.status)),
      ended.error ? h("p.end-error", {}, brief(ended.error, 4000)) : null,
      h("dl.facts", {}, facts.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    ].filter((c) => c !== null));
  }

  close() {
    clearInterval(this.timer);
    this.output.close();
    this.calls.close();
    this.files.close();
  }
}
