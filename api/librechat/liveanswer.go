package librechat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/api/runs"
	"fermata/api/timelines"
	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// A task is a request that runs a program, once it has been read and checked.
type task struct {
	// run runs the program until it pauses or ends. Here, began may be nil.
	run runs.Step
	// encode returns status and body of the answer.
	encode func(core.Outcome) (status int, body []byte, err error)
}

// A live answers requests whose clients want to see what their programs do meanwhile.
type live struct {
	history *journal.History
	readers *api.Readers
	// timelines make the timelines that answers carry; nil if they carry none.
	timelines *timelines.Maker
	// failure returns status and body of the answer to a request that has failed.
	failure func(c echo.Context, err error) (status int, body []byte, encoding error)
}

// wanted reports whether the client of a request prefers a stream to an ordinary answer.
func (l *live) wanted(header http.Header) bool {
	return l.history != nil && api.Preferred(header, echo.MIMEApplicationJSON, api.EventStream) == api.EventStream
}

// answer runs a task and answers with the events of the run as they come, and then with what
// would have been the answer. What is refused before there is an event is an ordinary error.
func (l *live) answer(c echo.Context, t task) error {
	done, err := l.readers.Admit(api.PrincipalOf(c).ID)
	if err != nil {
		return err
	}
	defer done()
	// If the reader is cut off, it is as if the client had left.
	ctx, leave := context.WithCancel(c.Request().Context())
	defer leave()
	r := runs.Begin(ctx, t.run)
	s := l.readers.NewStream(c, api.EventStream)
	if err := l.relay(ctx, c, s, r); err != nil {
		leave()
		outcome, _ := r.Outcome()
		api.SetStep(c, outcome)
		if !s.Opened() {
			return err
		}
		if !s.Left() {
			api.SetCause(c, err)
		}
		return nil
	}
	outcome, failed := r.Outcome()
	api.SetStep(c, outcome)
	if failed != nil && !s.Opened() {
		return failed
	}
	var status int
	var body []byte
	if failed == nil {
		status, body, failed = t.encode(outcome)
	}
	if failed != nil {
		if status, body, err = l.failure(c, failed); err != nil {
			return err
		}
	}
	write, done := timelines.Plain(body)
	if failed == nil && outcome.Include && l.timelines != nil {
		write, done = l.timelines.Extend(c, body, outcome.Execution)
	}
	defer done()
	_ = s.Send(api.AnswerTimeout, func() error { // An error means that the client has left.
		s.EventFrom("answer", func(w io.Writer) error {
			_, err := fmt.Fprintf(w, `{"http_status":%d,"body":`, status)
			if err == nil {
				err = write(w)
			}
			if err == nil {
				_, err = io.WriteString(w, "}")
			}
			return err
		})
		return nil
	})
	return nil
}

// relay sends the events of a run, until its answer is known and everything before it is sent. An
// error says that the client has left.
func (l *live) relay(ctx context.Context, c echo.Context, s *api.Stream, r *runs.Run) error {
	select {
	case <-r.Began():
		execution, _ := r.Execution()
		api.SetExecution(c, execution)
		err := l.follow(ctx, c, s, r)
		if ctx.Err() != nil || s.Left() {
			return err
		}
		if err != nil {
			api.SetCause(c, err) // The answer comes without the rest of the events.
		}
	case <-r.Done():
		outcome, _ := r.Outcome()
		api.SetExecution(c, outcome.Execution)
		return nil // It was refused, or has an answer already.
	}
	return s.Await(ctx, func(ctx context.Context) error {
		select {
		case <-r.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// follow sends the events of a run until it comes to rest.
func (l *live) follow(ctx context.Context, c echo.Context, s *api.Stream, r *runs.Run) error {
	running, stop := r.Within(ctx)
	defer stop()
	execution, events := r.Execution()
	var x *journal.Execution
	err := s.Await(running, func(ctx context.Context) (err error) {
		x, err = l.history.Await(ctx, journal.Viewer{Principal: api.PrincipalOf(c).ID}, execution)
		return err
	})
	if err != nil && !r.Ended() {
		return err
	}
	if x == nil { // It has come to rest before there was anything to see.
		if x, err = l.history.Find(ctx, journal.Viewer{Principal: api.PrincipalOf(c).ID}, execution); err != nil {
			return ignoreMissing(err)
		}
	}
	f, err := x.Follow(ctx, events)
	if err != nil {
		return err
	}
	defer f.Close()
	send := func(e journal.Entry) error {
		s.Event(e.Seq, e.Type, e.Content)
		if e.Type == journal.TypePaused || e.Type == journal.TypeEnded {
			return io.EOF
		}
		return nil
	}
	if err = s.Relay(running, f, send); err == nil || !r.Ended() {
		return err
	}
	// What came before the answer is stored by now.
	return s.Drain(ctx, f, send)
}

// ignoreMissing returns err unless it says that there is no such execution.
func ignoreMissing(err error) error {
	if errors.Is(err, continuation.ErrNotFound) {
		return nil
	}
	return err
}
