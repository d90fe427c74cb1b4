// A place to write code: a plain text area, with line numbers and colours drawn for the visible part.

import { h, painter } from "./dom.js";
import { tokens } from "./highlight.js";
import { rowHeight } from "./rows.js";

export class Editor {
  constructor({ id, label, language, changed = () => {} }) {
    this.language = language;
    this.marks = new Map();
    this.area = h("textarea", {
      id, "aria-label": label, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
      oninput: () => { this.read(); changed(); }, onscroll: () => this.update(), onkeydown: (e) => this.press(e),
    });
    this.numbers = h("div.editor-numbers", { "aria-hidden": "true" });
    this.colours = h("div.editor-colours", { "aria-hidden": "true" });
    this.element = h("div.editor", {}, this.numbers, h("div.editor-area", {}, this.colours, this.area));
    this.update = painter(() => this.paint());
    new ResizeObserver(() => this.update()).observe(this.area);
    this.read();
  }

  get value() {
    return this.area.value;
  }

  set(text, language = this.language) {
    this.language = language;
    this.area.value = text;
    this.read();
  }

  read() {
    this.lines = tokens(this.area.value, this.language);
    this.update();
  }

  // mark marks lines, counted from 1.
  mark(marks) {
    this.marks = marks;
    this.update();
  }

  reveal(line) {
    this.area.scrollTop = Math.max(0, (line - 4) * rowHeight);
    this.update();
  }

  paint() {
    const { scrollTop, scrollLeft, clientHeight } = this.area;
    const first = Math.floor(scrollTop / rowHeight);
    const last = Math.min(this.lines.length, first + Math.ceil(clientHeight / rowHeight) + 2);
    const numbers = [];
    const lines = [];
    for (let i = first; i < last; i++) {
      const marked = this.marks.has(i + 1) ? ".marked" : "";
      numbers.push(h("div.number" + marked, {}, i + 1));
      // A line may be a megabyte, of which only the beginning is coloured.
      lines.push(h("div.row" + marked, marked ? { "data-line": i + 1 } : {}, this.lines[i].slice(0, 500).map(([kind, text]) => (kind === "" ? text.slice(0, 5000) : h("span.hl-" + kind, {}, text.slice(0, 5000))))));
    }
    this.numbers.replaceChildren(...numbers);
    this.colours.replaceChildren(...lines);
    const top = first * rowHeight - scrollTop;
    this.numbers.style.transform = `translateY(${top}px)`;
    this.colours.style.transform = `translate(${-scrollLeft}px, ${top}px)`;
  }

  // press gives a new line the indentation of the line above. The tab key moves to the next field, as
  // everywhere.
  press(e) {
    if (e.key !== "Enter" || e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return;
    const { value, selectionStart: at } = this.area;
    const line = value.slice(value.lastIndexOf("\n", at - 1) + 1, at);
    const indent = /^[ \t]*/.exec(line)[0] + (/[:{[(]\s*$/.test(line) ? "    " : "");
    if (indent === "") return;
    e.preventDefault();
    this.area.setRangeText("\n" + indent, at, this.area.selectionEnd, "end");
    this.read();
  }
}
