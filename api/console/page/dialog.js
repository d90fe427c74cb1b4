// Asks before something is done that cannot be undone.

import { button, h } from "./dom.js";

// confirmed resolves to true if the person agrees.
export function confirmed(title, text, yes) {
  return new Promise((resolve) => {
    const answer = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const dialog = h("dialog.ask", { "aria-labelledby": "ask-title", oncancel: (e) => { e.preventDefault(); answer(false); } },
      h("h2", { id: "ask-title" }, title),
      h("p", {}, text),
      h("div.buttons", {},
        button("Keep it", () => answer(false)),
        button(yes, () => answer(true), { kind: "danger" })));
    document.body.append(dialog);
    dialog.showModal();
  });
}
