package timeline

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"fermata/engine/journal"
	"fermata/engine/outputs"
)

// The visibilities of artifacts.
const (
	internal = "internal"
	external = "external"
)

// The reasons why the content of a file is left out. Their texts are on the wire.
const (
	omittedBase64  = "base64_off"
	omittedLarge   = "too_large"
	omittedFull    = "timeline_full"
	omittedDeleted = "deleted"
	omittedForged  = "not_what_it_claims"
)

// An artifact is a file that the program has produced or a tool has handed over.
type artifact struct {
	logical, physical string
	id, mime          string
	size              int64
	visibility        string
	description       string
	// tool is true if a tool has handed the file over. asked is the path that the tool has named, if the
	// file has got another one. err says why the file was not stored.
	tool       bool
	asked, err string
	at         journal.Moment
	warning    string
	// omitted says why the content is left out.
	omitted string
	data    []byte
}

// produced returns an output that was produced.
func (b *builder) produced(o outputs.Output, j judgement) *artifact {
	a := &artifact{
		logical: b.filePath(o.Name), physical: b.names.Turn + "/files/" + o.Name, id: j.ID, mime: j.Type, size: j.Size,
		visibility: external, description: o.Description, at: j.at,
	}
	if o.Internal {
		a.visibility = internal
	}
	if j.State == outputs.TooSmall {
		a.warning = "the file is smaller than min_bytes"
	}
	return a
}

// smallArtifact is the size in bytes below which a file that a tool has handed over is unusually small.
const smallArtifact = 16

// handedOver returns a file that a tool has handed over.
func (b *builder) handedOver(s journal.ArtifactStored) *artifact {
	name := strings.TrimPrefix(s.Path, b.own+"/files/")
	a := &artifact{
		logical: b.filePath(name), physical: b.names.Turn + "/files/" + name, id: s.ID, mime: s.MIME, size: s.Size,
		visibility: external, tool: true, asked: s.Asked, err: s.Error, at: s.Time,
	}
	if s.Error == "" && s.Size < smallArtifact {
		a.warning = "the file is unusually small"
	}
	return a
}

// A digest is the meta block of an artifact, or of a value. A model may see it.
type digest struct {
	Artifact    string   `json:"artifact_path"`
	Physical    string   `json:"physical_path,omitempty"`
	MIME        string   `json:"mime,omitempty"`
	Kind        string   `json:"kind"`
	Visibility  string   `json:"visibility"`
	Call        string   `json:"tool_call_id"`
	Description string   `json:"description,omitempty"`
	Size        *int64   `json:"size_bytes,omitempty"`
	Tokens      int      `json:"tokens,omitempty"`
	Estimated   bool     `json:"tokens_estimated,omitempty"`
	Warning     string   `json:"write_warning,omitempty"`
	Omitted     string   `json:"content_omitted,omitempty"`
	Error       *failure `json:"error,omitempty"`
}

// count estimates the number of tokens of a text from its size in bytes.
func (d *digest) count(bytes int) {
	d.Tokens, d.Estimated = (bytes+3)/4, true
}

// artifact adds the blocks of a file: a meta block, and a block with the content.
func (b *builder) artifact(r *result, a *artifact) {
	class := classOf(a.mime)
	d := digest{
		Artifact: a.logical, Physical: a.physical, MIME: a.mime, Kind: "file", Visibility: a.visibility, Call: r.id,
		Description: a.description, Warning: a.warning, Omitted: a.omitted,
	}
	if a.tool && class == classText {
		d.Kind = "display"
	}
	if a.err != "" {
		d.Error = &failure{Code: "react.write.hosting_failed", Message: a.err}
	} else {
		d.Size = &a.size
	}
	content := Block{Type: typeResult, Path: a.logical, Call: r.id, Time: a.at, MIME: a.mime}
	shown := a.err == "" && a.omitted == ""
	switch {
	case !shown:
	case class == classText:
		text := textOfFile(a.data, a.size)
		content.Text = &text
		d.count(len(text))
	case class == classBinary:
		shown = !a.tool
	default:
		content.Data = a.data
	}
	at := r.at
	r.at = a.at
	text := metaOf(b, r, d)
	r.at = at
	b.render(a.logical, describe(r, a, d))
	// Who asks for the path of a stored file gets its facts, even if there is no content to show.
	if !shown && (a.err != "" || len(b.wanted) == 0) {
		return
	}
	content.Meta = &Meta{Digest: text, Physical: a.physical}
	if session := b.facts.Session(); a.omitted != omittedDeleted {
		content.Meta.Hosted, content.Meta.Resource, content.Meta.Key = "/download/"+session+"/"+a.id, "fermata:"+session+":"+a.id, session+"/"+a.id
	}
	b.add(content)
	if !shown {
		return
	}
	b.render(a.logical, contentParts(content)...)
}

// fetch reads the contents of the files that are wanted.
func (b *builder) fetch(ctx context.Context, results []*result, c Contents) error {
	total := int64(0)
	var files []*artifact
	for _, r := range results {
		for _, a := range r.files {
			if a.err == "" && (b.wants(a.logical) || b.wants(b.callPath(r.id, "result"))) {
				total += a.plan(b.names.NoBase64, total)
				files = append(files, a)
			}
		}
	}
	if err := c.Reserve(total); err != nil {
		return err
	}
	for _, a := range files {
		data, err := c.Read(ctx, a.id, a.need(a.omitted))
		switch {
		case errors.Is(err, ErrGone):
			a.omitted = omittedDeleted
		case err != nil:
			return err
		case a.omitted == "":
			a.take(data)
		}
	}
	return nil
}

// plan decides whether the content of a file is shown, and returns how many of its bytes will be read.
// before is the number of bytes that will be read of the files before it.
func (a *artifact) plan(noBase64 bool, before int64) int64 {
	class := classOf(a.mime)
	encoded := class == classPDF || class == classImage
	switch {
	case encoded && noBase64:
		a.omitted = omittedBase64
	case encoded && a.size > MaxFile:
		a.omitted = omittedLarge
	case class != classBinary && before+a.need("") > MaxFiles:
		a.omitted = omittedFull
	}
	return a.need(a.omitted)
}

// need returns how many bytes of a file are read. omitted is the reason why its content is left out, or
// empty if it is shown.
func (a *artifact) need(omitted string) int64 {
	switch class := classOf(a.mime); {
	case omitted != "" || class == classBinary:
		return 0
	case class == classText:
		return min(a.size, maxText)
	}
	return a.size
}

// take takes the content of a file, unless the content does not match the media type of the file.
func (a *artifact) take(data []byte) {
	class := classOf(a.mime)
	if class == classText && isBinary(whole(data, a.size)) || class != classText && class != classBinary && !begins(a.mime, data) {
		a.omitted = omittedForged
		return
	}
	a.data = data
	if a.tool && class == classPDF && !hasPages(data) && a.warning == "" {
		a.warning = "the PDF has no pages"
	}
}

var (
	// page matches the mark of a page in a PDF. packed begins compressed objects, in which pages may be.
	page   = regexp.MustCompile(`/Type\s*/Page[^s]`)
	packed = []byte("/ObjStm")
)

// hasPages reports whether a PDF has pages, as far as can be seen without decoding it.
func hasPages(pdf []byte) bool {
	return page.Match(pdf) || bytes.Contains(pdf, packed)
}
