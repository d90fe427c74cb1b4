// The list of executions, which is fetched again every few seconds.

import { button, h, say, setChildren, setText } from "./dom.js";
import { parse } from "./json.js";
import { pill, setPill } from "./report.js";
import { Refusal, problem, query, readText, request, serverNow } from "./server.js";
import { allStatuses, brief, isLive, moment, plural, span, statusWord } from "./text.js";

const pageSize = 50;
const renewEvery = 2000;
const contracts = ["programmatic", "exec", "messages", "mcp", "tool"];

export const executionForm = /^[0-9a-fA-F-]{1,64}$/;

// What the list showed last, for when the person comes back to it. It is lost when the page is closed.
let filters = null;

function noFilters() {
  return { statuses: new Set(), contract: "", labels: [], principal: "", title: "", pages: [null] };
}

// forgetFilters forgets the filters, since another key is used now.
export function forgetFilters() {
  filters = null;
}

export class List {
  title = "Executions";

  constructor() {
    filters ??= noFilters();
    this.rows = new Map();
    this.data = null;
    this.stopped = new AbortController();
    this.turn = 0;
    this.build();
    this.renew();
    this.timer = setInterval(() => { if (!document.hidden) this.renew(); }, renewEvery);
    this.keys = (e) => this.press(e);
    document.addEventListener("keydown", this.keys);
  }

  build() {
    this.chips = allStatuses.map((status) => {
      const chip = button(statusWord(status), () => {
        if (!filters.statuses.delete(status)) filters.statuses.add(status);
        chip.setAttribute("aria-pressed", String(filters.statuses.has(status)));
        this.restart();
      }, { kind: "chip", "aria-pressed": String(filters.statuses.has(status)) });
      return chip;
    });
    this.contract = h("select", { id: "contract", onchange: () => { filters.contract = this.contract.value; this.restart(); } },
      h("option", { value: "" }, "any"), contracts.map((c) => h("option", { value: c, selected: filters.contract === c }, c)));
    this.label = h("input", { id: "label", placeholder: "key:value", autocomplete: "off", spellcheck: "false", onkeydown: (e) => { if (e.key === "Enter") this.addLabel(this.label.value); } });
    this.principal = h("input", { id: "principal", autocomplete: "off", spellcheck: "false", value: filters.principal, onchange: () => { filters.principal = this.principal.value.trim(); this.restart(); } });
    this.principalField = h("div.field", { hidden: filters.principal === "" }, h("label", { for: "principal" }, "Principal"), this.principal);
    this.search = h("input", { id: "search", type: "search", autocomplete: "off", value: filters.title, placeholder: "in the titles below", oninput: () => { filters.title = this.search.value; this.paint(); } });
    this.labels = h("span.labels");
    this.notice = h("p.notice", { role: "alert", hidden: true });
    this.list = h("ul.executions", { "aria-label": "Executions", "aria-busy": "true" });
    this.state = h("div.state", {}, h("p", {}, "Loading…"));
    this.newer = button("Newer", () => this.page(-1));
    this.older = button("Older", () => this.page(1));
    this.where = h("span.hint");
    this.element = h("div.view.list-view", {},
      h("div.view-head", {}, h("h1", { tabindex: "-1" }, "Executions"), this.where),
      h("div.filters", { role: "group", "aria-label": "Filters" },
        h("div.chips", { role: "group", "aria-label": "Status" }, this.chips),
        h("div.fields", {},
          h("div.field", {}, h("label", { for: "contract" }, "Contract"), this.contract),
          h("div.field", {}, h("label", { for: "label" }, "Label"), this.label),
          this.principalField,
          h("div.field.wide", {}, h("label", { for: "search" }, "Search"), this.search)),
        this.labels),
      this.notice, this.state, this.list,
      h("div.pages", { role: "group", "aria-label": "Pages" }, this.newer, this.older));
    this.paintLabels();
  }

  // restart shows the first page again.
  restart() {
    filters.pages = [null];
    this.data = null;
    this.renew();
  }

  page(step) {
    if (step > 0 && this.data?.next) filters.pages.push(this.data.next);
    if (step < 0 && filters.pages.length > 1) filters.pages.pop();
    this.data = null;
    this.renew();
    this.element.querySelector("h1").focus();
  }

  addLabel(text) {
    text = text.trim();
    if (text.indexOf(":") < 1 || filters.labels.includes(text)) return;
    filters.labels.push(text);
    this.label.value = "";
    this.paintLabels();
    this.restart();
  }

  paintLabels() {
    this.labels.hidden = filters.labels.length === 0;
    setChildren(this.labels, filters.labels.map((text) => button(`${brief(text, 80)} ✕`, () => {
      filters.labels = filters.labels.filter((t) => t !== text);
      this.paintLabels();
      this.restart();
    }, { kind: "chip", "aria-label": `Remove the label ${brief(text, 80)}` })));
  }

  // renew fetches the page again. An answer is ignored if another request was sent since, or the view was closed: the
  // filters of a reader who has signed out are gone.
  async renew() {
    const turn = ++this.turn;
    const path = "executions" + query({
      limit: pageSize, after: filters.pages.at(-1), status: [...filters.statuses], contract: filters.contract, label: filters.labels, principal: filters.principal,
    });
    try {
      const data = parse(await readText(await request(path, { signal: this.stopped.signal })));
      if (this.stopped.signal.aborted || turn !== this.turn) return;
      this.data = data;
      this.notice.hidden = true;
    } catch (error) {
      if (this.stopped.signal.aborted || turn !== this.turn) return;
      this.notice.hidden = false;
      setText(this.notice, error instanceof Refusal && error.status < 500 ? brief(problem(error), 500) : `${brief(problem(error), 500)}. Trying again…`);
      if (this.data === null) this.state.hidden = true;
    }
    this.paint();
  }

