package timeline

import (
	"bytes"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"fermata/engine/journal"
	"fermata/engine/outputs"
)

// A class is how the contents of files of a media type are shown.
type class int

// The classes.
const (
	classBinary class = iota
	classText
	classPDF
	classImage
)

// texts are the media types of texts whose names do not begin with text/.
var texts = []string{
	"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/sql",
	"application/javascript", "application/x-javascript", "application/ecmascript", "application/typescript",
	"application/x-sh", "application/x-python", "application/x-ndjson", "application/jsonl", "application/x-tex",
	"application/rtf", "application/csv",
}

// classOf returns the class of a media type. SVG is text.
func classOf(declared string) class {
	kind := plainType(declared)
	switch {
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"), strings.HasSuffix(kind, "+yaml"),
		slices.Contains(texts, kind):
		return classText
	case kind == "application/pdf":
		return classPDF
	case strings.HasPrefix(kind, "image/"):
		return classImage
	}
	return classBinary
}

// plainType returns a media type without its parameters.
func plainType(declared string) string {
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil {
		kind, _, _ = strings.Cut(declared, ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}

// begins reports whether the first bytes of a file match its media type. It does not examine the rest.
func begins(declared string, data []byte) bool {
	starts := func(with ...string) bool {
		return slices.ContainsFunc(with, func(w string) bool { return bytes.HasPrefix(data, []byte(w)) })
	}
	brand := func(names ...string) bool {
		return len(data) >= 12 && string(data[4:8]) == "ftyp" && slices.Contains(names, string(data[8:12]))
	}
	switch plainType(declared) {
	case "application/pdf":
		return starts("%PDF-")
	case "image/png":
		return starts("\x89PNG\r\n\x1a\n")
	case "image/jpeg", "image/jpg":
		return starts("\xff\xd8\xff")
	case "image/gif":
		return starts("GIF87a", "GIF89a")
	case "image/webp":
		return len(data) >= 12 && starts("RIFF") && string(data[8:12]) == "WEBP"
	case "image/bmp", "image/x-ms-bmp":
		return starts("BM")
	case "image/tiff":
		return starts("II*\x00", "MM\x00*")
	case "image/avif":
		return brand("avif", "avis")
	case "image/heic", "image/heif":
		return brand("heic", "heix", "mif1", "msf1")
	}
	return false
}

// isBinary reports whether what claims to be text is none: it has NUL, and is no UTF-8 or has many of them.
func isBinary(data []byte) bool {
	nuls := bytes.Count(data, []byte{0})
	return nuls > 0 && (nuls > len(data)/16 || !utf8.Valid(data))
}

// textOfFile returns the text of a file with this size, whose first bytes are data.
func textOfFile(data []byte, size int64) string {
	text := outputs.Cut(journal.Decode(whole(data, size)), maxText)
	if size > int64(len(data)) && !strings.HasSuffix(text, outputs.CutEnd) {
		text += outputs.CutEnd
	}
	return text
}

// whole returns data without an incomplete character at its end. size is the size of the file; if data is
// all of it, data is returned as it is.
func whole(data []byte, size int64) []byte {
	if size <= int64(len(data)) {
		return data
	}
	for i := 1; i <= min(utf8.UTFMax, len(data)); i++ {
		if at := len(data) - i; utf8.RuneStart(data[at]) {
			if !utf8.FullRune(data[at:]) {
				return data[:at]
			}
			break
		}
	}
	return data
}
