// Breaks lines of text into rows of equal height, so that of a million rows only the visible ones must be
// drawn, and a line of a megabyte becomes many short rows.

// A Wrapped holds lines: {text, extra, …}. It knows which row belongs to which line. A line has as many
// rows as its text needs and, if extra is set, that many more below them.
export class Wrapped {
  columns = 80;
  lines = [];
  // starts[i] is the first row of line i; the last entry is the number of rows.
  starts = [0];

  get rows() {
    return this.starts[this.lines.length];
  }

  push(line) {
    this.starts.push(this.rows + this.height(line));
    this.lines.push(line);
  }

  // changeLast changes the text of the last line.
  changeLast(text) {
    const i = this.lines.length - 1;
    this.lines[i].text = text;
    this.starts[i + 1] = this.starts[i] + this.height(this.lines[i]);
  }

  // drop removes the first lines.
  drop(n) {
    this.lines.splice(0, n);
    this.measure();
  }

  // wrap changes the width of rows, and returns whether that changed anything.
  wrap(columns) {
    if (columns === this.columns || columns < 8) return false;
    this.columns = columns;
    this.measure();
    return true;
  }

  measure() {
    this.starts = [0];
    for (let i = 0, row = 0; i < this.lines.length; i++) this.starts.push((row += this.height(this.lines[i])));
  }

  height(line) {
    return Math.max(1, Math.ceil(line.text.length / this.columns)) + (line.extra ?? 0);
  }

  // at returns what a row shows: its line, the line's index, and the range of the line's text.
  at(row) {
    let low = 0;
    let high = this.lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= row) low = middle;
      else high = middle - 1;
    }
    const line = this.lines[low];
    const part = row - this.starts[low];
    const extra = part > 0 && part * this.columns >= line.text.length;
    return { line, index: low, first: part === 0, extra, from: border(line.text, part * this.columns), to: border(line.text, (part + 1) * this.columns) };
  }
}

// border moves a place in a text so that it does not split a character.
export function border(text, place) {
  const code = text.charCodeAt(place);
  return code >= 0xdc00 && code <= 0xdfff ? place - 1 : Math.min(place, text.length);
}
