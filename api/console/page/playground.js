// A place to write a program and its tools, run it, and answer its calls by hand. Nothing runs before
// the person asks for it, and nothing comes from the address of the page.

import { button, h, say, setChildren, setText } from "./dom.js";
import { AnswerForm } from "./answers.js";
import { Editor } from "./editor.js";
import { examples } from "./examples.js";
import { waitingMarks } from "./execution.js";
import { catchUp } from "./follow.js";
import { parse } from "./json.js";
import { Execution } from "./model.js";
import { Report, pill, setPill } from "./report.js";
import { Refusal, problem, readText, request } from "./server.js";
import { readEvents } from "./sse.js";
import { brief, isLive, span } from "./text.js";

const idOfExecution = /^[0-9a-fA-F-]{1,64}$/;

export class Playground {
  title = "Playground";

  constructor() {
    this.execution = null;
    // The token is kept in memory only, since it lets anybody who has it continue the program.
    this.token = null;
    this.form = null;
    this.request = null;
    this.build();
    this.load(examples[0]);
  }

  build() {
    this.code = new Editor({ id: "code", label: "Program", language: "python" });
    this.tools = new Editor({ id: "tools", label: "Tools, as JSON", language: "json" });
    this.example = h("select", { id: "example", onchange: () => this.load(examples[this.example.value]) }, examples.map((e, i) => h("option", { value: i }, e.name)));
    this.language = h("select", { id: "language", onchange: () => this.code.set(this.code.value, this.language.value) },
      h("option", { value: "python" }, "Python"), h("option", { value: "bash" }, "Bash"));
    this.budget = h("input", { id: "budget", type: "number", min: "1", max: "300", step: "1", value: "60", inputmode: "numeric" });
    this.name = h("input", { id: "name", maxlength: "200", autocomplete: "off", placeholder: "optional" });
    this.toolsets = h("input", { id: "toolsets", autocomplete: "off", spellcheck: "false", placeholder: "of the server, such as weather, desk.book" });
    this.run = button("Run", () => this.start(), { kind: "primary", id: "run" });
    this.cancel = button("Cancel", () => this.stop(), { kind: "danger", id: "cancel", disabled: true });
    this.problem = h("p.failure", { role: "alert", hidden: true });
    this.pill = pill();
    this.about = h("span.hint");
    this.more = h("a", { hidden: true }, "Open it in the list");
    this.notice = h("div.notice", { role: "alert", hidden: true });
    this.forms = h("div.forms");
    this.hint = h("div.state.slim", {}, h("p", {}, "Run the program: its output appears here as it comes, and its calls wait here for your answers."));
    this.report = new Report({ changed: () => this.paint(), goTo: (line) => this.code.reveal(line) });
    this.result = h("div.result", { hidden: true }, h("div.run-head", {}, this.pill, this.about, this.more), this.notice, this.forms, this.report.end, this.report.output.element, this.report.outputs.element, this.report.files.element);
    this.lower = h("div", { hidden: true }, this.report.calls.element);
    this.element = h("div.view.playground-view", { onkeydown: (e) => this.press(e) },
      h("div.view-head", {}, h("h1", { tabindex: "-1" }, "Playground")),
      h("div.columns.halves", {},
        h("section.panel.write", { "aria-label": "Write" },
          h("div.fields", {},
            h("div.field.wide", {}, h("label", { for: "example" }, "Begin with"), this.example),
            h("div.field", {}, h("label", { for: "language" }, "Language"), this.language),
            h("div.field.short", {}, h("label", { for: "budget" }, "Seconds"), this.budget),
            h("div.field.wide", {}, h("label", { for: "name" }, "Title"), this.name)),
          h("h2", {}, "Program"), this.code.element,
          h("h2", {}, "Tools"), this.tools.element,
          h("div.fields", {}, h("div.field.wide", {}, h("label", { for: "toolsets" }, "Toolsets"), this.toolsets)),
          this.problem,
          h("div.buttons", {}, this.run, this.cancel, h("span.hint.keys", {}, "Ctrl + Enter runs it"))),
        h("section.follow", { "aria-label": "What happens" }, this.hint, this.result)),
      this.lower);
  }

  load(example) {
    this.language.value = example.language;
    this.code.set(example.code, example.language);
    this.tools.set(JSON.stringify(example.tools, null, 2));
    this.code.mark(new Map());
  }

  press(e) {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    if (e.target.closest("form.answers")) this.form?.submit();
    else this.start();
  }

  complain(text) {
    this.problem.hidden = text === null;
    setText(this.problem, text ?? "");
  }

  // start runs the program.
  start() {
    if (this.request !== null || this.token !== null) {
      this.complain("The last program has not ended. Cancel it to run another one.");
      return;
    }
    let tools;
    try {
      tools = JSON.parse(this.tools.value.trim() || "[]");
      if (!Array.isArray(tools)) throw new Error("it is no list");
    } catch (error) {
      this.complain(`The tools are no JSON list: ${brief(error.message)}`);
      this.tools.area.focus();
      return;
    }
    const seconds = Number(this.budget.value);
    if (!(seconds >= 1 && seconds <= 300)) {
      this.complain("A program may run for 1 to 300 seconds.");
      this.budget.focus();
      return;
    }
    this.complain(null);
    this.execution = new Execution();
    this.code.mark(new Map());
    this.report.show(this.execution);
    this.hint.hidden = true;
    this.result.hidden = this.lower.hidden = false;
    this.more.hidden = true;
    const title = this.name.value.trim();
    const toolsets = this.toolsets.value.split(/[\s,]+/).filter((name) => name !== "");
    this.post(JSON.stringify({
      code: this.code.value, lang: this.language.value, tools, approvals: true, timeout: Math.round(seconds * 1000),
      ...(toolsets.length === 0 ? {} : { toolsets }), ...(title === "" ? {} : { title }),
    }));
  }

