// The view of one execution.

import { button, h, setChildren, setText } from "./dom.js";
import { ApprovalForm } from "./approval.js";
import { BlocksBox } from "./blocks.js";
import { confirmed } from "./dialog.js";
import { Follower } from "./follow.js";
import { parse } from "./json.js";
import { ValueBox } from "./calls.js";
import { Execution } from "./model.js";
import { Source } from "./program.js";
import { Report, pill, setPill } from "./report.js";
import { Refusal, problem, readText, request } from "./server.js";
import { brief, count, isLive, moment, plural, span } from "./text.js";

const mostWaiting = 6;

export class ExecutionView {
  constructor(id) {
    this.id = id;
    this.execution = new Execution(id);
    this.stopped = new AbortController();
    this.link = "connecting";
    this.drawnCode = null;
    this.build();
    this.load();
  }

  get title() {
    return this.execution.started?.title || this.summary?.title || `Execution ${this.id.slice(0, 8)}`;
  }

  build() {
    this.pill = pill();
    this.heading = h("h1", { tabindex: "-1" }, `Execution ${this.id.slice(0, 8)}`);
    this.since = h("span.hint");
    this.cancel = button("Cancel", () => this.askCancel(), { kind: "danger", hidden: true });
    this.forget = button("Forget", () => this.askForget(), { hidden: true });
    this.facts = h("dl.facts.wide");
    this.labels = h("p.labels");
    this.notice = h("div.notice", { role: "alert", hidden: true });
    this.waiting = new WaitingBox((line) => this.source.reveal(line), this.stopped.signal);
    this.source = new Source({ label: "Program", numbers: true });
    this.program = h("section.panel.program-panel", { "aria-label": "Program" }, h("div.panel-head", {}, h("h2", {}, "Program"), this.language = h("span.hint")), this.source.element, this.noCode = h("p.nothing", { hidden: true }));
    this.report = new Report({ changed: () => this.paint(), goTo: (line) => { this.source.reveal(line); this.source.element.focus(); } });
    this.blocks = new BlocksBox(this.id, this.stopped.signal);
    const back = h("a.back", {}, "All executions");
    back.href = "#/";
    this.loading = h("div.state", {}, h("p", {}, "Loading…"));
    this.body = h("div.execution-body", { hidden: true },
      this.waiting.element, this.report.end,
      h("div.columns", {}, this.program, this.report.output.element),
      this.report.outputs.element, this.report.files.element, this.report.calls.element, this.blocks.element);
    this.element = h("div.view.execution-view", {}, back,
      h("div.view-head", {}, h("div.heading", {}, this.heading, this.pill, this.since), h("div.buttons", {}, this.cancel, this.forget)),
      this.facts, this.labels, this.notice, this.loading, this.body);
    this.report.show(this.execution);
  }

  async load() {
    try {
      this.summary = parse(await readText(await request("executions/" + this.id, { signal: this.stopped.signal })));
    } catch (error) {
      if (this.stopped.signal.aborted) return;
      const gone = error instanceof Refusal && error.status === 404;
      setChildren(this.loading, [
        h("h2", {}, gone ? "No such execution" : "This did not work"),
        h("p", {}, gone ? "It was never yours, or its journal has been forgotten." : brief(problem(error), 500)),
        gone ? null : button("Try again", () => { setChildren(this.loading, [h("p", {}, "Loading…")]); this.load(); }),
      ].filter(Boolean));
      return;
    }
    this.execution.principal = this.summary.principal;
    this.loading.hidden = true;
    this.body.hidden = false;
    this.follow();
    this.report.update();
  }

  follow() {
    this.follower = new Follower({
      id: this.id, execution: this.execution,
      arrived: () => this.report.update(),
      state: (name, detail) => this.linked(name, detail),
    });
    this.follower.run();
  }

  // linked shows the state of the stream.
  linked(name, detail) {
    this.link = name;
    this.element.dataset.link = name;
    if (name === "connecting") return;
    this.notice.hidden = name === "live" || name === "ended";
    if (name === "lost") {
      setChildren(this.notice, [h("span", {}, `The stream broke off. Next try in ${span(detail)}.`), button("Try now", () => this.follower.retry(), { kind: "small" })]);
    } else if (name === "refused") {
      setChildren(this.notice, [h("span", {}, brief(problem(detail), 500))]);
    } else if (name === "none") {
      this.showSummaryAlone();
    }
    this.report.update();
  }

