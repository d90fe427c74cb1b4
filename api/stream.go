package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/engine/journal"
)

const (
	// EventStream is the media type of server-sent events.
	EventStream = "text/event-stream"
	// NDJSON is the media type of lines of JSON.
	NDJSON = "application/x-ndjson"

	// streamWrite is how long a reader may take for what is written at once, which is some 16 KiB
	// or one large event. A reader that only sleeps has as much in the buffers of its connection.
	streamWrite = 30 * time.Second
	// streamBeat is after what silence a comment tells the reader, and what is between, that the
	// stream is alive.
	streamBeat = 15 * time.Second
	stillHere  = "still here"
)

// A Stream is an answer that goes on while there is something to tell: server-sent events, or lines
// of JSON. It holds nothing but what is being written.
//
// There are libraries for server-sent events. They come with a hub of subscribers, a queue for each
// of them and replay from memory, all of which the journal replaces; what is left of them are the
// forty lines here, which in addition give each write a deadline and keep every event on one line.
type Stream struct {
	c         echo.Context
	control   *http.ResponseController
	readers   *Readers
	mediaType string
	open      bool
	// head is memory for what stands before the data of an event.
	head []byte
	err  error
}

// NewStream returns a stream that answers a request in a media type of streams. It begins with the
// first thing that is sent.
func (r *Readers) NewStream(c echo.Context, mediaType string) *Stream {
	return &Stream{c: c, control: http.NewResponseController(c.Response()), readers: r, mediaType: mediaType}
}

// Opened reports whether the answer has begun, so that it cannot be another one any more.
func (s *Stream) Opened() bool { return s.open }

// Open begins the answer, with status 200.
func (s *Stream) Open() error {
	return s.Send(streamWrite, func() error { return nil })
}

// begin begins the answer if it has not begun.
func (s *Stream) begin() {
	if s.open {
		return
	}
	s.open = true
	header := s.c.Response().Header()
	header.Set(echo.HeaderContentType, s.mediaType)
	header.Set(echo.HeaderCacheControl, "no-store")
	// Some proxies wait for the end of an answer unless they are told.
	header.Set("X-Accel-Buffering", "no")
	// net/http reads from now on, to see whether the client leaves. A deadline would look as if it
	// had.
	_ = s.control.SetReadDeadline(time.Time{})
	s.c.Response().WriteHeader(http.StatusOK)
	if s.mediaType == EventStream {
		s.write([]byte("retry: 1000\n\n"))
	}
}

// Send writes what events writes, and flushes it. The error is that of events or says that the
// reader has left, or was cut off because it was not done within the given time.
func (s *Stream) Send(within time.Duration, events func() error) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(within))
	s.begin()
	failure := events()
	if s.err == nil {
		s.err = s.control.Flush()
	}
	if s.err == nil {
		return failure
	}
	if isTimeout(s.err) && s.readers.observer.CutOff != nil {
		s.readers.observer.CutOff()
	}
	return s.err
}

// Event writes one event, of which data is the JSON. An id of 0 is none. It belongs within Send.
func (s *Stream) Event(id int64, event string, data []byte) {
	head := s.beginEvent(id, event)
	s.write(oneLine(data))
	s.endEvent(head + len(data))
}

// EventFrom is like Event, without an id. The function write writes the JSON of the event, which may be large:
// it is sent in pieces.
func (s *Stream) EventFrom(event string, write func(io.Writer) error) {
	head := s.beginEvent(0, event)
	line := &lineWriter{stream: s}
	pieces := bufio.NewWriterSize(line, writePiece)
	err := write(pieces)
	if err == nil {
		err = pieces.Flush()
	}
	if s.err == nil {
		s.err = err
	}
	s.endEvent(head + line.size)
}

// beginEvent writes what stands before the data of an event, and returns its size.
func (s *Stream) beginEvent(id int64, event string) int {
	if s.mediaType != EventStream {
		return 0
	}
	s.head = s.head[:0]
	if id > 0 {
		s.head = append(strconv.AppendInt(append(s.head, "id: "...), id, 10), '\n')
	}
	s.head = append(append(append(s.head, "event: "...), event...), "\ndata: "...)
	s.write(s.head)
	return len(s.head)
}

// endEvent ends an event, of which size bytes were written.
func (s *Stream) endEvent(size int) {
	end := blankLine
	if s.mediaType != EventStream {
		end = blankLine[:1]
	}
	s.write(end)
	if s.err == nil && s.readers.observer.Sent != nil {
		s.readers.observer.Sent(size + len(end))
	}
}

// A lineWriter writes JSON to a stream, on one line.
type lineWriter struct {
	stream *Stream
	size   int
}

func (w *lineWriter) Write(piece []byte) (int, error) {
	w.stream.write(oneLine(piece))
	w.size += len(piece)
	return len(piece), w.stream.err
}

// Comment sends a comment, which readers skip. Lines of JSON have none.
func (s *Stream) Comment(text string) error {
	if s.mediaType != EventStream {
		return s.err
	}
	return s.Send(streamWrite, func() error {
		s.write([]byte(": " + text + "\n\n"))
		return nil
	})
}

// Left reports whether the reader has left, or was cut off.
func (s *Stream) Left() bool { return s.err != nil }

func (s *Stream) write(text []byte) {
	if s.err == nil {
		_, s.err = s.c.Response().Write(text)
	}
}

// blankLine ends a line and the frame that it belongs to.
var blankLine = []byte("\n\n")

// oneLine returns JSON without line breaks. Outside of strings they mean nothing, and in strings
// they are escaped.
func oneLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	line := bytes.Clone(data)
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return line
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

// Relay sends what a follower reads, event by event, until it is at the end of its journal or send
// returns io.EOF, which are no errors, or ctx ends.
func (s *Stream) Relay(ctx context.Context, f *journal.Follower, send func(journal.Entry) error) error {
	for {
		list, err := f.Next(ctx, streamBeat)
		switch {
		case errors.Is(err, journal.ErrQuiet):
			err = s.Comment(stillHere)
		case err == nil:
			err = s.Send(streamWrite, func() error { return each(list, send) })
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Drain is Relay for what there is to read now.
func (s *Stream) Drain(ctx context.Context, f *journal.Follower, send func(journal.Entry) error) error {
	for {
		list, err := f.Ready(ctx)
		if err == nil && len(list) > 0 {
			err = s.Send(streamWrite, func() error { return each(list, send) })
		}
		if errors.Is(err, io.EOF) || err == nil && len(list) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func each(list []journal.Entry, send func(journal.Entry) error) error {
	for _, e := range list {
		if err := send(e); err != nil {
			return err
		}
	}
	return nil
}

// Await calls step, which returns when something has come to pass or its context ends, until
// something has or ctx ends. Meanwhile it sends comments.
func (s *Stream) Await(ctx context.Context, step func(context.Context) error) error {
	for {
		err := within(ctx, streamBeat, step)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err := s.Comment(stillHere); err != nil {
			return err
		}
	}
}

func within(ctx context.Context, d time.Duration, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return step(ctx)
}