  // post sends a start or a continuation, and shows what comes of it.
  async post(body) {
    const { execution } = this;
    const continues = this.token !== null;
    const abort = new AbortController();
    this.request = abort;
    this.notice.hidden = true;
    this.paint();
    try {
      const answer = await this.exchange(body, execution, abort.signal);
      if (answer === undefined) throw new Error("The stream ended without an answer");
      this.request = null;
      await this.answered(answer, execution, abort.signal);
    } catch (error) {
      this.request = null;
      if (!abort.signal.aborted) this.failed(error, body, continues);
      else if (!continues) this.ended(execution, { status: "cancelled" });
    }
    this.report.update();
  }

  // exchange returns the answer {http_status, body}. The events before it go to the execution.
  async exchange(body, execution, signal) {
    const response = await request("exec/programmatic", { method: "POST", accept: "text/event-stream, application/json;q=0.5", body, signal });
    const id = response.headers.get("Fermata-Execution");
    if (id !== null && idOfExecution.test(id)) execution.id = id;
    if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
      return { http_status: response.status, body: parse(await readText(response)) };
    }
    let answer;
    await readEvents(response, (frames) => {
      for (const frame of frames) {
        if (frame.event === "answer") answer = parse(frame.data);
        else execution.apply(parse(frame.data));
      }
      this.report.update();
    });
    return answer;
  }

  async answered({ body }, execution, signal) {
    this.closeForm();
    if (body.status === "tool_call_required") {
      this.token = body.continuation_token;
      execution.status = "paused";
      this.form = new AnswerForm({
        calls: body.tool_calls, execution, goTo: (line) => { this.code.reveal(line); this.code.area.focus(); },
        sent: (results) => {
          this.form.busy(true);
          this.post(`{"continuation_token":${JSON.stringify(this.token)},"tool_results":${results}}`);
        },
      });
      setChildren(this.forms, [this.form.element]);
      this.form.focus();
      return;
    }
    this.token = null;
    if (execution.ended === null && execution.seq > 0 && execution.id !== null) {
      // The answer was sent before, and is repeated without events.
      await catchUp(execution.id, execution, signal).catch(() => {});
    }
    this.ended(execution, body);
  }

  // ended shows the end that the answer tells, if there are no events.
  ended(execution, body) {
    this.token = null;
    this.closeForm();
    if (execution.ended !== null) return;
    if (execution.output.wrapped.lines.length === 0) {
      execution.output.add("stdout", String(body.stdout ?? ""));
      execution.output.add("stderr", String(body.stderr ?? ""));
    }
    if (execution.files.length === 0 && Array.isArray(body.files)) execution.files = body.files;
    execution.ended = { status: body.status, error: body.error };
    execution.turn(String(body.status), execution.latest ?? Date.now());
  }

  failed(error, body, continues) {
    const again = error instanceof Refusal && error.status !== 429 && error.status < 500 && error.status !== 409 ? null : button("Try again", () => this.post(body), { kind: "small" });
    this.notice.hidden = false;
    setChildren(this.notice, [h("span", {}, brief(problem(error), 1000)), continues ? again : null].filter(Boolean));
    if (continues && error instanceof Refusal && /expired|Invalid continuation token/i.test(error.message)) {
      this.ended(this.execution, { status: "expired", error: error.message });
    } else if (continues) {
      this.form?.busy(false);
    } else {
      this.ended(this.execution, { status: "error", error: problem(error) });
      this.notice.hidden = true;
    }
  }

  // stop cancels the execution.
  async stop() {
    const { execution, request: running } = this;
    this.cancel.disabled = true;
    try {
      if (execution.id === null) throw new Refusal(404, "");
      await request(`executions/${execution.id}/cancel`, { method: "POST" });
      if (running === null) this.ended(execution, { status: "cancelled" });
    } catch (error) {
      // A server without this route ends the program when its client disconnects.
      if (error instanceof Refusal && error.status === 404 && running !== null) running.abort();
      else if (error instanceof Refusal && error.status === 409) this.ended(execution, { status: "cancelled" });
      else this.failed(error, null, true);
    }
    this.report.update();
  }

  closeForm() {
    this.form?.close();
    this.form = null;
    setChildren(this.forms, []);
  }

  paint() {
    const { execution } = this;
    if (execution === null) return;
    const busy = this.request !== null;
    const status = execution.status ?? (busy ? "running" : "error");
    setPill(this.pill, busy && !isLive(status) && execution.ended === null ? "running" : status);
    this.run.disabled = busy || this.token !== null;
    this.cancel.disabled = !(busy || this.token !== null);
    setText(this.about, execution.seq === 0 ? (busy ? "Starting…" : "") : `${span(execution.now - execution.first)} since its start`);
    if (execution.id !== null && idOfExecution.test(execution.id) && execution.seq > 0) {
      this.more.hidden = false;
      this.more.href = "#/executions/" + execution.id;
    }
    this.form?.tick();
    const marks = waitingMarks(execution);
    const now = JSON.stringify([...marks]);
    if (now !== this.drawnMarks) {
      this.drawnMarks = now;
      this.code.mark(marks);
      const [first] = marks.keys();
      if (first !== undefined) this.code.reveal(first);
    }
  }

  // end removes everything, since another key is used now.
  end() {
    this.request?.abort();
    this.token = null;
    this.closeForm();
    this.report.close();
    say("");
  }
}
