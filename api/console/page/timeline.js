// The time axis: it places moments of an execution between its beginning and now.

import { h } from "./dom.js";
import { span } from "./text.js";

// A Scale maps moments to percents of the axis.
export class Scale {
  constructor(from, to) {
    this.from = from;
    this.length = Math.max(1, to - from);
  }

  percent(at) {
    return Math.min(100, Math.max(0, ((at - this.from) / this.length) * 100));
  }

  // place puts an element on the axis.
  place(element, from, to) {
    const left = this.percent(from);
    element.style.left = left + "%";
    element.style.width = Math.max(0, this.percent(to) - left) + "%";
    return element;
  }

  // ticks returns the marks of an axis with a width in pixels.
  ticks(width) {
    const rough = this.length / Math.min(5, Math.max(1, width / 90));
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
    const marks = [];
    for (let at = 0; at <= this.length; at += step) {
      // A label near the end of the axis would not fit.
      const mark = h("span.tick", {}, at <= this.length * (1 - 60 / Math.max(61, width)) ? span(at) : "");
      mark.style.left = (at / this.length) * 100 + "%";
      marks.push(mark);
    }
    return marks;
  }
}

// spansOf returns the times in which the program ran and those in which it was paused.
export function spansOf(execution, scale) {
  return execution.spans.slice(-500).map((s) => {
    const bar = h("span.bar.of-" + s.status, { title: `${s.status === "paused" ? "paused" : "ran"} for ${span((s.to ?? execution.now) - s.from)}` });
    return scale.place(bar, s.from, s.to ?? execution.now);
  });
}
