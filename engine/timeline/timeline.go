// Package timeline makes the blocks that an agent runtime appends to its history, and what a model sees
// of them, from the journal of an execution and the files that it has left. A timeline depends on nothing
// else: whenever it is made, it has the same bytes.
package timeline

import (
	"context"
	"errors"
	"strings"

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
	// Turn and Call are the ids of the turn and of the tool call to which the block belongs. Time is the
	// time of the event from which the block was made.
	Turn string         `json:"turn_id"`
	Call string         `json:"call_id"`
	Time journal.Moment `json:"ts"`
	MIME string         `json:"mime,omitempty"`
	Text *string        `json:"text,omitempty"`
	Meta *Meta          `json:"meta,omitempty"`
	// Data is the content of a PDF or an image. On the wire it is the member base64.
	Data []byte `json:"-"`
}

// A Meta is what an agent runtime keeps beside a block. It is not for the model.
type Meta struct {
	Channel string `json:"channel,omitempty"`
	// Digest is the text of the meta block of the file. The other members tell where the file is.
	Digest   string `json:"digest,omitempty"`
	Hosted   string `json:"hosted_uri,omitempty"`
	Resource string `json:"rn,omitempty"`
	Key      string `json:"key,omitempty"`
	Physical string `json:"physical_path,omitempty"`
}

// The limits of the contents of files and of inner calls in a timeline, in bytes.
const (
	// MaxFile is the maximum size of a PDF or an image, and MaxFiles that of the contents of all files.
	MaxFile  = 5 << 20
	MaxFiles = 20 << 20
	// maxText is the maximum size of the text of one file, and of the program's output.
	maxText = 20_480
	// maxInner is the maximum size of the inputs, the results and the errors of all inner calls. Once it is
	// reached maxLate bytes of each error are kept.
	maxInner = 8 << 20
	maxLate  = 256
)

// ErrGone means that a file has been deleted.
var ErrGone = errors.New("timeline: the file is gone")

// Contents are the files that an execution has left in its session.
type Contents interface {
	// Reserve is called before anything is read, with the number of bytes that will be read.
	Reserve(bytes int64) error
	// Read returns at most the given number of bytes from the beginning of a file. If there is no such file
	// it returns ErrGone, even if most is 0.
	Read(ctx context.Context, id string, most int64) ([]byte, error)
}

// Options say which parts of a timeline are made.
type Options struct {
	Names Names
	// Namespace is what the paths of blocks begin with.
	Namespace Namespace
	// Paths are the paths of the blocks that are wanted, with the namespace or without. If there are none, all
	// blocks are wanted.
	Paths []string
	// Mute leaves the notes out of what is rendered.
	Mute bool
}

// A Namespace is what the paths of blocks begin with: nothing, or Conversation and a colon. Runtimes that
// keep the paths of several services apart call those of a conversation conv.
type Namespace string

// Conversation is the namespace of the paths in a conversation.
const Conversation Namespace = "conv"

// path returns a path of the namespace. The path may be one of the namespace already.
func (n Namespace) path(path string) string {
	if n == "" {
		return path
	}
	prefix := string(n) + ":"
	return prefix + strings.TrimPrefix(path, prefix)
}

// Build returns the timeline of the events that were added to f. An error comes from the contents.
func Build(ctx context.Context, f *Facts, o Options, c Contents) (Timeline, error) {
	own, err := f.Names()
	if err != nil {
		return Timeline{}, err
	}
	b := &builder{sheet: sheet{names: o.Names, space: o.Namespace, wanted: map[string]bool{}}, facts: f, own: own.Turn, mute: o.Mute}
	for _, p := range o.Paths {
		b.wanted[o.Namespace.path(p)] = true
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

// Missing returns those of the paths that no block of the timeline has, in their order.
func (t Timeline) Missing(paths []string) []string {
	there := map[string]bool{}
	for _, b := range t.Blocks {
		there[b.Path], there[strings.TrimPrefix(b.Path, string(Conversation)+":")] = true, true
	}
	missing := []string{}
	for _, p := range paths {
		if !there[p] {
			missing = append(missing, p)
			there[p] = true // A path that is given twice is returned once.
		}
	}
	return missing
}

// A builder makes one timeline.
type builder struct {
	sheet
	facts *Facts
	// own is the turn that the start has named, or the usual one. Paths may begin with its directory.
	own  string
	mute bool
}

// A sheet is a timeline that takes the blocks which are wanted.
type sheet struct {
	Timeline
	names Names
	space Namespace
	// wanted are the paths of the blocks that are wanted. If there are none, all blocks are wanted.
	wanted map[string]bool
}

// wants reports whether blocks with a path are wanted.
func (s *sheet) wants(path string) bool { return len(s.wanted) == 0 || s.wanted[path] }

// add adds a block, if its path is wanted.
func (s *sheet) add(block Block) {
	if s.wants(block.Path) {
		block.Turn = s.names.Turn
		s.Blocks = append(s.Blocks, block)
	}
}

// render adds the parts for the block with this path, if it is wanted.
func (s *sheet) render(path string, parts ...Part) {
	if s.wants(path) {
		s.Rendered = append(s.Rendered, parts...)
	}
}

// callPath returns the path of a block of a call. what is call, notice or result.
func (s *sheet) callPath(call, what string) string {
	return s.space.path("tc:" + s.names.Turn + "." + inPath(call) + "." + what)
}

// filePath returns the logical path of a file.
func (s *sheet) filePath(name string) string {
	return s.space.path("fi:" + s.names.Turn + ".files/" + name)
}

// begin adds the blocks that stand before all results: the notes, the code and the call of the program.
func (b *builder) begin() {
	s, n := b.facts.started, b.names
	if n.Notes != "" {
		path := b.space.path("ar:" + n.Turn + ".react.notes." + inPath(n.Call))
		b.add(Block{Type: typeNotes, Path: path, Call: n.Call, Time: s.Time, Text: &n.Notes, Meta: &Meta{Channel: "timeline_text"}})
		if !b.mute {
			b.render(path, said(n.Notes))
		}
	}
	path := b.space.path("fi:" + n.Turn + ".code." + inPath(n.Call))
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
func (s *sheet) call(id, tool string, params rawJSON, at journal.Moment) Block {
	text := string(encode(struct {
		Tool   string         `json:"tool_id"`
		Call   string         `json:"tool_call_id"`
		Params rawJSON        `json:"params"`
		Time   journal.Moment `json:"ts"`
	}{tool, id, params, at}))
	return Block{Type: typeCall, Path: s.callPath(id, "call"), Call: id, Time: at, Text: &text}
}
