package sandbox

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// fileChunk is how much of a file travels in one frame.
const fileChunk = 1 << 20

var (
	// ErrUnreadable means that a file which was listed cannot be read.
	ErrUnreadable = errors.New("sandbox: file cannot be read")
	// ErrContent means that what comes from a sandbox is not the file that was asked for:
	// nothing that comes after it can be trusted.
	ErrContent = errors.New("sandbox: content of a file")
)

// A File is a file that a sandbox is given before its program runs.
type File struct {
	// Name is its path in the workspace.
	Name string
	// Size is how large it is expected to be.
	Size int64
	// ReadOnly says that changes to it are thrown away.
	ReadOnly bool
}

// Give writes a file into the workspace, in place of the one that may be there.
func (c *Conn) Give(f File, content io.Reader) error {
	chunk := make([]byte, min(f.Size, fileChunk)+1)
	for first, last := true, false; !last; first = false {
		n, err := io.ReadFull(content, chunk)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			last = true
		case err != nil:
			return err
		}
		head, err := json.Marshal(map[string]any{"name": f.Name, "first": first, "last": last, "read_only": f.ReadOnly})
		if err != nil {
			return err
		}
		length := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
		if err := c.send(frameFile, length, head, chunk[:n]); err != nil {
			return err
		}
	}
	return nil
}

// A Listing is what the supervisor says that a program has left in its workspace.
type Listing struct {
	// Files are new ones, and inputs that are still there.
	Files []struct {
		Name string `json:"name"`
		// SHA256 is that of an input whose size has not changed.
		SHA256 string `json:"sha256"`
	} `json:"files"`
	// Missing are the inputs that are not there any more.
	Missing []string `json:"missing"`
	// Skipped are the names of some files that are left out, Reasons counts all of these by
	// the reason why.
	Skipped []string       `json:"skipped"`
	Reasons map[string]int `json:"reasons"`
	// Wanted are files that were asked for by name and are not among Files, although there is something
	// with their name.
	Wanted map[string]Obstacle `json:"wanted"`
}

// An Obstacle is why a file that was asked for is not listed.
type Obstacle struct {
	// State is the state of an output, and Size the size of a file that is too large, in bytes.
	State string `json:"state"`
	Size  int64  `json:"size"`
}

// A Question asks which files an ended program has left.
type Question struct {
	// Sizes are those of the inputs that the program could change, Fixed the names of those that it
	// could not, which are not listed.
	Sizes map[string]int64
	Fixed []string
	// Wanted are files that are listed before others, however many there are.
	Wanted []string
}

// List asks which files an ended program has left.
func (c *Conn) List(ctx context.Context, q Question) (Listing, error) {
	request, err := json.Marshal(map[string]any{
		"inputs": q.Sizes, "fixed": q.Fixed, "wanted": q.Wanted,
		"max_files": c.limits.OutputFiles, "max_size": c.limits.OutputFileSize,
	})
	if err != nil {
		return Listing{}, err
	}
	if err := c.send(frameList, request); err != nil {
		return Listing{}, err
	}
	f, err := answerOf(ctx, c)
	if err != nil {
		return Listing{}, err
	}
	if f.kind != frameListing {
		return Listing{}, fmt.Errorf("frame %q in place of a listing", f.kind)
	}
	var found Listing
	if err := json.Unmarshal(f.payload, &found); err != nil {
		return Listing{}, fmt.Errorf("read listing: %w", err)
	}
	if most := c.limits.OutputFiles + len(q.Sizes) + len(q.Wanted); len(found.Files) > most {
		return Listing{}, fmt.Errorf("listing has %d files, at most %d were asked for", len(found.Files), most)
	}
	return found, nil
}

// Take asks for a file that an ended program has left, and returns its content, which must be
// read to its end or to an error before anything else is asked for. Reading fails with
// ErrUnreadable or ErrContent.
func (c *Conn) Take(ctx context.Context, name string) (io.Reader, error) {
	if err := c.send(frameTake, []byte(name)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	return &contentReader{c: c, ctx: ctx, left: c.limits.OutputFileSize}, nil
}

// A contentReader reads a file piece by piece.
type contentReader struct {
	c    *Conn
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
	f, err := answerOf(r.ctx, r.c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	r.left -= int64(len(f.payload))
	switch {
	case f.kind == frameLost:
		return nil, ErrUnreadable
	case f.kind != frameContent:
		return nil, fmt.Errorf("%w: frame %q in its place", ErrContent, f.kind)
	case r.left < 0:
		return nil, fmt.Errorf("%w: it has grown beyond its limit", ErrContent)
	case len(f.payload) == 0:
		return nil, io.EOF
	}
	return f.payload, nil
}

// answerOf returns the supervisor's next answer about the files of an ended program.
func answerOf(ctx context.Context, c *Conn) (frame, error) {
	e, err := c.next(ctx)
	if err != nil {
		return frame{}, err
	}
	a, ok := e.(answer)
	if !ok {
		return frame{}, fmt.Errorf("%T in place of an answer", e)
	}
	return a.frame, nil
}