  paint() {
    if (this.data === null) {
      this.list.setAttribute("aria-busy", "true");
      if (this.notice.hidden && this.rows.size === 0) {
        this.state.hidden = false;
        setChildren(this.state, [h("p", {}, "Loading…")]);
      }
      return;
    }
    const wanted = filters.title.trim().toLowerCase();
    const all = this.data.data.filter((s) => executionForm.test(s.id));
    const shown = all.filter((s) => `${s.title ?? ""} ${s.id}`.toLowerCase().includes(wanted));
    if (all.some((s) => s.principal !== undefined)) this.principalField.hidden = false;
    for (const [id, row] of this.rows) if (!shown.some((s) => s.id === id)) { row.element.remove(); this.rows.delete(id); }
    setChildren(this.list, shown.map((summary) => {
      if (!this.rows.has(summary.id)) this.rows.set(summary.id, new ListRow(summary.id, (label) => this.addLabel(label)));
      const row = this.rows.get(summary.id);
      row.show(summary);
      return row.element;
    }));
    this.list.setAttribute("aria-busy", "false");
    this.list.hidden = shown.length === 0;
    this.state.hidden = shown.length > 0;
    if (shown.length === 0) this.paintEmpty(all.length > 0);
    this.newer.disabled = filters.pages.length === 1;
    this.older.disabled = !this.data.next;
    const live = all.filter((s) => isLive(s.status)).length;
    const text = `${plural(shown.length, "execution")}${filters.pages.length > 1 ? `, page ${filters.pages.length}` : ""} · ${live} live`;
    if (this.said !== undefined && this.said !== live) say(text);
    this.said = live;
    setText(this.where, text);
  }

  paintEmpty(hidden) {
    const filtered = hidden || filters.statuses.size > 0 || filters.contract !== "" || filters.labels.length > 0 || filters.principal !== "";
    const kind = filtered ? "filtered" : "empty";
    if (this.state.dataset.kind === kind && this.state.childElementCount > 1) return;
    this.state.dataset.kind = kind;
    if (filtered) {
      setChildren(this.state, [h("h2", {}, "Nothing matches"), h("p", {}, "No execution here fits the filters."), button("Clear the filters", () => {
        filters = noFilters();
        const fresh = new List();
        this.element.replaceWith(fresh.element);
        this.replaced(fresh);
      })]);
      return;
    }
    const go = h("a.button.primary", {}, "Open the playground");
    go.href = "#/playground";
    setChildren(this.state, [h("h2", {}, "No executions yet"),
      h("p", {}, "Each program that is run with your key appears here at once, and stays for as long as the server keeps its journal."), go]);
  }

  // press moves between rows if the key is j or k.
  press(e) {
    if ((e.key !== "j" && e.key !== "k") || e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select, [role=listbox]")) return;
    const links = [...this.list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    links[e.key === "j" ? Math.min(links.length - 1, at + 1) : Math.max(0, at - 1)]?.focus();
  }

  // replaced is set by the code that shows the view.
  replaced() {}

  close() {
    this.stopped.abort();
    clearInterval(this.timer);
    document.removeEventListener("keydown", this.keys);
  }
}

class ListRow {
  constructor(id, addLabel) {
    this.addLabel = addLabel;
    this.pill = pill();
    this.link = h("a.title");
    this.link.href = "#/executions/" + id;
    this.sub = h("span.sub");
    this.labels = h("span.labels");
    this.work = h("span.work");
    this.took = h("span.took");
    this.made = h("span.made");
    this.element = h("li.execution", {}, h("span.pill-cell", {}, this.pill), h("span.what", {}, this.link, this.sub, this.labels), this.work, this.took, this.made);
  }

  show(s) {
    setPill(this.pill, s.status);
    setText(this.link, s.title ? brief(s.title, 200) : `${brief(s.contract, 20)} ${s.id.slice(0, 8)}`);
    const about = [s.principal && `of ${brief(s.principal, 80)}`, s.id.slice(0, 8), brief(s.contract, 20), brief(s.language, 20), s.error && brief(s.error, 120)];
    setText(this.sub, about.filter(Boolean).join(" · "));
    const labels = JSON.stringify(s.labels ?? {});
    if (labels !== this.drawn) {
      this.drawn = labels;
      setChildren(this.labels, Object.entries(s.labels ?? {}).slice(0, 16).map(([key, value]) =>
        button(`${brief(key, 64)}: ${brief(value, 60)}`, () => this.addLabel(`${key}:${value}`), { kind: "tag", title: "Show only these" })));
    }
    setText(this.work, `${plural(s.calls ?? 0, "call")}, ${plural(s.rounds ?? 0, "round")}`);
    setText(this.took, isLive(s.status) ? `${span(serverNow() - Date.parse(s.created_at))} ago` : span(s.ran_ms));
    this.took.title = isLive(s.status) ? "since its start" : "time in which the program ran";
    setText(this.made, moment(Date.parse(s.created_at)));
  }
}
