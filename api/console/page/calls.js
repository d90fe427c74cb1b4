// The calls of an execution: a list on a time axis, and one of them in full.

import { h, setChildren, setText } from "./dom.js";
import { compact, cutOff, pretty } from "./json.js";
import { Source, copier } from "./program.js";
import { Rows } from "./rows.js";
import { brief, count, moment, plural, size, span } from "./text.js";
import { Scale, spansOf } from "./timeline.js";

const callWords = { open: "Open", waiting: "Waits", asked: "Approval", completed: "Done", failed: "Failed" };

// stateOf returns the state of a call. Of the open calls, it tells apart those that wait for approval and
// those that the execution waits for.
function stateOf(execution, call) {
  if (call.state === "open" && call.asked) return "asked";
  return call.state === "open" && execution.waiting.has(call.call) ? "waiting" : call.state;
}

// decision returns who has approved or refused a call, and why, or null.
function decision({ decided }) {
  if (decided === undefined) return null;
  return brief([decided.by, decided.reason].filter((t) => typeof t === "string" && t !== "").join(": ") || "somebody", 1000);
}

export class CallsBox {
  // goTo(line) is called when the person asks for the line of a call.
  constructor(goTo) {
    this.execution = null;
    this.chosen = null;
    this.axis = h("span.axis.ticks", { "aria-hidden": "true" });
    this.strip = h("span.axis.strip");
    this.total = h("span.took");
    this.number = h("span.hint");
    this.rows = new Rows({
      label: "Calls", kind: "calls", height: 32, follow: true,
      count: () => this.execution?.calls.length ?? 0,
      draw: (i) => this.draw(i),
      given: { role: "listbox", onkeydown: (e) => this.press(e), onfocus: () => this.focus() },
    });
    // The list follows new calls only if the person has scrolled to the last one.
    this.rows.atEnd = false;
    this.detail = new CallDetail(goTo);
    this.none = h("p.nothing");
    this.body = h("div.calls-body", {},
      h("div.calls-list", {},
        h("div.call.head", {}, h("span.id", {}, "call"), h("span.tool", {}, "tool"), h("span.state", {}, "state"), this.axis, h("span.took", {}, "took")),
        h("div.call.head.whole", {}, h("span.id"), h("span.tool", {}, "program"), h("span.state"), this.strip, this.total),
        this.rows.element),
      this.detail.element);
    this.element = h("section.panel.calls-panel", { "aria-label": "Calls" },
      h("div.panel-head", {}, h("h2", {}, "Calls"), this.number,
        h("span.legend", {}, h("span.key.of-running"), "running ", h("span.key.of-paused"), "paused ", h("span.key.of-call"), "call")),
      this.none, this.body);
  }

  show(execution) {
    if (execution !== this.execution) this.chosen = null;
    this.execution = execution;
    const empty = execution.spans.length === 0;
    this.none.hidden = !empty;
    this.body.hidden = empty;
    setText(this.none, "No calls yet.");
    setText(this.number, execution.calls.length === 0 ? "none yet" : plural(execution.calls.length, "call"));
    this.rows.element.hidden = execution.calls.length === 0;
    if (execution.ended !== null && execution.calls.length === 0) setText(this.number, "none");
    this.scale = new Scale(execution.first, execution.now);
    this.axis.replaceChildren(...this.scale.ticks(this.axis.clientWidth));
    this.strip.replaceChildren(...spansOf(execution, this.scale));
    setText(this.total, span(execution.now - execution.first));
    this.rows.redraw();
    this.detail.show(execution, this.chosen === null ? null : execution.calls[this.chosen]);
  }

  draw(i) {
    const call = this.execution.calls[i];
    const state = stateOf(this.execution, call);
    const until = call.end ?? this.execution.now;
    const bar = this.scale.place(h("span.bar.of-call.is-" + state), call.at, until);
    return h("div.call.is-" + state, {
      role: "option", id: "call-" + i, "aria-selected": String(i === this.chosen), "aria-posinset": i + 1, "aria-setsize": this.execution.calls.length,
      title: call.input === undefined ? null : brief(compact(call.input)),
      onclick: () => this.choose(i),
    },
    h("span.id", {}, brief(call.call, 20)), h("span.tool", {}, brief(call.tool, 80)), h("span.state", {}, callWords[state]),
    h("span.axis", {}, bar), h("span.took", {}, span(call.took ?? until - call.at)));
  }

