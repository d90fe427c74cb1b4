// The form with which a person approves or refuses a call.

import { button, h, setText } from "./dom.js";
import { Refusal, problem, request } from "./server.js";
import { brief } from "./text.js";

// The maximum length of a reason, in characters.
export const longestReason = 1000;

// An ApprovalForm is shown below the input of a call. After it was sent, the events of the execution tell
// what has become of the call.
export class ApprovalForm {
  constructor(execution, call, signal) {
    this.path = `executions/${execution.id}/approvals`;
    this.call = call;
    this.signal = signal;
    this.reason = h("input", { type: "text", maxlength: longestReason, placeholder: "Why (may be empty)", "aria-label": `Reason for ${brief(call.call, 40)}`, autocomplete: "off" });
    this.approve = button("Approve", () => this.decide(true), { kind: "primary" });
    this.refuse = button("Refuse", () => this.decide(false), { kind: "danger" });
    this.note = h("p.failure", { role: "alert", hidden: true });
    this.element = h("div.approval", { role: "group", "aria-label": `Approval of ${brief(call.call, 40)}` },
      h("p.hint", {}, "It is not made before somebody approves it."), this.reason, h("div.buttons", {}, this.approve, this.refuse), this.note);
  }

  async decide(approve) {
    this.busy(true);
    const body = JSON.stringify({ call: this.call.call, approve, reason: this.reason.value });
    try {
      await request(this.path, { method: "POST", body, signal: this.signal });
    } catch (error) {
      if (this.signal.aborted) return;
      // If two people decide at once, the second one gets 409. An event tells both of them the decision.
      this.busy(error instanceof Refusal && error.status === 409);
      this.note.hidden = false;
      setText(this.note, brief(problem(error), 500));
    }
  }

  busy(is) {
    this.note.hidden = true;
    for (const control of [this.reason, this.approve, this.refuse]) control.disabled = is;
  }
}
