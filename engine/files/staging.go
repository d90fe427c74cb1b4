package files

import (
	"bytes"
	"context"
	"fmt"

	"fermata/engine/core"
)

// A Staging stores the files that a request itself contains, when its program is about to begin. It
// implements engine.Staging, for one start.
type Staging struct {
	store      *Store
	owner      Owner
	session    string
	references []Reference
	contents   map[int][]byte
	stored     []File
}

// Staging returns what stores the contents in a session of the owner. The key of each content is the
// index of a reference, of which only the name counts; all others are references to stored files.
func (s *Store) Staging(owner Owner, session string, references []Reference, contents map[int][]byte) *Staging {
	return &Staging{store: s, owner: owner, session: session, references: references, contents: contents}
}

// A ContentError says why one of the contents of a request could not be stored.
type ContentError struct {
	// Index is that of its reference.
	Index int
	// Limit is the largest size of a file.
	Limit int64
	err   error
}

func (e *ContentError) Error() string { return fmt.Sprintf("files: content %d: %v", e.Index, e.err) }

// Unwrap returns the error of Store.Put.
func (e *ContentError) Unwrap() error { return e.err }

// Stage implements engine.Staging. It stores all contents or none. Its errors are those of Store.Inputs
// and *ContentError.
func (g *Staging) Stage(ctx context.Context) ([]core.InputFile, error) {
	complete := make([]Reference, len(g.references))
	stored := make([]File, len(g.references))
	errs := inParallel(len(g.references), func(i int) (err error) {
		complete[i] = g.references[i]
		content, ok := g.contents[i]
		if !ok {
			return nil
		}
		name := complete[i].Name
		stored[i], err = g.store.Put(ctx, New{Owner: g.owner, Session: g.session, Name: name, Content: bytes.NewReader(content)})
		complete[i] = Reference{Owner: g.owner, Session: g.session, ID: stored[i].ID, Name: name}
		return err
	})
	g.stored = g.stored[:0]
	for _, f := range stored {
		if f.ID != "" {
			g.stored = append(g.stored, f)
		}
	}
	for i, err := range errs {
		if err != nil {
			g.Discard(ctx)
			return nil, &ContentError{Index: i, Limit: g.store.options.MaxFile, err: err}
		}
	}
	inputs, err := g.store.Inputs(ctx, complete)
	if err != nil {
		g.Discard(ctx)
	}
	return inputs, err
}

// Discard implements engine.Staging, even if ctx has ended. A file that cannot be removed stays until its
// life is over.
func (g *Staging) Discard(ctx context.Context) {
	ctx, cancel := withDeadline(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	inParallel(len(g.stored), func(i int) error {
		return g.store.Delete(ctx, g.owner, g.session, g.stored[i].ID)
	})
	g.stored = nil
}
