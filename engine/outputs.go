package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"fermata/continuation"
)

// Skipped tells of files that a program has left and that are not kept.
type Skipped struct {
	// Reasons counts them by reason, one of SkipReasons.
	Reasons map[string]int `json:"reasons"`
	// Names are some of them.
	Names []string `json:"names"`
}

// Count is how many files were skipped.
func (s Skipped) Count() (n int) {
	for _, c := range s.Reasons {
		n += c
	}
	return n
}

// unreadable is the reason for what cannot be read, or is no regular file.
const unreadable = "unreadable"

// SkipReasons are the reasons for which a file is skipped.
var SkipReasons = []string{"max_files", "depth", "size", "path", unreadable}

const (
	// collectTimeout bounds the keeping of all that a program has left.
	collectTimeout = time.Minute
	// maxSkippedNames is how many names of skipped files are told.
	maxSkippedNames = 20
	// maxSkippedName bounds each, in bytes.
	maxSkippedName = 1 << 10
)

// errLost means that a file which was listed cannot be read.
var errLost = errors.New("engine: file cannot be read")

// A contentError means that what comes from a sandbox is not the file that was asked
// for: nothing that comes after it can be trusted.
type contentError struct{ err error }

func (e *contentError) Error() string { return "engine: content of a file: " + e.err.Error() }
func (e *contentError) Unwrap() error { return e.err }

// A listing is what the supervisor says that a program has left.
type listing struct {
	Files []struct {
		Name   string `json:"name"`
		SHA256 string `json:"sha256"`
	} `json:"files"`
	// Missing are the inputs that are not there any more.
	Missing []string       `json:"missing"`
	Skipped []string       `json:"skipped"`
	Reasons map[string]int `json:"reasons"`
}

// A collection is what is being kept of what a program has left.
type collection struct {
	x      *execution
	record continuation.Record
	inputs map[string]*InputFile // by name, without those that cannot change
	files  []OutputFile
	Skipped
	deleted     []string
	undelivered int
}

