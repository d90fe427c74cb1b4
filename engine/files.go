package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Files keeps the files that executions are given and leave. It is safe for
// concurrent use.
type Files interface {
	// Open opens an input file for reading.
	Open(ctx context.Context, scope json.RawMessage, f InputFile) (io.ReadCloser, error)
	// Save keeps what a program has left and returns where. If reading from content
	// fails nothing is kept.
	Save(ctx context.Context, scope json.RawMessage, session, name string, content io.Reader) (OutputFile, error)
}

// An InputFile is a file that is in the workspace before the program starts. Its
// JSON form is stored.
type InputFile struct {
	// Session and ID name it for Files, Name is its path in the workspace.
	Session string `json:"session"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	// ReadOnly says that changes to it are thrown away.
	ReadOnly bool `json:"read_only,omitempty"`
	// Kind, Resource and Version are the client's and go back to it.
	Kind     string `json:"kind,omitempty"`
	Resource string `json:"resource,omitempty"`
	Version  int    `json:"version,omitempty"`
}

// An OutputFile is a file that is there after the program has ended. Its JSON form
// is stored.
type OutputFile struct {
	Session string `json:"session"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	// Input is the input file that it still is, or that was changed to it.
	Input *InputFile `json:"input,omitempty"`
	// Inherited says that it still is that.
	Inherited bool `json:"inherited,omitempty"`
}

// Skipped tells of files that a program has left and that are not kept.
type Skipped struct {
	// Reasons counts them by reason: max_files, depth, size, path, unreadable.
	Reasons map[string]int `json:"reasons"`
	// Names are some of them.
	Names []string `json:"names"`
}

func (s Skipped) count() (n int) {
	for _, c := range s.Reasons {
		n += c
	}
	return n
}

const (
	// fileChunk is how much of a file travels in one frame.
	fileChunk = 1 << 20
	// collectTimeout bounds the keeping of all that a program has left.
	collectTimeout = time.Minute
)

// give writes the inputs into the sandbox's workspace.
func (x *execution) give(ctx context.Context, inputs []InputFile) error {
	for _, f := range inputs {
		if err := x.giveOne(ctx, f); err != nil {
			return fmt.Errorf("give file %s to the sandbox: %w", f.ID, err)
		}
	}
	return nil
}

func (x *execution) giveOne(ctx context.Context, f InputFile) error {
	content, err := x.e.o.Files.Open(ctx, x.record.Scope, f)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	chunk := make([]byte, fileChunk)
	for last := false; !last; {
		n, err := io.ReadFull(content, chunk)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			last = true
		case err != nil:
			return err
		}
		head, err := json.Marshal(map[string]any{"name": f.Name, "last": last, "read_only": f.ReadOnly})
		if err != nil {
			return err
		}
		length := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
		if err := x.sandbox.send(frameFile, length, head, chunk[:n]); err != nil {
			return err
		}
	}
	return nil
}

