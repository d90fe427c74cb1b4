// The form in which a person answers the calls of a program.

import { button, h, setText } from "./dom.js";
import { longestReason } from "./approval.js";
import { ValueBox } from "./calls.js";
import { brief, count, moment, plural, span } from "./text.js";

// Of a pause with more calls, the rest is answered at the next pause, since results may be sent in parts.
const mostForms = 25;

// What a person may do with a call, and with a call that waits for approval. For the latter, nothing is
// chosen before the person chooses it.
const choices = [["result", "Result"], ["error", "Error"], ["later", "Later"]];
const decisions = [["approve", "Approve"], ["refuse", "Refuse"], ["later", "Later"]];

// An AnswerForm answers the calls of one pause. It calls sent(results) with the JSON text of the results.
export class AnswerForm {
  constructor({ calls, execution, sent, goTo }) {
    this.calls = calls.slice(0, mostForms).map((call, i) => new CallForm(call, i, execution.byCall.get(call.id), execution, goTo));
    this.sent = sent;
    this.execution = execution;
    this.problem = h("p.failure", { role: "alert", hidden: true });
    this.send = button(calls.length === 1 ? "Send the answer" : "Send the answers", null, { kind: "primary", type: "submit" });
    this.when = h("p.hint");
    this.element = h("form.panel.answers", { "aria-label": "Waiting calls", onsubmit: (e) => { e.preventDefault(); this.submit(); } },
      h("div.panel-head", {}, h("h2", { tabindex: "-1" }, `Waits for ${plural(calls.length, "call")}`), this.when),
      this.calls.map((c) => c.element),
      calls.length > mostForms && h("p.hint", {}, `and ${count(calls.length - mostForms)} more, after these`),
      this.problem, h("div.buttons", {}, this.send));
    this.tick();
  }

  tick() {
    const { expires, now } = this.execution;
    setText(this.when, Number.isFinite(expires) && expires !== null ? `until ${moment(expires)} (${span(expires - now)} left)` : "");
  }

  submit() {
    try {
      const results = this.calls.map((c) => c.result()).filter((r) => r !== null);
      if (results.length === 0) throw new Error("Answer, or decide on, at least one call");
      this.complain(null);
      this.sent(`[${results.join(",")}]`);
    } catch (error) {
      this.complain(error.message);
    }
  }

  complain(text) {
    this.problem.hidden = text === null;
    setText(this.problem, text ?? "");
    this.busy(false);
  }

  busy(is) {
    this.send.disabled = is;
  }

  focus() {
    this.calls[0]?.focus();
  }

  close() {
    for (const call of this.calls) call.input.close();
  }
}

// The labels of the text that a person writes, by the choice.
const labels = { result: "Result, as JSON", error: "Message of the error", approve: "Why (may be empty)", refuse: "Why (may be empty)" };

class CallForm {
  constructor(call, i, known, execution, goTo) {
    this.call = call;
    this.asks = call.approval === "required";
    this.kind = this.asks ? "later" : "result";
    this.input = new ValueBox("Input");
    this.input.show(call.input);
    const id = "answer-" + i;
    this.value = h("textarea", { id, rows: "3", spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": id + "-problem" }, this.asks ? "" : "null");
    this.label = h("label", { for: id });
    this.problem = h("p.failure", { id: id + "-problem", hidden: true });
    this.field = h("div.field", {}, this.label, this.value, this.problem);
    const line = known === undefined ? null : execution.lineOf(known);
    const options = (this.asks ? decisions : choices).map(([kind, word]) => h("label.choice", {}, h("input", { type: "radio", name: id + "-kind", value: kind, checked: kind === this.kind, onchange: () => this.choose(kind) }), h("span", {}, word)));
    this.element = h("fieldset.answer", {}, h("legend", {}, brief(call.name, 100), " ", h("span.hint", {}, brief(call.id, 40))),
      line !== null && h("p.at", {}, "called in ", h("button.link", { type: "button", onclick: () => goTo(line) }, `line ${count(line)}`)),
      this.asks && h("p.hint", {}, "It is not made before somebody approves it."),
      this.input.element, h("div.choices", {}, options), this.field);
    this.choose(this.kind);
  }

  focus() {
    if (this.asks) this.element.querySelector("input").focus();
    else this.value.select();
  }

  choose(kind) {
    this.kind = kind;
    this.field.hidden = kind === "later";
    setText(this.label, labels[kind] ?? "");
    if (kind === "error" && this.value.value === "null") this.value.value = "";
  }

  // result returns the JSON of the call's result, or null if the person will answer later. JSON that the
  // person has written is sent as it is, so that no number loses a digit.
  result() {
    const id = JSON.stringify(this.call.id);
    const text = this.value.value;
    this.problem.hidden = true;
    if (this.kind === "later") return null;
    if (this.asks) return `{"call_id":${id},"approve":${this.kind === "approve"},"reason":${JSON.stringify(text.slice(0, longestReason))}}`;
    if (this.kind === "error") return `{"call_id":${id},"is_error":true,"error_message":${JSON.stringify(text)}}`;
    try {
      JSON.parse(text);
    } catch (error) {
      this.problem.hidden = false;
      setText(this.problem, `This is not JSON: ${brief(error.message)}. A text needs quotes, as in "sunny".`);
      this.value.focus();
      throw new Error(`The result of ${brief(this.call.name, 100)} is not JSON`);
    }
    return `{"call_id":${id},"result":${text}}`;
  }
}
