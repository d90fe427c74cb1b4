// The contract of outputs: the files that a program had to produce, and what became of each.

import { h, setChildren, setText } from "./dom.js";
import { brief, plural, size } from "./text.js";

const mostOutputs = 50;

// For each state of the server: its text, and whether the file was stored.
const outputWords = {
  produced: ["Produced", true], too_small: ["Too small", true], missing: ["Missing", false], empty: ["Empty", false],
  too_large: ["Too large", false], not_regular: ["Not a regular file", false], unreadable: ["Unreadable", false], undelivered: ["Not stored", false],
};

function outputWord(state) {
  return Object.hasOwn(outputWords, state) ? outputWords[state] : [brief(state, 40) || "Unknown", false];
}

export class OutputsBox {
  constructor() {
    this.drawn = 0;
    this.number = h("span.hint");
    this.list = h("ul.outputs");
    this.element = h("section.panel.outputs-panel", { "aria-label": "Contracted outputs", hidden: true },
      h("div.panel-head", {}, h("h2", {}, "Contracted outputs"), this.number), this.list);
  }

  show(judged) {
    this.element.hidden = judged.length === 0;
    if (judged.length === this.drawn) return;
    this.drawn = judged.length;
    const there = judged.filter((output) => outputWord(output.state)[1]).length;
    setText(this.number, `${there} of ${plural(judged.length, "file")}`);
    setChildren(this.list, judged.slice(0, mostOutputs).map((output) => {
      const [word, good] = outputWord(output.state);
      return h(good ? "li.promised" : "li.promised.is-broken", {},
        h("span.file-name", {}, brief(output.path, 300)), h("span.verdict", {}, word),
        h("span.hint", {}, [output.error && brief(output.error, 200), Number.isFinite(output.size) && size(output.size), output.mime && brief(output.mime, 100)].filter(Boolean).join(", ")));
    }));
  }
}
