// Package timeline makes the blocks that an agent runtime appends to its history, and what a model sees
// of them, from the journal of an execution and the files that it has left. A timeline is a pure
// function of both: made again it has the same bytes.
package timeline

import (
	"context"
	"errors"

	"fermata/engine/journal"
)

// The types of blocks. Their texts are on the wire, and must not change.
const (
	typeNotes  = "react.notes"
	typeCode   = "react.tool.code"
	typeCall   = "react.tool.call"
	typeNotice = "react.notice"
	typeResult = "react.tool.result"
)

// A Timeline is what an agent runtime appends to its history.
type Timeline struct {
	Blocks []Block
	// Rendered is what a model sees of the blocks.
	Rendered []Part
}

// A Block is one entry of a history. Its JSON form is on the wire.
type Block struct {
	Type string `json:"type"`
	Path string `json:"path"`
	// Turn and Call are the ids of the turn and of the tool call to which the block belongs, and Time is
	// that of the event from which it comes.
	Turn string         `json:"turn_id"`
	Call string         `json:"call_id"`
	Time journal.Moment `json:"ts"`
	MIME string         `json:"mime,omitempty"`
	Text *string        `json:"text,omitempty"`
	Meta *Meta          `json:"meta,omitempty"`
	// Data is the content of a PDF or an image. On the wire it is the member base64.
	Data []byte `json:"-"`
}

// A Meta is what a runtime keeps beside a block, and no model sees.
type Meta struct {
	Channel string `json:"channel,omitempty"`
	// Digest is the text of the meta block of the file. What follows tells where the file is.
	Digest   string `json:"digest,omitempty"`
	Hosted   string `json:"hosted_uri,omitempty"`
	Resource string `json:"rn,omitempty"`
	Key      string `json:"key,omitempty"`
	Physical string `json:"physical_path,omitempty"`
}

// The limits of what a timeline has of the contents of files and of inner calls, in bytes.
const (
	// MaxFile bounds a PDF or an image, and MaxFiles all contents of files.
	MaxFile  = 5 << 20
	MaxFiles = 20 << 20
	// maxText bounds the text of one file, and of what the program has printed.
	maxText = 20_480
	// maxInner bounds the inputs and the results of all inner calls.
	maxInner = 8 << 20
)

// ErrGone means that a file is not there any more.
var ErrGone = errors.New("timeline: the file is gone")

// Contents are the files that an execution has left in its session.
type Contents interface {
	// Reserve is called before anything is read, with the number of bytes that will be read.
	Reserve(bytes int64) error
	// Read returns the first bytes of a file, at most so many. It returns ErrGone if there is no such file,
	// also if most is 0.
	Read(ctx context.Context, id string, most int64) ([]byte, error)
}

// Options say which parts of a timeline are made.
type Options struct {
	Names Names
	// Paths, if there are any, are those of the blocks that are wanted.
	Paths []string
	// Mute leaves the notes out of what is rendered.
	Mute bool
}

// Build returns the timeline of the events that f has seen. An error comes from the contents.
func Build(ctx context.Context, f *Facts, o Options, c Contents) (Timeline, error) {
	b := &builder{facts: f, names: o.Names, mute: o.Mute, wanted: map[string]bool{}}
	for _, p := range o.Paths {
		b.wanted[p] = true
	}
	results := b.results()
	if err := b.fetch(ctx, results, c); err != nil {
		return Timeline{}, err
	}
	b.begin()
	for _, r := range results {
		b.result(r)
	}
	return b.Timeline, nil
}

// Missing returns those paths that no block of the timeline has, in their order.
func (t Timeline) Missing(paths []string) []string {
	there := map[string]bool{}
	for _, b := range t.Blocks {
		there[b.Path] = true
	}
	missing := []string{}
	for _, p := range paths {
		if !there[p] {
			missing = append(missing, p)
			there[p] = true // Each is named once.
		}
	}
	return missing
}

// A builder makes one timeline.
type builder struct {
	Timeline
	facts *Facts
	names Names
	mute  bool
	// wanted are the paths of the blocks that are wanted; all of them if there are none.
	wanted map[string]bool
}

// wants reports whether blocks with a path are wanted.
func (b *builder) wants(path string) bool { return len(b.wanted) == 0 || b.wanted[path] }

// add adds a block.
func (b *builder) add(block Block) {
	if b.wants(block.Path) {
		block.Turn = b.names.Turn
		b.Blocks = append(b.Blocks, block)
	}
}

// render adds parts about the block with a path.
func (b *builder) render(path string, parts ...Part) {
	if b.wants(path) {
		b.Rendered = append(b.Rendered, parts...)
	}
}

// callPath returns the path of a block of a call: its call, its notice or its result.
func (b *builder) callPath(call, what string) string {
	return "tc:" + b.names.Turn + "." + call + "." + what
}

// filePath returns the logical path of a file.
func (b *builder) filePath(name string) string { return "fi:" + b.names.Turn + ".files/" + name }

// begin adds what stands before all results: the notes, the code and the call of the program.
func (b *builder) begin() {
	s, n := b.facts.started, b.names
	if n.Notes != "" {
		path := "ar:" + n.Turn + ".react.notes." + n.Call
		b.add(Block{Type: typeNotes, Path: path, Call: n.Call, Time: s.Time, Text: &n.Notes, Meta: &Meta{Channel: "timeline_text"}})
		if !b.mute {
			b.render(path, said(n.Notes))
		}
	}
	path := "fi:" + n.Turn + ".code." + n.Call
	code, mime := textOf(s.Code), "text/x-python"
	if s.Language == "bash" {
		mime = "text/x-sh"
	}
	b.add(Block{Type: typeCode, Path: path, Call: n.Call, Time: s.Time, MIME: mime, Text: &code})
	params := programParams{Code: shortened(code, path), Outputs: shorten(s.Outputs, "")}
	b.add(b.call(n.Call, n.Tool, encode(params), s.Time))
}

// programParams are the parameters of the call that runs the program.
type programParams struct {
	Code    string  `json:"code"`
	Outputs rawJSON `json:"outputs,omitempty"`
}

// call returns the block of a call.
func (b *builder) call(id, tool string, params rawJSON, at journal.Moment) Block {
	text := string(encode(struct {
		Tool   string         `json:"tool_id"`
		Call   string         `json:"tool_call_id"`
		Params rawJSON        `json:"params"`
		Time   journal.Moment `json:"ts"`
	}{tool, id, params, at}))
	return Block{Type: typeCall, Path: b.callPath(id, "call"), Call: id, Time: at, Text: &text}
}
