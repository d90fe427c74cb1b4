// The box with what the program prints.

import { h, setText } from "./dom.js";
import { copier } from "./program.js";
import { Rows } from "./rows.js";
import { plural } from "./text.js";

const escapes = /\\x[0-9a-f]{2}|\\u(?:[0-9a-f]{4}|\{[0-9a-f]+\})/g;

export class OutputBox {
  constructor() {
    this.output = null;
    this.version = -1;
    this.rows = new Rows({
      label: "Output", kind: "output", follow: true,
      count: () => this.output?.wrapped.rows ?? 0,
      draw: (row) => this.draw(row),
      resized: (columns) => {
        this.columns = columns;
        this.output?.wrapped.wrap(columns);
      },
    });
    this.note = h("p.hint");
    this.none = h("p.nothing", {}, "Nothing printed yet.");
    this.element = h("section.panel.output-panel", { "aria-label": "Output" },
      h("div.panel-head", {}, h("h2", {}, "Output"), this.legend = h("span.legend", { hidden: true }, h("span.of-stderr", {}, "stderr")),
        copier(() => this.output?.text ?? "")),
      this.note, this.none, this.rows.element);
  }

  // show shows the output of an execution, or what has been added to it.
  show(execution) {
    const { output, ended } = execution;
    if (output !== this.output) {
      this.output = output;
      if (this.columns !== undefined) output.wrapped.wrap(this.columns);
    }
    const empty = output.wrapped.lines.length === 0;
    this.none.hidden = !empty;
    this.legend.hidden = !output.complains;
    this.rows.element.hidden = empty;
    const unkept = (ended?.stdout_bytes ?? 0) + (ended?.stderr_bytes ?? 0) > 0;
    setText(this.none, unkept ? "The server keeps no output." : ended !== null ? "The program has printed nothing." : "Nothing printed yet.");
    this.note.hidden = output.dropped === 0;
    setText(this.note, `${plural(output.dropped, "earlier line")} not shown: the console keeps the last MiB.`);
    this.rows.redraw();
  }

  draw(row) {
    const { line, from, to } = this.output.wrapped.at(row);
    const text = line.text.slice(from, to);
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(escapes)) {
      parts.push(text.slice(end, match.index), h("span.escape", {}, match[0]));
      end = match.index + match[0].length;
    }
    parts.push(text.slice(end));
    return h("div.row.of-" + line.stream, {}, h("span.text", {}, parts));
  }

  close() {
    this.rows.close();
  }
}
