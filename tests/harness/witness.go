package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A Witness follows the events of an execution as they come, on one stream after the other. It goes
// on where a stream has broken off, and remembers what it has seen.
type Witness struct {
	seen    Journal
	streams int
	done    chan struct{}
	err     error
}

// Witness returns a new witness, who waits until there is an execution with a label, and watches it
// until it or ctx ends.
func (c Client) Witness(ctx context.Context, key, value string) *Witness {
	w := &Witness{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for w.err == nil && w.seen.ID == "" {
			var found []string
			if found, w.err = c.Labelled(ctx, key, value); len(found) > 0 {
				w.seen.ID = found[0]
			}
			time.Sleep(retryTime)
		}
		for w.err == nil && !w.seen.Ended() {
			w.err = cmp.Or(w.watch(ctx, c), ctx.Err())
		}
	}()
	return w
}

// watch follows one stream until it breaks off. Some streams are left by the witness.
func (w *Witness) watch(ctx context.Context, c Client) error {
	w.streams++
	response, err := c.open(ctx, w.seen.ID, "text/event-stream", len(w.seen.Events))
	if err != nil {
		return err
	}
	if rand.N(2) == 0 {
		defer time.AfterFunc(rand.N(500*time.Millisecond), func() { _ = response.Body.Close() }).Stop()
	}
	id, data := "", ""
	return eachLine(response, func(line string) error {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data = value
		case line == "" && data != "":
			err := errors.Join(w.seen.add([]byte(data)), same("the id of a frame", id, strconv.Itoa(len(w.seen.Events))))
			id, data = "", ""
			return err
		}
		return nil
	})
}

// Agrees waits until the witness has seen the end of an execution, and checks that it has seen what
// the journal tells. The witness may be late, but not for as long as patience.
func (w *Witness) Agrees(j *Journal, patience time.Duration) error {
	began := time.Now()
	select {
	case <-w.done:
	case <-time.After(patience):
		return fmt.Errorf("execution %s: a witness has not seen its end after %v", j.ID, time.Since(began))
	}
	if w.err != nil {
		return fmt.Errorf("a witness, on stream %d: %w", w.streams, w.err)
	}
	if got, want := w.seen.String(), j.String(); got != want {
		return fmt.Errorf("a witness has seen:\n%s\nthe journal tells:\n%s", got, want)
	}
	return nil
}