  choose(i) {
    this.chosen = i;
    this.rows.element.setAttribute("aria-activedescendant", "call-" + i);
    this.rows.reveal(i);
    this.detail.show(this.execution, this.execution.calls[i]);
  }

  focus() {
    if (this.chosen === null && this.execution?.calls.length > 0 && this.rows.element.matches(":focus-visible")) this.choose(0);
  }

  press(e) {
    const last = this.execution.calls.length - 1;
    const now = this.chosen ?? -1;
    const next = { ArrowDown: now + 1, j: now + 1, ArrowUp: now - 1, k: now - 1, Home: 0, End: last, PageDown: now + 10, PageUp: now - 10 }[e.key];
    if (next === undefined || last < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    e.stopPropagation();
    this.choose(Math.min(last, Math.max(0, next)));
  }

  close() {
    this.rows.close();
    this.detail.close();
  }
}

// A ValueBox shows a JSON value.
export class ValueBox {
  constructor(label) {
    this.source = new Source({ label, kind: "value" });
    this.note = h("p.hint");
    this.element = h("div.value-box", {},
      h("div.value-head", {}, h("h4", {}, label), copier(() => this.source.text)), this.note, this.source.element);
    this.shown = this;
  }

  // show shows a value; undefined hides the box.
  show(value) {
    if (value === this.shown) return;
    this.shown = value;
    this.element.hidden = value === undefined;
    if (value === undefined) return;
    const cut = cutOff(value);
    this.note.hidden = cut === null;
    setText(this.note, cut === null ? "" : cut.head === "" ? `Not kept: ${size(cut.bytes)}.` : `Cut off: the whole value has ${size(cut.bytes)}.`);
    this.source.element.hidden = cut !== null && cut.head === "";
    this.source.set(cut === null ? pretty(value) : cut.head, "json");
  }

  close() {
    this.source.close();
  }
}

// A CallDetail shows one call in full.
class CallDetail {
  constructor(goTo) {
    this.goTo = goTo;
    this.title = h("h3");
    this.facts = h("dl.facts");
    this.error = h("p.failure");
    this.input = new ValueBox("Input");
    this.output = new ValueBox("Result");
    this.hint = h("p.nothing", {}, "Choose a call to see its input and its result.");
    this.body = h("div", {}, this.title, this.facts, this.error, this.input.element, this.output.element);
    this.element = h("div.call-detail", { "aria-label": "The chosen call", role: "group" }, this.hint, this.body);
    this.drawn = "";
  }

  show(execution, call) {
    this.hint.hidden = call !== null || execution.calls.length === 0;
    this.body.hidden = call === null;
    this.element.hidden = execution.calls.length === 0;
    if (call === null) return;
    const state = stateOf(execution, call);
    const line = execution.lineOf(call);
    const now = `${call.call} ${state} ${line} ${call.decided?.given}`;
    if (now === this.drawn && call === this.call) return;
    Object.assign(this, { drawn: now, call });
    setText(this.title, `${brief(call.tool, 100)} `);
    this.title.append(h("span.hint", {}, brief(call.call, 40)));
    const where = line === null ? null : h("button.link", { type: "button", onclick: () => this.goTo(line) }, `line ${count(line)}`);
    const facts = [
      ["State", callWords[state]], ["Made at", moment(call.at)], ["Took", call.end === null ? null : span(call.took)],
      ["By", where], ["Run by", call.runner === "server" ? "the server" : "the client"],
      ["Toolset", call.toolset && brief(call.toolset)], ["Cost", call.cost === undefined ? null : brief(compact(call.cost))], ["Record", brief(call.record)],
      [call.decided?.given ? "Approved by" : "Refused by", decision(call)],
    ];
    setChildren(this.facts, facts.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    this.error.hidden = state !== "failed";
    setText(this.error, [call.error, call.code, call.where].filter((t) => t !== undefined && t !== "").map((t) => brief(t, 4000)).join(" · ") || "The call failed.");
    this.input.show(call.input);
    this.output.show(call.output);
  }

  close() {
    this.input.close();
    this.output.close();
  }
}