  // showSummaryAlone shows an execution of which the server keeps no events.
  showSummaryAlone() {
    setChildren(this.notice, [h("span", {}, "The server keeps no events of this execution (FERMATA_JOURNAL=off), so there is its summary alone."),
      button("Renew", () => this.renewSummary(), { kind: "small" })]);
    const { execution, summary } = this;
    this.body.classList.add("summary-alone");
    execution.status = summary.status;
    if (!isLive(summary.status)) execution.ended = summary;
  }

  async renewSummary() {
    try {
      this.summary = parse(await readText(await request("executions/" + this.id, { signal: this.stopped.signal })));
      this.showSummaryAlone();
      this.report.update();
    } catch (error) {
      if (!this.stopped.signal.aborted) setChildren(this.notice, [h("span", {}, brief(problem(error), 500))]);
    }
  }

  paint() {
    const { execution, summary } = this;
    if (summary === undefined) return;
    const status = execution.status ?? summary.status;
    setPill(this.pill, status);
    const title = brief(this.title, 200);
    setText(this.heading, title);
    document.title = `${title} – Fermata`;
    this.cancel.hidden = !isLive(status);
    this.forget.hidden = isLive(status);
    this.paintFacts(status);
    this.paintProgram();
    this.waiting.show(execution);
    this.blocks.show(execution);
  }

  paintFacts(status) {
    const { execution, summary: s } = this;
    const created = Date.parse(s.created_at);
    const ran = execution.ended?.ran_ms ?? execution.spans.filter((p) => p.status === "running").reduce((sum, p) => sum + (p.to ?? execution.now) - p.from, 0);
    setText(this.since, isLive(status) && this.link === "lost" ? "as of the last event" : "");
    const rounds = Math.max(execution.round, execution.ended?.rounds ?? 0, execution.seq === 0 ? s.rounds ?? 0 : 0);
    const facts = [
      ["Started", moment(created)],
      ["Ran", `${span(execution.seq > 0 ? ran : s.ran_ms)}${s.budget_ms ? ` of ${span(s.budget_ms)}` : ""}`],
      ["Rounds", `${count(rounds)}${s.round_limit ? ` of ${count(s.round_limit)}` : ""}`],
      ["Contract", brief(s.contract, 40)], ["Session", brief(s.session, 40)],
      ["Parent call", s.parent_call_id && brief(s.parent_call_id, 255)], ["Principal", s.principal && brief(s.principal, 200)],
      ["Server", s.server && brief(s.server, 80)], ["Id", this.id],
    ].filter(([, value]) => value);
    const now = JSON.stringify(facts);
    if (now === this.drawnFacts) return;
    this.drawnFacts = now;
    setChildren(this.facts, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    setChildren(this.labels, Object.entries(s.labels ?? {}).slice(0, 16).map(([key, value]) => h("span.tag", {}, `${brief(key, 64)}: ${brief(value, 256)}`)));
  }

  paintProgram() {
    const { started } = this.execution;
    const code = started?.code ?? this.summary.code;
    if (code !== this.drawnCode) {
      this.drawnCode = code;
      const cut = code !== null && typeof code === "object";
      const text = cut ? String(code.head ?? "") : String(code ?? "");
      this.source.set(text, started?.language ?? this.summary.language);
      this.source.element.hidden = text === "";
      this.noCode.hidden = typeof code === "string";
      setText(this.noCode, cut ? `The rest of the program was not kept: it has ${count(code.bytes)} bytes.` : "The server keeps no code.");
      setText(this.language, `${brief(started?.language ?? this.summary.language, 20)}, ${plural(text === "" ? 0 : this.source.wrapped.lines.length, "line")}`);
    }
    const marks = waitingMarks(this.execution);
    const now = JSON.stringify([...marks]);
    if (now === this.drawnMarks) return;
    this.drawnMarks = now;
    this.source.mark(marks);
    const [first] = marks.keys();
    if (first !== undefined) this.source.reveal(first);
  }

  async askCancel() {
    if (!await confirmed("Cancel this execution?", "The program ends at once. What it has printed so far stays.", "Cancel the execution")) return;
    try {
      await request(`executions/${this.id}/cancel`, { method: "POST", signal: this.stopped.signal });
      this.cancel.disabled = true;
      setText(this.cancel, "Cancelling…");
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 409)) this.complain(error);
    }
  }

  async askForget() {
    if (!await confirmed("Forget this execution?", "Its journal and its calls are removed for good. Its files stay.", "Forget it")) return;
    try {
      await request("executions/" + this.id, { method: "DELETE", signal: this.stopped.signal });
      location.hash = "#/";
    } catch (error) {
      this.complain(error);
    }
  }

  complain(error) {
    if (this.stopped.signal.aborted) return;
    this.notice.hidden = false;
    setChildren(this.notice, [h("span", {}, brief(problem(error), 500))]);
  }

  close() {
    this.stopped.abort();
    this.follower?.stop();
    this.report.close();
    this.source.close();
    this.waiting.close();
    this.blocks.close();
  }
}

