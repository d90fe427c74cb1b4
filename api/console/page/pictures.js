// Finds out by its first bytes whether a file is a picture that may be shown. The type that a program claims
// is ignored. Only pictures of these four formats are shown, and only up to a size.

export const mostPixels = 20_000_000;

// pictureOf returns {type, width, height}, or null.
export function pictureOf(buffer) {
  const view = new DataView(buffer);
  for (const read of [png, gif, jpeg, webp]) {
    try {
      const found = read(view);
      if (found !== null) return found.width > 0 && found.height > 0 ? found : null;
    } catch {
      return null; // The file ends before the size of the picture is given.
    }
  }
  return null;
}

function begins(view, text, at = 0) {
  if (view.byteLength < at + text.length) return false;
  for (let i = 0; i < text.length; i++) if (view.getUint8(at + i) !== text.charCodeAt(i)) return false;
  return true;
}

function png(view) {
  if (!begins(view, "\x89PNG\r\n\x1a\n") || !begins(view, "IHDR", 12)) return null;
  return { type: "image/png", width: view.getUint32(16), height: view.getUint32(20) };
}

function gif(view) {
  if (!begins(view, "GIF87a") && !begins(view, "GIF89a")) return null;
  return { type: "image/gif", width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

function jpeg(view) {
  if (!begins(view, "\xff\xd8\xff")) return null;
  for (let at = 2; ;) {
    if (view.getUint8(at) !== 0xff) return null;
    const kind = view.getUint8(at + 1);
    // These markers begin the header of a frame, except C4, C8 and CC.
    if (kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc) {
      return { type: "image/jpeg", width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    }
    at += kind === 0xff ? 1 : 2 + view.getUint16(at + 2);
  }
}

function webp(view) {
  if (!begins(view, "RIFF") || !begins(view, "WEBP", 8)) return null;
  const size = (width, height) => ({ type: "image/webp", width, height });
  if (begins(view, "VP8 ", 12)) return size(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
  if (begins(view, "VP8L", 12)) {
    const bits = view.getUint32(21, true);
    return size(1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff));
  }
  if (begins(view, "VP8X", 12)) {
    const three = (at) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
    return size(1 + three(24), 1 + three(27));
  }
  return null;
}
