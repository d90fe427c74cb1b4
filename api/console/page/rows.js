// A list of rows of equal height, of which only the visible ones are elements.

import { h, painter } from "./dom.js";

export const rowHeight = 20;

// Browsers limit the height of elements.
const mostRows = 1_500_000;

// A Rows shows the rows that draw(i) makes. count() returns how many there are. If resized is given, it is
// called with the number of characters that fit into a row. If follow is true, the list stays scrolled to
// its end as it grows.
export class Rows {
  constructor({ label, kind = "", count, draw, resized = null, follow = false, height = rowHeight, given = {} }) {
    Object.assign(this, { count, draw, resized, follow, height });
    this.window = h("div.rows-window", { role: "presentation" });
    this.spacer = h("div.rows-spacer", { role: "presentation" }, this.window);
    this.probe = h("span.rows-probe", { "aria-hidden": "true" }, "0".repeat(100));
    this.element = h("div.rows" + (kind ? "." + kind : ""), { role: "region", "aria-label": label, tabindex: "0", ...given }, this.probe, this.spacer);
    this.atEnd = true;
    this.drawn = "";
    this.update = painter(() => this.paint());
    this.element.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.element;
      this.atEnd = scrollTop + clientHeight >= scrollHeight - this.height;
      this.update();
    }, { passive: true });
    this.observer = new ResizeObserver(() => this.measure());
    this.observer.observe(this.element);
  }

  // measure finds out how many characters fit into a row.
  measure() {
    const width = this.probe.getBoundingClientRect().width / 100;
    const indent = parseFloat(getComputedStyle(this.element).getPropertyValue("--indent")) || 0;
    if (this.resized !== null && width > 0) this.resized(Math.max(16, Math.floor((this.element.clientWidth - indent) / width)));
    this.redraw();
  }

  // redraw draws the visible rows again, since they may look different although no row was added.
  redraw() {
    this.drawn = "";
    this.update();
  }

  paint() {
    const n = Math.min(this.count(), mostRows);
    const total = n * this.height + "px";
    if (this.spacer.style.height !== total) {
      this.spacer.style.height = total;
      this.drawn = "";
    }
    if (this.follow && this.atEnd) this.element.scrollTop = this.element.scrollHeight;
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 4);
    const last = Math.min(n, Math.ceil((this.element.scrollTop + this.element.clientHeight) / this.height) + 4);
    const now = `${first} ${last} ${n}`;
    if (now === this.drawn) return;
    this.drawn = now;
    this.window.style.transform = `translateY(${first * this.height}px)`;
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.draw(i));
    this.window.replaceChildren(...rows);
  }

  // reveal scrolls to a row.
  reveal(row) {
    const top = row * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.element.scrollTop = top + this.height - clientHeight;
    this.redraw();
  }

  close() {
    this.observer.disconnect();
  }
}
