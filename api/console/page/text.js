// Turns values into text that a person can read, and makes hostile text harmless.

// Characters that are invisible, move the cursor, or change the order of the characters around them.
// The two joiners that some scripts need (U+200C, U+200D) are allowed.
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u{d800}-\u{dfff}]|(?![\u200c\u200d])\p{Cf}/gu;

function escapeOf(character) {
  const n = character.codePointAt(0);
  const hex = n.toString(16);
  if (n <= 0xff) return "\\x" + hex.padStart(2, "0");
  return n <= 0xffff ? "\\u" + hex.padStart(4, "0") : `\\u{${hex}}`;
}

// visible returns one line of text with every unseen character written as an escape.
export function visible(text) {
  return text.replace(unseen, escapeOf);
}

// visibleLine is like visible, for a line of code or output: tabs become spaces up to the next tab stop, and
// a carriage return at the end of the line is removed.
export function visibleLine(line) {
  if (line.endsWith("\r")) line = line.slice(0, -1);
  if (line.includes("\t")) {
    let column = 0;
    line = line.replace(/[^\t]+|\t/g, (part) => {
      const text = part === "\t" ? " ".repeat(8 - (column % 8)) : part;
      column += text.length;
      return text;
    });
  }
  return visible(line);
}

// brief is like visible, and truncates the text to a length.
export function brief(text, length = 200) {
  const all = String(text ?? "");
  const cut = all.length > length ? all.slice(0, length).replace(/[\ud800-\udbff]$/, "") + "…" : all;
  return visible(cut);
}

// plural(2, "call") returns "2 calls".
export function plural(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

const grouped = new Intl.NumberFormat("en");

export function count(n) {
  return Number.isFinite(n) ? grouped.format(n) : "–";
}

// span returns a duration, given in milliseconds, as text: 12 ms, 1.52 s, 4:05 min, 2:10 h.
export function span(ms) {
  if (!Number.isFinite(ms)) return "–";
  ms = Math.max(0, ms);
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)} min`;
  return `${Math.floor(seconds / 3600)}:${two((seconds % 3600) / 60)} h`;
}

// size returns a number of bytes as text.
export function size(bytes) {
  if (!Number.isFinite(bytes)) return "–";
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let unit = -1;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return `${bytes < 9.95 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

// moment returns a time of day as text, with the date if it is not today.
export function moment(ms) {
  if (!Number.isFinite(ms)) return "–";
  const then = new Date(ms);
  const time = clock.format(then);
  return then.toDateString() === new Date().toDateString() ? time : `${day.format(then)}, ${time}`;
}

// fileName returns the last part of a path, as the name of a file to save.
export function fileName(path) {
  const name = brief(String(path ?? "").split("/").pop(), 120).replace(/[\\/:*?"<>|]/g, "_").replace(/^\.+/, "");
  return name || "file";
}

// The texts of the statuses and reasons that the server knows.
const statuses = {
  running: "Running", paused: "Paused", completed: "Completed", error: "Failed",
  timed_out: "Timed out", cancelled: "Cancelled", expired: "Expired",
};

export function statusWord(status) {
  return Object.hasOwn(statuses, status) ? statuses[status] : brief(status, 40) || "Unknown";
}

// statusClass returns the class of a status in the style sheet.
export function statusClass(status) {
  return Object.hasOwn(statuses, status) ? status : "unknown";
}

export const allStatuses = Object.keys(statuses);

export function isLive(status) {
  return status === "running" || status === "paused";
}