// collect keeps what an ended program has left in its workspace and notes it in e.
// It is called when every process of the program is dead.
func (x *execution) collect(e *ending) {
	c := collection{x: x, record: x.conversation.copy(), inputs: map[string]*InputFile{}}
	if !e.leftFiles && len(c.record.Inputs) == 0 || x.e.o.Files == nil || !x.conversation.owned() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	inputs, err := inputsOf(c.record)
	if err == nil {
		err = c.all(ctx, inputs)
	}
	if err != nil {
		x.e.o.Log.Warn("cannot collect all that a program has left", "execution", x.id, "err", err)
	}
	slices.SortFunc(c.files, func(a, b OutputFile) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(c.deleted)
	e.files, e.deleted, e.undelivered = c.files, c.deleted, c.undelivered
	if c.Count() > 0 {
		e.skipped = c.Skipped
	}
}

// all collects everything. An error is the reason why it could not.
func (c *collection) all(ctx context.Context, inputs []InputFile) error {
	fixed := []string{}
	sizes := map[string]int64{}
	for i, f := range inputs {
		if f.ReadOnly {
			fixed = append(fixed, f.Name)
			c.inherit(&inputs[i])
			continue
		}
		c.inputs[f.Name], sizes[f.Name] = &inputs[i], f.Size
	}
	found, err := c.list(ctx, sizes, fixed)
	if err != nil {
		return err
	}
	c.skip(found)
	for _, name := range found.Missing {
		if input := c.inputs[name]; input != nil {
			delete(c.inputs, name)
			c.drop(ctx, input)
		}
	}
	for i, f := range found.Files {
		input := c.inputs[f.Name]
		if input != nil && f.SHA256 == input.SHA256 {
			c.inherit(input)
			continue
		}
		err := c.keep(ctx, f.Name, input)
		if _, broken := errors.AsType[*contentError](err); broken {
			c.undelivered += len(found.Files) - i
			return err
		}
		switch {
		case errors.Is(err, errLost):
			c.Reasons[unreadable]++
			c.Names = append(c.Names, f.Name)[:min(len(c.Names)+1, maxSkippedNames)]
		case err != nil:
			c.x.e.o.Log.Warn("cannot keep a file that a program has left", "execution", c.x.id, "err", err)
			c.undelivered++
		}
	}
	return nil
}

func (c *collection) inherit(input *InputFile) {
	c.files = append(c.files, OutputFile{Session: input.Session, ID: input.ID, Name: input.Name, Input: input, Inherited: true})
}

// drop notes that the program has deleted an input.
func (c *collection) drop(ctx context.Context, input *InputFile) {
	c.deleted = append(c.deleted, input.Name)
	if input.Session != c.record.Session {
		return
	}
	if err := c.x.e.o.Files.Drop(ctx, c.record.Scope, *input); err != nil {
		c.x.e.o.Log.Warn("cannot note that a program has deleted a file", "execution", c.x.id, "err", err)
	}
}

// skip takes over what the supervisor says that it has left out.
func (c *collection) skip(found listing) {
	c.Reasons = map[string]int{}
	for _, reason := range SkipReasons {
		if n := found.Reasons[reason]; n > 0 {
			c.Reasons[reason] = n
		}
	}
	for _, name := range found.Skipped[:min(len(found.Skipped), maxSkippedNames)] {
		c.Names = append(c.Names, text([]byte(name[:min(len(name), maxSkippedName)])))
	}
}

// list asks the supervisor what is there: of the inputs, which have these sizes, and
// besides them and those that are fixed.
func (c *collection) list(ctx context.Context, sizes map[string]int64, fixed []string) (listing, error) {
	o := c.x.e.o
	request, err := json.Marshal(map[string]any{
		"inputs": sizes, "fixed": fixed, "max_files": o.MaxOutputFiles, "max_size": o.MaxOutputSize,
	})
	if err != nil {
		return listing{}, err
	}
	if err := c.x.sandbox.send(frameList, request); err != nil {
		return listing{}, err
	}
	f, err := c.next(ctx)
	if err != nil {
		return listing{}, err
	}
	if f.kind != frameListing {
		return listing{}, fmt.Errorf("frame %q in place of a listing", f.kind)
	}
	var found listing
	if err := json.Unmarshal(f.payload, &found); err != nil {
		return listing{}, fmt.Errorf("read listing: %w", err)
	}
	if most := o.MaxOutputFiles + len(sizes); len(found.Files) > most {
		return listing{}, fmt.Errorf("listing has %d files, at most %d were asked for", len(found.Files), most)
	}
	return found, nil
}

// keep takes one file out of the sandbox.
func (c *collection) keep(ctx context.Context, name string, input *InputFile) error {
	if err := c.x.sandbox.send(frameTake, []byte(name)); err != nil {
		return &contentError{err}
	}
	content := &contentReader{c: c, ctx: ctx, left: c.x.e.o.MaxOutputSize}
	saved, err := c.x.e.o.Files.Save(ctx, c.record.Scope, c.record.Session, name, content)
	// What was not read must not be taken for the next file's.
	if _, drained := io.Copy(io.Discard, content); drained != nil {
		return drained
	}
	if err != nil {
		return err
	}
	saved.Input = input
	c.files = append(c.files, saved)
	return nil
}

// A contentReader reads a file off content frames.
type contentReader struct {
	c    *collection
	ctx  context.Context //nolint:containedctx // a Reader has no parameter for it
	rest []byte
	left int64
	done error
}

func (r *contentReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.done == nil {
		r.rest, r.done = r.more()
	}
	if len(r.rest) == 0 {
		return 0, r.done
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// more returns the next piece of the file.
func (r *contentReader) more() ([]byte, error) {
	f, err := r.c.next(r.ctx)
	if err != nil {
		return nil, &contentError{err}
	}
	r.left -= int64(len(f.payload))
	switch {
	case f.kind == frameLost:
		return nil, errLost
	case f.kind != frameContent:
		return nil, &contentError{fmt.Errorf("frame %q in its place", f.kind)}
	case r.left < 0:
		return nil, &contentError{errors.New("it has grown beyond its limit")}
	case len(f.payload) == 0:
		return nil, io.EOF
	}
	return f.payload, nil
}

// next returns the next frame of an ended program.
func (c *collection) next(ctx context.Context) (frame, error) {
	select {
	case f, ok := <-c.x.sandbox.frames:
		if !ok {
			return frame{}, ErrGone
		}
		return f, nil
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}
