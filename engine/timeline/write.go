package timeline

import (
	"encoding/base64"
	"io"
)

// A View says which halves of a timeline are written.
type View struct {
	Blocks, Rendered bool
	// Missing are the paths that no block has. If it is nil the member is left out.
	Missing []string
}

// Write writes the timeline as a JSON object. The contents of files are encoded while they are written.
func (t Timeline) Write(to io.Writer, v View) error {
	w := &writer{to: to}
	w.text("{")
	if v.Blocks {
		w.member("blocks")
		writeList(w, t.Blocks, (*writer).block)
	}
	if v.Rendered {
		w.member("rendered")
		writeList(w, t.Rendered, (*writer).part)
	}
	if v.Missing != nil {
		w.member("missing")
		w.bytes(encode(v.Missing))
	}
	w.text("}")
	return w.err
}

// A writer ignores writes after one has failed.
type writer struct {
	to    io.Writer
	err   error
	began bool
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
	return len(b), w.err
}

func (w *writer) bytes(b []byte) { _, _ = w.Write(b) }

func (w *writer) text(s string) { w.bytes([]byte(s)) }

// member begins a member of the object.
func (w *writer) member(name string) {
	if w.began {
		w.text(",")
	}
	w.began = true
	w.text(`"` + name + `":`)
}

func writeList[T any](w *writer, list []T, write func(*writer, T)) {
	w.text("[")
	for i, v := range list {
		if i > 0 {
			w.text(",")
		}
		write(w, v)
	}
	w.text("]")
}

func (w *writer) block(b Block) {
	line := encode(b)
	if b.Data == nil {
		w.bytes(line)
		return
	}
	w.bytes(line[:len(line)-1])
	w.text(`,"base64":"`)
	w.base64(b.Data)
	w.text(`"}`)
}

func (w *writer) part(p Part) {
	if p.Data == nil {
		w.bytes(encode(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{p.Type, p.Text}))
		return
	}
	// Types of parts and media types of documents and images are words without anything to escape.
	w.text(`{"type":"` + p.Type + `","source":{"type":"base64","media_type":"` + p.MIME + `","data":"`)
	w.base64(p.Data)
	w.text(`"}}`)
}

// base64 encodes and writes data piece by piece, so that there is no second copy of it in memory.
func (w *writer) base64(data []byte) {
	e := base64.NewEncoder(base64.StdEncoding, w)
	_, _ = e.Write(data) // w keeps the error.
	_ = e.Close()
}
