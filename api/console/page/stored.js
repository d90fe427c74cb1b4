// The files that a program left. Pictures are shown, and all files can be downloaded.

import { button, h, setChildren } from "./dom.js";
import { mostPixels, pictureOf } from "./pictures.js";
import { problem, query, readBytes, request } from "./server.js";
import { brief, count, fileName, plural, size } from "./text.js";

const largestPicture = 25 << 20;
const largestDownload = 512 << 20;
const mostFiles = 300;
const idForm = /^[A-Za-z0-9_-]{1,64}$/;
const pictureName = /\.(png|jpe?g|gif|webp)$/i;

// pathOf returns the path from which a file can be downloaded, or null if its entry names no file. An
// operator names the principal whose file it is.
function pathOf(file, principal) {
  const session = String(file.storage_session_id ?? file.session_id ?? "");
  const id = String(file.id ?? "");
  if (!idForm.test(session) || !idForm.test(id)) return null;
  const owned = file.kind === "agent" || file.kind === "skill";
  const owner = owned ? { kind: file.kind, id: String(file.resource_id ?? ""), version: file.version } : {};
  return `download/${session}/${id}` + query({ principal, ...owner });
}

export class FilesBox {
  constructor() {
    this.cards = new Map();
    this.pixels = 0;
    this.ended = new AbortController();
    this.loading = Promise.resolve();
    this.urls = [];
    this.grid = h("ul.files");
    this.number = h("span.hint");
    this.element = h("section.panel.files-panel", { "aria-label": "Files", hidden: true },
      h("div.panel-head", {}, h("h2", {}, "Files"), this.number), this.grid);
  }

  show(files, principal) {
    this.principal = principal;
    const shown = files.slice(0, mostFiles);
    this.element.hidden = files.length === 0;
    this.number.textContent = plural(files.length, "file");
    setChildren(this.grid, shown.map((file) => this.card(file)));
  }

  card(file) {
    if (!this.cards.has(file)) {
      const name = String(file.name ?? "");
      const note = h("p.hint", { role: "status" }, file.inherited ? "unchanged input" : file.modified_from ? "changed input" : "new");
      const frame = h("div.picture", { hidden: true });
      const card = h("li.file", {}, frame,
        h("div.file-line", {}, h("span.file-name", { title: brief(name, 300) }, brief(name, 300)), button("Download", () => this.save(file, note), { kind: "small", "aria-label": `Download ${brief(name, 100)}` })), note);
      this.cards.set(file, card);
      if (pictureName.test(name) && pathOf(file, this.principal) !== null) this.loading = this.loading.then(() => this.picture(file, frame, note));
    }
    return this.cards.get(file);
  }

  // picture fetches a file and shows it if it is a picture.
  async picture(file, frame, note) {
    if (this.ended.signal.aborted) return;
    try {
      const response = await request(pathOf(file, this.principal), { accept: "*/*", signal: this.ended.signal });
      const bytes = await readBytes(response, largestPicture);
      const found = pictureOf(bytes);
      if (found === null) {
        note.textContent = "not a picture, in spite of its name";
        return;
      }
      if (this.pixels + found.width * found.height > mostPixels) {
        note.textContent = `${count(found.width)} × ${count(found.height)} pixels: too many to show`;
        return;
      }
      this.pixels += found.width * found.height;
      const image = h("img", {});
      image.alt = `Picture ${brief(fileName(file.name), 100)}`;
      image.width = found.width;
      image.height = found.height;
      image.src = this.url(new Blob([bytes], { type: found.type }));
      await image.decode();
      frame.replaceChildren(image);
      frame.hidden = false;
      note.textContent = `${count(found.width)} × ${count(found.height)} pixels, ${size(bytes.byteLength)}`;
    } catch (error) {
      if (!this.ended.signal.aborted) note.textContent = `Not shown: ${brief(problem(error))}`;
    }
  }

  url(blob) {
    const url = URL.createObjectURL(blob);
    this.urls.push(url);
    return url;
  }

  async save(file, note) {
    const path = pathOf(file, this.principal);
    try {
      if (path === null) throw new Error("the entry names no file");
      const response = await request(path, { accept: "*/*", signal: this.ended.signal });
      const bytes = await readBytes(response, largestDownload);
      const link = document.createElement("a");
      link.href = this.url(new Blob([bytes], { type: "application/octet-stream" }));
      link.download = fileName(file.name);
      link.click();
    } catch (error) {
      if (!this.ended.signal.aborted) note.textContent = `Not downloaded: ${brief(problem(error))}`;
    }
  }

  close() {
    this.ended.abort();
    for (const url of this.urls) URL.revokeObjectURL(url);
  }
}
