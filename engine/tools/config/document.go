package config

import (
	"crypto/sha256"
	"slices"
	"sync"
)

// A Document is an OpenAPI document. It can be large, so its text is kept only until it is read.
type Document struct {
	// Digest is the SHA-256 of the text.
	Digest [sha256.Size]byte

	once sync.Once
	text []byte
	read any
	err  error
}

// NewDocument returns a document with a text.
func NewDocument(text []byte) *Document {
	return &Document{Digest: sha256.Sum256(text), text: text}
}

// Once returns what a function reads out of the text of a document. It is called once for each document.
func Once[T any](d *Document, read func(text []byte) (T, error)) (T, error) {
	d.once.Do(func() {
		d.read, d.err = read(d.text)
		d.text = nil
	})
	t, _ := d.read.(T)
	return t, d.err
}

// Adopt takes over from a former file the documents that have not changed, so that they are not read again.
func (f *File) Adopt(former *File) {
	for _, t := range f.Toolsets {
		before := former.Toolset(t.Key)
		if t.OpenAPI == nil || before == nil || before.OpenAPI == nil {
			continue
		}
		now, old := t.OpenAPI, before.OpenAPI
		if now.Document.Digest == old.Document.Digest && slices.Equal(now.Only, old.Only) && slices.Equal(now.Tags, old.Tags) {
			now.Document = old.Document
		}
	}
}
