// The choice between light and dark: the system's, unless the person chooses.

import { setText } from "./dom.js";

const themePlace = "fermata.theme";
const themes = ["auto", "light", "dark"];
const themeLabels = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" };

function storedTheme() {
  try {
    return localStorage.getItem(themePlace);
  } catch {
    return null;
  }
}

// startTheme applies the choice and makes a button change it.
export function startTheme(control) {
  let now = themes.includes(storedTheme()) ? storedTheme() : "auto";
  const apply = () => {
    if (now === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = now;
    setText(control, themeLabels[now]);
  };
  control.addEventListener("click", () => {
    now = themes[(themes.indexOf(now) + 1) % themes.length];
    try {
      localStorage.setItem(themePlace, now);
    } catch {
      // The choice holds until the page is closed.
    }
    apply();
  });
  apply();
}
