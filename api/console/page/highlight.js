// Colours code. The colours are only a help: code that is coloured wrongly is still shown as it is.

import { visibleLine } from "./text.js";

const python = new RegExp([
  /(?<text>[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$(?![^]))|'''[^]*?(?:'''|$(?![^]))|"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?))/,
  /(?<note>#[^\n]*)/,
  /(?<word>\b(?:and|as|assert|async|await|break|case|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|match|nonlocal|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b)/,
  /(?<number>\b\d[\w.]*)/,
  /(?<name>[A-Za-z_]\w*(?=\())/,
  /[A-Za-z_]\w*/,
].map((r) => r.source).join("|"), "g");

const bash = new RegExp([
  /(?<text>"(?:\\[^]|[^"\\])*"?|'[^']*'?)/,
  /(?<note>(?<![^\s;])#[^\n]*)/,
  /(?<word>\b(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|in|function|return|exit|local|export|set|wait)\b)/,
  /(?<name>\$\{?\w+\}?)/,
  /(?<number>\b\d+\b)/,
  /\w+/,
].map((r) => r.source).join("|"), "g");

const json = /(?<name>"(?:\\[^]|[^"\\\n])*"(?=\s*:))|(?<text>"(?:\\[^]|[^"\\\n])*"?)|(?<word>\b(?:true|false|null)\b)|(?<number>-?\b\d[\d.eE+-]*)/g;

const languages = { python, bash, json };

// tokens returns the lines of a text, each as a list of [class, text].
export function tokens(text, language) {
  const lines = [[]];
  const add = (kind, piece) => {
    piece.split("\n").forEach((part, i) => {
      if (i > 0) lines.push([]);
      if (part !== "") lines.at(-1).push([kind, part]);
    });
  };
  let end = 0;
  for (const match of Object.hasOwn(languages, language) ? text.matchAll(languages[language]) : []) {
    if (match.index > end) add("", text.slice(end, match.index));
    const kind = Object.keys(match.groups).find((k) => match.groups[k] !== undefined);
    add(kind ?? "", match[0]);
    end = match.index + match[0].length;
  }
  add("", text.slice(end));
  return lines;
}

// highlight is like tokens, but replaces invisible characters by escapes.
export function highlight(text, language) {
  return tokens(text, language).map((line) => line.map(([kind, piece]) => [kind, visibleLine(piece)]));
}
