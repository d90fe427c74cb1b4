// The timeline of an execution: what a model sees of it, beside the raw blocks. It is fetched when the
// person asks for it, and again when the execution has ended.

import { button, h, setChildren, setText } from "./dom.js";
import { ValueBox } from "./calls.js";
import { parse } from "./json.js";
import { Source } from "./program.js";
import { problem, readText, request } from "./server.js";
import { brief, plural } from "./text.js";

// partText returns the text that is shown for a part.
function partText(part) {
  if (part?.type === "text") return String(part.text ?? "");
  return `<${String(part?.type ?? "part")} media_type=${String(part?.source?.media_type ?? "unknown")}>`;
}

export class BlocksBox {
  constructor(id, signal) {
    Object.assign(this, { id, signal, open: false, fetched: "", status: null });
    this.number = h("span.hint");
    this.ask = button("Show the timeline", () => { this.open = true; this.fetch(); });
    this.note = h("p.nothing", {}, "The blocks that an agent runtime appends to its history.");
    this.seen = new Source({ label: "What the model sees" });
    this.blocks = new ValueBox("Blocks");
    this.body = h("div.columns", { hidden: true },
      h("div.value-box", {}, h("div.value-head", {}, h("h4", {}, "What the model sees")), this.seen.element), this.blocks.element);
    this.element = h("section.panel.timeline-panel", { "aria-label": "Timeline", hidden: true },
      h("div.panel-head", {}, h("h2", {}, "Timeline"), this.number, this.ask), this.note, this.body);
  }

  // show shows the panel for an execution. It has a timeline only if the server keeps its events.
  show(execution) {
    this.element.hidden = execution.started === null;
    this.status = execution.status;
    if (this.open && execution.ended !== null && this.fetched !== execution.status) this.fetch();
  }

  async fetch() {
    this.fetched = this.status;
    setText(this.ask, "Renew");
    try {
      const answer = await request(`executions/${this.id}/timeline?base64=false`, { signal: this.signal });
      const { blocks, rendered } = parse(await readText(answer));
      this.seen.set(rendered.map(partText).join("\n"), "text");
      this.blocks.show(blocks);
      setText(this.number, plural(blocks.length, "block"));
      this.note.hidden = true;
      this.body.hidden = false;
    } catch (error) {
      if (this.signal.aborted) return;
      this.note.hidden = false;
      setChildren(this.note, [brief(problem(error), 500)]);
    }
  }

  close() {
    this.seen.close();
    this.blocks.close();
  }
}
