package timeline

import (
	"slices"
	"strings"
)

// A Part is a part of what a model sees, as it stands in the content of a Messages request: a text, or a
// document or an image.
type Part struct {
	// Text is the text of a part that has no Data.
	Text string
	// Type is document or image, MIME its media type, and Data its content.
	Type, MIME string
	Data       []byte
}

// The types of parts.
const (
	partText     = "text"
	partDocument = "document"
	partImage    = "image"
)

// said returns the part with the notes.
func said(notes string) Part {
	return Part{Type: partText, Text: "[AI Agent say]: " + quote(notes)}
}

// header returns the line with which a part about a result begins.
func header(r *result, what string) string {
	return "[TOOL RESULT " + inPath(r.id) + "]." + what + " " + oneLine(r.tool)
}

// summary returns the part that sums up a result: the status or the report, and the logical paths of values
// and files. Every line is written by the server.
func summary(r *result, report string, paths ...string) Part {
	lines := []string{header(r, "summary"), report}
	for _, p := range paths {
		lines = append(lines, "- "+p)
	}
	for _, a := range r.files {
		if a.err == "" {
			lines = append(lines, "- "+oneLine(a.logical))
		}
	}
	return Part{Type: partText, Text: strings.Join(lines, "\n")}
}

// payload returns the part with the text of a result that has no files. Text that is not ours is quoted.
func payload(r *result, path, text string) Part {
	return Part{Type: partText, Text: header(r, "result") + "\n" + path + "\n" + text}
}

// describe returns the part that describes a file. Of what tells where the file is hosted it has only the
// physical path, as a line of text. The description of a file may have line ends that JSON does not escape.
func describe(r *result, a *artifact, d digest) Part {
	d.Physical = ""
	lines := []string{header(r, "artifact"), oneLine(a.logical), oneLine(a.physical), quote(string(encode(d)))}
	return Part{Type: partText, Text: strings.Join(lines, "\n")}
}

// shownImages are the media types of images that a Messages request may have.
var shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// contentParts returns the parts with the content of a file. A blank text has no part.
func contentParts(content Block) []Part {
	kind := plainType(content.MIME)
	switch {
	case content.Text != nil && strings.TrimSpace(*content.Text) != "":
		return []Part{{Type: partText, Text: quote(*content.Text)}}
	case content.Data != nil && classOf(kind) == classPDF:
		return []Part{{Type: partDocument, MIME: kind, Data: content.Data}}
	case content.Data != nil && slices.Contains(shownImages, kind):
		return []Part{{Type: partImage, MIME: kind, Data: content.Data}}
	}
	return nil
}
