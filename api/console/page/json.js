// Reads and shows JSON without losing a digit: JavaScript's numbers have 53 bits.

const exactly = typeof JSON.rawJSON === "function";

// keepNumber keeps the text of a number that JavaScript would write in another way.
function keepNumber(_key, value, context) {
  return typeof value === "number" && context?.source !== undefined && String(value) !== context.source ? JSON.rawJSON(context.source) : value;
}

// parse is JSON.parse for values that are shown.
export function parse(text) {
  return exactly ? JSON.parse(text, keepNumber) : JSON.parse(text);
}

const shortLine = 64;

// pretty returns a value as indented JSON, or on one line if that is short.
export function pretty(value) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  // Line breaks within strings are escapes, so these line breaks are between values.
  const line = text.length < 2 * shortLine ? text.replace(/([[{])\n\s*/g, "$1").replace(/\n\s*([\]}])/g, "$1").replace(/\n\s*/g, " ") : text;
  return line.length <= shortLine ? line : text;
}

// compact returns a value as one line of JSON, truncated to a length.
export function compact(value, length = 160) {
  const text = JSON.stringify(value) ?? "";
  return text.length > length ? text.slice(0, length) + "…" : text;
}

// cutOff returns what the server has kept of a value that was too large: {head, bytes}, or null.
export function cutOff(value) {
  const is = value !== null && typeof value === "object" && value.truncated === true && typeof value.bytes === "number";
  return is ? { head: String(value.head ?? ""), bytes: value.bytes } : null;
}
