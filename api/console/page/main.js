// The entry point: asks for a key if the server wants one, and shows the view that the address names.

import { h, button, say, setText } from "./dom.js";
import { ExecutionView } from "./execution.js";
import { List, executionForm, forgetFilters } from "./list.js";
import { Playground } from "./playground.js";
import { Refusal, getKey, onRefusedKey, problem, request, setKey } from "./server.js";
import { startTheme } from "./theme.js";
import { brief } from "./text.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const leave = document.getElementById("leave");

let view = null;
let playground = null;
let open = false;

// show shows a view, and ends the one before it. Only the playground goes on while it is not shown.
function show(next) {
  if (view !== null && view !== playground) view.close?.();
  view = next;
  main.replaceChildren(next.element);
  if (next instanceof List) next.replaced = show;
  document.title = `${brief(next.title, 200)} – Fermata`;
}

// route shows the view that the address names. Addresses name views and executions, and nothing else.
function route() {
  if (!open) return;
  const [, name = "", id = ""] = location.hash.split("/");
  const wanted = name === "executions" && executionForm.test(id) ? "execution" : name === "playground" ? "playground" : "list";
  for (const link of nav.querySelectorAll("a")) {
    if (link.dataset.view === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (wanted === "execution") show(new ExecutionView(id));
  else if (wanted === "playground") show(playground ??= new Playground());
  else show(new List());
}

// signIn asks for a key.
function signIn(text = "") {
  open = false;
  nav.hidden = leave.hidden = true;
  const key = h("input", { id: "key", type: "password", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const note = h("p.failure", { role: "alert", hidden: text === "" }, text);
  const enter = button("Open the console", null, { kind: "primary", type: "submit" });
  const form = h("form.sign-in", {
    onsubmit: async (e) => {
      e.preventDefault();
      const given = key.value.trim();
      if (given === "") return key.focus();
      enter.disabled = true;
      note.hidden = true;
      const refusal = await tryKey(given);
      enter.disabled = false;
      if (refusal === null) {
        key.value = "";
        setKey(given);
        return enterConsole();
      }
      note.hidden = false;
      setText(note, refusal);
      return key.focus();
    },
  },
  h("h1", {}, "Sign in"),
  h("p", {}, "See what programs do while they run, and answer their calls."),
  h("div.field", {}, h("label", { for: "key" }, "API key"), key),
  note, enter,
  h("p.hint", {}, "The key stays in this tab, and goes with it. It is sent to this server only."));
  show({ element: form, title: "Sign in" });
  key.focus();
}

// tryKey returns null if the server accepts a key, and otherwise what is wrong.
async function tryKey(key) {
  try {
    await request("executions?limit=1", { key });
    return null;
  } catch (error) {
    if (error instanceof TypeError) return "A key has no such characters.";
    return brief(problem(error), 300);
  }
}

function enterConsole() {
  open = true;
  nav.hidden = false;
  leave.hidden = getKey() === null;
  route();
}

// signOut forgets the key and everything that it has shown.
function signOut(text) {
  setKey(null);
  forgetFilters();
  playground?.end();
  playground = null;
  signIn(text);
  say(text);
}

// begin finds out whether the server wants a key.
async function begin() {
  main.replaceChildren(h("div.state", {}, h("p", {}, "Loading…")));
  const had = getKey() !== null;
  try {
    await request("executions?limit=1");
    enterConsole();
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) signIn(had ? "The server does not accept the key of this tab any more." : "");
    else main.replaceChildren(h("div.state", {}, h("h2", {}, "The server does not answer as it should"), h("p", {}, brief(problem(error), 500)), button("Try again", begin)));
  }
}

onRefusedKey(() => { if (open) signOut("The server does not accept this key any more."); else setKey(null); });
leave.addEventListener("click", () => signOut(""));
window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return;
  route();
  main.querySelector("h1")?.focus();
});
document.getElementById("skip").addEventListener("click", (e) => {
  // The fragment of the address names the view.
  e.preventDefault();
  main.focus();
});
startTheme(document.getElementById("theme"));
begin();
