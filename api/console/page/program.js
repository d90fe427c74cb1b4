// A box with coloured code or JSON, which can have line numbers and marks.

import { button, h } from "./dom.js";
import { highlight } from "./highlight.js";
import { Rows } from "./rows.js";
import { Wrapped } from "./wrapped.js";

// copier returns a button that copies a text, or null if the browser does not let pages write to the
// clipboard.
export function copier(text) {
  if (!navigator.clipboard) return null;
  const control = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text());
      control.textContent = "Copied";
    } catch {
      control.textContent = "Not copied";
    }
    setTimeout(() => { control.textContent = "Copy"; }, 1500);
  }, { kind: "small" });
  return control;
}

export class Source {
  constructor({ label, numbers = false, kind = "source" }) {
    this.numbers = numbers;
    this.wrapped = new Wrapped();
    this.marks = new Map();
    this.rows = new Rows({
      label, kind: numbers ? kind + ".numbered" : kind,
      count: () => this.wrapped.rows,
      draw: (row) => this.draw(row),
      resized: (columns) => this.wrapped.wrap(columns),
    });
    this.element = this.rows.element;
  }

  set(text, language) {
    const { columns } = this.wrapped;
    this.wrapped = new Wrapped();
    this.wrapped.columns = columns;
    // A line break at the end does not begin another line.
    for (const pieces of highlight(text.replace(/\n$/, ""), language)) {
      this.wrapped.push({ pieces, text: pieces.map(([, piece]) => piece).join("") });
    }
    this.rows.redraw();
  }

  // mark marks lines, counted from 1, each with a text below it.
  mark(marks) {
    this.marks = marks;
    this.wrapped.lines.forEach((line, i) => { line.extra = marks.has(i + 1) ? 1 : 0; });
    this.wrapped.measure();
    this.rows.redraw();
  }

  // reveal scrolls to a line.
  reveal(line) {
    const i = Math.min(Math.max(0, line - 1), this.wrapped.lines.length - 1);
    this.rows.reveal(this.wrapped.starts[Math.min(i + 1, this.wrapped.lines.length - 1)]);
    this.rows.reveal(this.wrapped.starts[i]);
  }

  draw(row) {
    const { line, index, first, extra, from, to } = this.wrapped.at(row);
    const mark = this.marks.get(index + 1);
    if (extra) return h("div.row.marked", {}, this.numbers && h("span.number"), h("span.text", {}, h("span.mark", {}, mark)));
    const parts = [];
    let at = 0;
    for (const [kind, piece] of line.pieces) {
      const text = piece.slice(Math.max(0, from - at), Math.max(0, to - at));
      at += piece.length;
      if (text !== "") parts.push(kind === "" ? text : h("span.hl-" + kind, {}, text));
      if (at >= to) break;
    }
    return h(mark === undefined ? "div.row" : "div.row.marked", mark === undefined ? {} : { "data-line": index + 1 },
      this.numbers && h("span.number", {}, first ? index + 1 : ""),
      h("span.text", {}, parts));
  }

  get text() {
    return this.wrapped.lines.map((line) => line.text).join("\n");
  }

  close() {
    this.rows.close();
  }
}
