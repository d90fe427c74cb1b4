package librechat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/api/timelines"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/journal"
)

// A task is a request that runs a program, once it has been read and checked.
type task struct {
	// run runs the program until it pauses or ends. began, if it is not nil, is called when it
	// begins, with the execution and the number of its latest event.
	run func(ctx context.Context, began func(execution string, events int64)) (engine.Outcome, error)
	// encode returns status and body of the answer.
	encode func(engine.Outcome) (status int, body []byte, err error)
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

// answer runs a task and answers with the events of this stretch as they come, and then with what
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
	r := begin(ctx, t)
	s := l.readers.NewStream(c, api.EventStream)
	if err := l.relay(ctx, c, s, r); err != nil {
		leave()
		<-r.ended.Done()
		api.SetStep(c, r.outcome)
		if !s.Opened() {
			return err
		}
		if !s.Left() {
			api.SetCause(c, err)
		}
		return nil
	}
	<-r.ended.Done()
	api.SetStep(c, r.outcome)
	if r.err != nil && !s.Opened() {
		return r.err
	}
	status, body, err := l.encode(c, t, r)
	if err != nil {
		return err
	}
	write, done := timelines.Plain(body)
	if r.err == nil && r.outcome.Include && l.timelines != nil {
		write, done = l.timelines.Extend(c, body, r.outcome.Execution)
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

// encode returns status and body of the ordinary answer.
func (l *live) encode(c echo.Context, t task, r *run) (status int, body []byte, err error) {
	if r.err == nil {
		if status, body, r.err = t.encode(r.outcome); r.err == nil {
			return status, body, nil
		}
	}
	return l.failure(c, r.err)
}

// A run is a task that runs.
type run struct {
	began chan stretch
	// ended ends when outcome and err are set.
	ended   context.Context //nolint:containedctx // it is the end of this run, not of a call
	outcome engine.Outcome
	err     error
}

// A stretch is what a request runs of an execution: what comes after so many events.
type stretch struct {
	execution string
	events    int64
}

// begin runs a task until it has its outcome.
func begin(ctx context.Context, t task) *run {
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	r := &run{began: make(chan stretch, 1), ended: ended}
	go func() {
		defer end()
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("librechat: panic: %v\n%s", p, debug.Stack())
			}
		}()
		r.outcome, r.err = t.run(ctx, func(execution string, events int64) {
			select {
			case r.began <- stretch{execution, events}:
			default: // A start that is tried again begins again; its id stays.
			}
		})
	}()
	return r
}

// relay sends the events of a run, until its answer is known and everything before it is sent. An
// error says that the client has left.
func (l *live) relay(ctx context.Context, c echo.Context, s *api.Stream, r *run) error {
	select {
	case at := <-r.began:
		api.SetExecution(c, at.execution)
		err := l.follow(ctx, c, s, r, at)
		if ctx.Err() != nil || s.Left() {
			return err
		}
		if err != nil {
			api.SetCause(c, err) // The answer comes without the rest of the events.
		}
	case <-r.ended.Done():
		api.SetExecution(c, r.outcome.Execution)
		return nil // It was refused, or has an answer already.
	}
	return s.Await(ctx, func(ctx context.Context) error {
		select {
		case <-r.ended.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// follow sends the events of a stretch until it comes to rest.
func (l *live) follow(ctx context.Context, c echo.Context, s *api.Stream, r *run, at stretch) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(r.ended, stop)() //nolint:contextcheck // it ends with the run
	var x *journal.Execution
	err := s.Await(running, func(ctx context.Context) (err error) {
		x, err = l.history.Await(ctx, journal.Viewer{Principal: api.PrincipalOf(c).ID}, at.execution)
		return err
	})
	if err != nil && r.ended.Err() == nil {
		return err
	}
	if x == nil { // It has come to rest before there was anything to see.
		if x, err = l.history.Find(ctx, journal.Viewer{Principal: api.PrincipalOf(c).ID}, at.execution); err != nil {
			return ignoreMissing(err)
		}
	}
	f, err := x.Follow(ctx, at.events)
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
	if err = s.Relay(running, f, send); err == nil || r.ended.Err() == nil {
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
