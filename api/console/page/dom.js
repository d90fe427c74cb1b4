// Builds elements. Nothing in the page becomes markup: every text becomes a text node, and the
// attributes that can be set are those of a list, none of which runs or loads anything.

const attributes = new Set([
  "autocapitalize", "autocomplete", "class", "datetime", "for", "id", "inputmode", "list", "max", "maxlength", "min", "name",
  "placeholder", "role", "rows", "scope", "spellcheck", "step", "tabindex", "title", "type", "value", "wrap",
]);
const properties = new Set(["checked", "disabled", "hidden", "open", "readOnly", "selected"]);

// h("li.call", {role: "option", onclick: f}, "text", element) returns an element. Children that are
// null, undefined or false are left out.
export function h(name, given = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on") && typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (properties.has(key)) element[key] = value;
    else if (attributes.has(key) || /^(aria|data)-[a-z-]+$/.test(key)) element.setAttribute(key, String(value));
    else throw new Error(`no attribute of the console: ${key}`);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return element;
}

// setText changes the text of an element if it differs, so that the browser lays out nothing in vain.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// setChildren changes the children of an element. Those that stay in their order are not touched, so
// that the focus stays where it is.
export function setChildren(element, children) {
  const wanted = new Set(children);
  for (const child of [...element.childNodes]) if (!wanted.has(child)) child.remove();
  children.forEach((child, i) => {
    if (element.childNodes[i] !== child) element.insertBefore(child, element.childNodes[i] ?? null);
  });
}

// say announces a change to people who use a screen reader.
export function say(text) {
  setText(document.getElementById("news"), text);
}

// button returns a button.
export function button(label, onclick, given = {}) {
  const { kind = "", ...rest } = given;
  return h(`button${kind ? "." + kind : ""}`, { type: "button", onclick, ...rest }, label);
}

// painter returns a function that makes paint run before the next frame. However often the function is
// called, paint runs once. A tab in the background has no frames, so there a timer is used.
export function painter(paint) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    const run = () => {
      if (!asked) return;
      asked = false;
      paint();
    };
    if (document.hidden) setTimeout(run, 200);
    else requestAnimationFrame(run);
  };
}