// A listing is what the supervisor says that a program has left.
type listing struct {
	Files []struct {
		Name   string `json:"name"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	} `json:"files"`
	Skipped []string       `json:"skipped"`
	Reasons map[string]int `json:"reasons"`
}

// collect keeps what an ended program has left in its workspace and notes it in e.
// It is called when every process of the program is dead.
func (x *execution) collect(e *ending) {
	var inputs []InputFile
	if len(x.record.Inputs) > 0 {
		if err := json.Unmarshal(x.record.Inputs, &inputs); err != nil {
			x.e.o.Log.Error("cannot read the inputs of an execution", "execution", x.id, "err", err)
			return
		}
	}
	if !e.leftFiles && len(inputs) == 0 || x.e.o.Files == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	found, err := x.list(ctx, inputs)
	if err != nil {
		x.e.o.Log.Warn("cannot list what a program has left", "execution", x.id, "err", err)
		return
	}
	byName := make(map[string]*InputFile, len(inputs))
	for i := range inputs {
		byName[inputs[i].Name] = &inputs[i]
	}
	for _, f := range found.Files {
		input := byName[f.Name]
		delete(byName, f.Name)
		if input != nil && (input.ReadOnly || f.SHA256 != "" && f.SHA256 == input.SHA256) {
			e.files = append(e.files, inherited(input))
			continue
		}
		saved, err := x.keep(ctx, f.Name)
		if err != nil {
			x.e.o.Log.Warn("cannot keep a file that a program has left", "execution", x.id, "err", err)
			e.undelivered++
			continue
		}
		saved.Input = input
		e.files = append(e.files, saved)
	}
	e.skipped = Skipped{Reasons: found.Reasons, Names: found.Skipped}
	for _, input := range inputs {
		switch {
		case byName[input.Name] == nil:
		case input.ReadOnly:
			e.files = append(e.files, inherited(&input))
		case e.skipped.count() == 0:
			// Where the list is cut nobody knows what was deleted.
			e.deleted = append(e.deleted, input.Name)
		}
	}
}

func inherited(input *InputFile) OutputFile {
	return OutputFile{Session: input.Session, ID: input.ID, Name: input.Name, Input: input, Inherited: true}
}

// list asks the supervisor what is there.
func (x *execution) list(ctx context.Context, inputs []InputFile) (listing, error) {
	sizes := make(map[string]int64, len(inputs))
	for _, f := range inputs {
		sizes[f.Name] = f.Size
	}
	request, err := json.Marshal(map[string]any{
		"inputs": sizes, "max_files": x.e.o.MaxOutputFiles, "max_size": x.e.o.MaxOutputSize,
	})
	if err != nil {
		return listing{}, err
	}
	if err := x.sandbox.send(frameList, request); err != nil {
		return listing{}, err
	}
	f, err := x.next(ctx, frameListing)
	if err != nil {
		return listing{}, err
	}
	var found listing
	if err := json.Unmarshal(f.payload, &found); err != nil {
		return listing{}, fmt.Errorf("read listing: %w", err)
	}
	if most := x.e.o.MaxOutputFiles + len(inputs); len(found.Files) > most {
		return listing{}, fmt.Errorf("listing has %d files, at most %d were asked for", len(found.Files), most)
	}
	return found, nil
}

// keep takes one file out of the sandbox.
func (x *execution) keep(ctx context.Context, name string) (OutputFile, error) {
	if err := x.sandbox.send(frameTake, []byte(name)); err != nil {
		return OutputFile{}, err
	}
	content := &contentReader{x: x, ctx: ctx, left: x.e.o.MaxOutputSize}
	saved, err := x.e.o.Files.Save(ctx, x.record.Scope, x.record.Session, name, content)
	// What was not read must not be taken for the next file's.
	return saved, errors.Join(err, content.drain())
}

// A contentReader reads a file off content frames.
type contentReader struct {
	x    *execution
	ctx  context.Context //nolint:containedctx // a Reader has no parameter for it
	rest []byte
	left int64
	done error
}

func (r *contentReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.done == nil {
		f, err := r.x.next(r.ctx, frameContent)
		switch {
		case err != nil:
			r.done = err
		case len(f.payload) == 0:
			r.done = io.EOF
		case int64(len(f.payload)) > r.left:
			r.done = errors.New("file has grown beyond its limit")
		}
		r.rest, r.left = f.payload, r.left-int64(len(f.payload))
	}
	if len(r.rest) == 0 {
		return 0, r.done
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *contentReader) drain() error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// next returns the next frame of an ended program, which must be of a kind.
func (x *execution) next(ctx context.Context, kind frameKind) (frame, error) {
	select {
	case f, ok := <-x.sandbox.frames:
		if !ok {
			return frame{}, ErrGone
		}
		if f.kind != kind {
			return frame{}, fmt.Errorf("frame %q in place of %q", f.kind, kind)
		}
		return f, nil
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}