// waitingMarks returns the texts to show at the lines at which an execution waits.
export function waitingMarks(execution) {
  const names = new Map();
  for (const call of execution.waits) {
    const line = execution.lineOf(call);
    if (line === null) continue;
    const there = names.get(line) ?? [];
    if (!there.includes(call.tool)) there.push(call.tool);
    names.set(line, there);
  }
  return new Map([...names].map(([line, tools]) => [line, "waits for " + brief(tools.slice(0, 3).join(", ") + (tools.length > 3 ? "…" : ""), 80)]));
}

// A WaitingBox shows the calls that a paused execution waits for.
class WaitingBox {
  constructor(goTo, signal) {
    this.goTo = goTo;
    this.signal = signal;
    this.cards = new Map();
    this.title = h("h2");
    this.when = h("p.hint");
    this.list = h("ul.waiting-calls");
    this.element = h("section.panel.waiting", { "aria-label": "Waiting calls", hidden: true }, h("div.panel-head", {}, this.title, this.when), this.list);
  }

  show(execution) {
    const waits = execution.waits;
    this.element.hidden = waits.length === 0 || execution.status !== "paused";
    if (this.element.hidden) return;
    setText(this.title, `Waits for ${plural(waits.length, "call")}`);
    const { now } = execution;
    setText(this.when, [`since ${moment(execution.since)} (${span(now - execution.since)})`,
      Number.isFinite(execution.expires) && `expires at ${moment(execution.expires)} (in ${span(execution.expires - now)})`].filter(Boolean).join(", "));
    // The calls that a person can decide on come first.
    const shown = [...waits.filter((call) => call.asked), ...waits.filter((call) => !call.asked)].slice(0, mostWaiting);
    for (const [call, card] of this.cards) if (!shown.includes(call) || card.asked !== call.asked) { card.value.close(); this.cards.delete(call); }
    const cards = shown.map((call) => this.card(execution, call).element);
    if (waits.length > mostWaiting) cards.push(this.more ??= h("li.hint"));
    if (this.more) setText(this.more, `and ${count(waits.length - mostWaiting)} more, in the list of calls`);
    setChildren(this.list, cards);
  }

  card(execution, call) {
    if (!this.cards.has(call)) {
      const line = execution.lineOf(call);
      const value = new ValueBox("Input");
      value.show(call.input);
      const element = h("li.waiting-call", {}, h("h3", {}, brief(call.tool, 100), " ", h("span.hint", {}, brief(call.call, 40)),
        line !== null && [" ", h("button.link", { type: "button", onclick: () => this.goTo(line) }, `line ${count(line)}`)]), value.element,
      call.asked && new ApprovalForm(execution, call, this.signal).element);
      this.cards.set(call, { element, value, asked: call.asked });
    }
    return this.cards.get(call);
  }

  close() {
    for (const { value } of this.cards.values()) value.close();
  }
}
