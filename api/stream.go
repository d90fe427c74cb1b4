package api

import (
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
	// EventStream and NDJSON are the media types of streams.
	EventStream = "text/event-stream"
	NDJSON      = "application/x-ndjson"

	// streamWrite is how long a reader may take for what is written at once, which is some 32 KiB
	// or one large event. A reader that only sleeps has as much in the buffers of its connection.
	streamWrite = 30 * time.Second
	// streamBeat is after what silence a comment tells the reader, and what is between, that the
	// stream is alive.
	streamBeat = 15 * time.Second
)

// A Stream is an answer that goes on while there is something to tell: server-sent events, or lines
// of JSON. It holds nothing but what is being written.
//
// There are libraries for server-sent events. They come with a hub of subscribers, a queue for each
// of them and replay from memory, all of which the journal replaces; what is left of them are the
// forty lines here, which in addition give each write a deadline and keep every event on one line.
type Stream struct {
	response http.ResponseWriter
	control  *http.ResponseController
	readers  *Readers
	frames   bool
	err      error
}

// OpenStream begins the answer to a request with status 200 and a media type of a stream.
func (r *Readers) OpenStream(c echo.Context, mediaType string) *Stream {
	s := &Stream{response: c.Response(), control: http.NewResponseController(c.Response()), readers: r, frames: mediaType == EventStream}
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, mediaType)
	header.Set(echo.HeaderCacheControl, "no-store")
	// Some proxies wait for the end of an answer unless they are told.
	header.Set("X-Accel-Buffering", "no")
	// net/http reads from now on, to see whether the client leaves. A deadline would look as if it
	// had.
	_ = s.control.SetReadDeadline(time.Time{})
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite))
	c.Response().WriteHeader(http.StatusOK)
	if s.frames {
		s.write("retry: 1000\n\n")
	}
	s.flush()
	return s
}

// Event sends one event, of which data is the JSON. An id of 0 is none. What it sends may wait for a
// Flush.
func (s *Stream) Event(id int64, event string, data []byte) {
	data = oneLine(data)
	sent := len(data) + 1
	if s.frames {
		head := make([]byte, 0, 64)
		if id > 0 {
			head = append(strconv.AppendInt(append(head, "id: "...), id, 10), '\n')
		}
		head = append(append(append(head, "event: "...), event...), "\ndata: "...)
		s.write(string(head))
		sent += len(head) + 1
	}
	if s.err == nil {
		_, s.err = s.response.Write(data)
	}
	if s.frames {
		s.write("\n")
	}
	s.write("\n")
	if s.err == nil && s.readers.observer.Sent != nil {
		s.readers.observer.Sent(1, sent)
	}
}

// Comment sends a comment, which readers skip. Lines of JSON have none.
func (s *Stream) Comment(text string) {
	if s.frames {
		s.begin()
		s.write(": " + text + "\n\n")
		s.flush()
	}
}

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

// begin gives what is written until the flush its time.
func (s *Stream) begin() { _ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) }

func (s *Stream) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.response, text)
	}
}

func (s *Stream) flush() {
	if s.err == nil {
		s.err = s.control.Flush()
	}
}

// Left reports whether the reader has left, or was cut off.
func (s *Stream) Left() bool { return s.err != nil }

// Send writes what events writes, and flushes. The error says that the reader has left, or was cut
// off because it is too slow.
func (s *Stream) Send(events func() error) error {
	s.begin()
	if err := events(); err != nil {
		return err
	}
	s.flush()
	if isTimeout(s.err) && s.readers.observer.CutOff != nil {
		s.readers.observer.CutOff()
	}
	return s.err
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

// Relay sends what a follower reads, event by event, until the follower is at the end of its
// journal, which is no error, or ctx ends.
func (s *Stream) Relay(ctx context.Context, f *journal.Follower, send func(journal.Entry) error) error {
	for {
		list, err := next(ctx, f)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			if s.Comment("still here"); s.err != nil {
				return s.err
			}
			continue
		case err != nil:
			return err
		}
		err = s.Send(func() error {
			for _, e := range list {
				if err := send(e); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// next waits for the next events, at most until the next comment is due.
func next(ctx context.Context, f *journal.Follower) ([]journal.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, streamBeat)
	defer cancel()
	return f.Next(ctx)
}
