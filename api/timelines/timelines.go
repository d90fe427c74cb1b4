// Package timelines makes timelines from the journals and the files of this server, with limits for memory
// and for each principal. Its own route and the answers that include a timeline use it. It does not depend
// on how programs run.
package timelines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"fermata/api"
	"fermata/api/auth"
	"fermata/engine/files"
	"fermata/engine/journal"
	"fermata/engine/timeline"
)

const (
	// roomBytes is how much memory all timelines may hold at once, and places how many timelines are made
	// for one principal at a time.
	roomBytes = 128 << 20
	places    = 4
	// pageEvents is how many events are read at once.
	pageEvents = 1000
	// copies is how often the texts of a journal are there: as they were read, in the blocks, and in what
	// is rendered.
	copies = 3
	// large is the size from which a timeline is encoded while it is sent.
	large = 1 << 20
	// pieceBytes is how much of it is sent at once.
	pieceBytes = 32 << 10
)

// The errors about executions that have no timeline.
var (
	errNoJournal = &api.Error{Status: http.StatusNotFound, Text: "There is no timeline: the journal of this execution does not keep everything (FERMATA_JOURNAL)"}
	errNoProgram = &api.Error{Status: http.StatusNotFound, Text: "There is no timeline: this execution is a call without a program"}
)

// Files are the stored files; *files.Store implements it.
type Files interface {
	Stat(ctx context.Context, owner files.Owner, session, id string) (files.File, error)
	Content(ctx context.Context, f files.File, from, to int64) (io.ReadCloser, error)
}

// A Maker makes timelines.
type Maker struct {
	history *journal.History
	files   Files
	room    *api.Room
	space   timeline.Namespace
}

// New returns a Maker. Paths of blocks begin with the namespace, unless a request wants another one.
func New(history *journal.History, files Files, space string) *Maker {
	return &Maker{history, files, api.NewRoom(roomBytes, places, "timelines"), timeline.Namespace(space)}
}

// A Wish says what of a timeline is wanted.
type Wish struct {
	// Named returns the names for an execution whose start has named none. It gets the default names.
	Named func(usual timeline.Names) timeline.Names
	// Base64, if it is set, says whether the contents of PDF files and images are wanted. Otherwise the start
	// decides.
	Base64 *bool
	// Namespace, if it is set, replaces that of the Maker.
	Namespace *timeline.Namespace
	Paths     []string
	Mute      bool
}

// A Made is a timeline, which holds memory until it is closed.
type Made struct {
	timeline.Timeline
	place *api.Place
	size  int64
}

// Close releases the memory.
func (m *Made) Close() { m.place.Leave() }

// large reports whether the timeline is so large that it must be encoded while it is sent.
func (m *Made) large() bool { return m.size > large }

// Of returns the timeline of an execution of the viewer.
func (m *Maker) Of(ctx context.Context, v journal.Viewer, execution string, w Wish) (*Made, error) {
	x, err := m.history.Find(ctx, v, execution)
	if err != nil {
		return nil, err
	}
	return m.make(ctx, v, x, w)
}

// make returns the timeline of an execution, for a viewer who may see it.
func (m *Maker) make(ctx context.Context, v journal.Viewer, x *journal.Execution, w Wish) (_ *Made, err error) {
	if x.Mode() != journal.Full {
		return nil, errNoJournal
	}
	place, err := m.room.Enter(ctx, v.Principal)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			place.Leave()
		}
	}()
	if !x.Ended() {
		// It may have run out while nobody was there to note its end. The summary brings that about.
		if _, err = x.Summary(ctx); err != nil {
			return nil, err
		}
	}
	facts, err := read(ctx, x, place)
	if err != nil {
		return nil, err
	}
	if facts.Session() == "" {
		return nil, errNoProgram
	}
	o := timeline.Options{Paths: w.Paths, Mute: w.Mute, Namespace: m.space}
	if w.Namespace != nil {
		o.Namespace = *w.Namespace
	}
	if o.Names, err = facts.Names(); err != nil {
		return nil, fmt.Errorf("timelines: names of execution %s: %w", x.ID(), err)
	}
	if !facts.Named() && w.Named != nil {
		o.Names = w.Named(o.Names)
	}
	if w.Base64 != nil {
		o.Names.NoBase64 = !*w.Base64
	}
	owner, known := auth.Named(x.Principal())
	if !known {
		return nil, fmt.Errorf("timelines: %q is no principal", x.Principal())
	}
	c := &contents{files: m.files, owner: api.OwnerOf(owner), session: facts.Session(), place: place, ctx: ctx}
	made, err := timeline.Build(ctx, facts, o, c)
	if err != nil {
		return nil, err
	}
	return &Made{made, place, facts.Size() + c.reserved}, nil
}

// read reads the journal of an execution, and takes memory for what it keeps of it.
func read(ctx context.Context, x *journal.Execution, place *api.Place) (*timeline.Facts, error) {
	facts := &timeline.Facts{}
	held := int64(0)
	for after, more := int64(0), true; more; {
		var events []journal.Entry
		var err error
		if events, more, err = x.Events(ctx, after, pageEvents); err != nil {
			return nil, err
		}
		for _, e := range events {
			if err := facts.Add(e); err != nil {
				return nil, err
			}
			after = e.Seq
		}
		if size := copies * facts.Size(); size > held {
			if err := place.Take(ctx, size-held); err != nil {
				return nil, err
			}
			held = size
		}
	}
	return facts, nil
}

// contents reads the files of one execution.
type contents struct {
	files    Files
	owner    files.Owner
	session  string
	place    *api.Place
	reserved int64
	ctx      context.Context //nolint:containedctx // it is that of the one call that this is for
}

// Reserve implements timeline.Contents.
func (c *contents) Reserve(bytes int64) error {
	c.reserved = bytes
	return c.place.Take(c.ctx, bytes)
}

// Read implements timeline.Contents.
func (c *contents) Read(ctx context.Context, id string, most int64) ([]byte, error) {
	f, err := c.files.Stat(ctx, c.owner, c.session, id)
	if err == nil && most == 0 {
		return nil, nil
	}
	var content io.ReadCloser
	if err == nil {
		content, err = c.files.Content(ctx, f, 0, min(most, f.Size))
	}
	if errors.Is(err, files.ErrNotFound) || errors.Is(err, files.ErrForeign) {
		return nil, timeline.ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	data := make([]byte, min(most, f.Size))
	n, err := io.ReadFull(content, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("timelines: read file %s: %w", id, err)
	}
	return data[:n], nil
}
