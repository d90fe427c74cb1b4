package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"fermata/tests/harness"
)

const (
	eventStream = "text/event-stream"
	ndjson      = "application/x-ndjson"
)

// A frame is one server-sent event.
type frame struct {
	ID    int64
	Event string
	Data  json.RawMessage
}

// An event is what most tests look at of an event.
type event struct {
	Seq       int64     `json:"seq"`
	Time      time.Time `json:"time"`
	Type      string    `json:"type"`
	Execution string    `json:"execution"`
	Stream    string    `json:"stream"`
	Offset    int       `json:"offset"`
	Text      string    `json:"text"`
	Status    string    `json:"status"`
	Call      string    `json:"call"`
}

// A stream is an answer that is read while it comes.
type stream struct {
	response *http.Response
	lines    *bufio.Reader
	begun    bool
	// comments counts the comments so far; last is the latest one.
	comments int
	last     string
}

// send sends a request and returns the answer, whose body has not been read.
func send(t testing.TB, c harness.Client, method, path string, header http.Header, body any) *http.Response {
	t.Helper()
	var raw []byte
	if body != nil {
		var err error
		if raw, err = harness.Marshal(body); err != nil {
			t.Fatal(err)
		}
		if text, ok := body.(string); ok {
			raw = []byte(text)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	c.Authorize(r)
	maps.Copy(r.Header, header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// accepting returns a header that asks for a media type.
func accepting(mediaType string) http.Header { return http.Header{"Accept": {mediaType}} }

// open opens a stream of server-sent events.
func open(t testing.TB, c harness.Client, method, path string, header http.Header, body any) *stream {
	t.Helper()
	all := accepting(eventStream)
	maps.Copy(all, header)
	response := send(t, c, method, path, all, body) //nolint:bodyclose // send closes it at the end of the test
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != eventStream {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s %s: got %d, %s: %s, want a stream", method, path, response.StatusCode, response.Header.Get("Content-Type"), text)
	}
	return &stream{response: response, lines: bufio.NewReader(response.Body)}
}

// next returns the next frame, or io.EOF. It accepts nothing but what the server should send: lines
// that end with \n, a first line "retry", and then comments and frames that have each field once.
func (s *stream) next() (frame, error) {
	var f frame
	var fields string
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			if line != "" || fields != "" {
				err = fmt.Errorf("the stream ends within a frame: %q: %w", line, err)
			}
			return f, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, cut := strings.Cut(line, ": ")
		switch {
		case strings.Contains(line, "\r") || !utf8.ValidString(line):
			return f, fmt.Errorf("a line that is not ours: %q", line)
		case !s.begun && line == "retry: 1000":
			if blank, err := s.lines.ReadString('\n'); err != nil || blank != "\n" {
				return f, fmt.Errorf("after retry: %q, %w", blank, err)
			}
			s.begun = true
			continue
		case !s.begun:
			return f, fmt.Errorf("the first line is %q", line)
		case line == "" && fields == ":":
			fields = ""
			continue
		case line == "":
			if fields != "ied" && fields != "ed" {
				return f, fmt.Errorf("a frame with the fields %q", fields)
			}
			return f, nil
		case !cut:
			return f, fmt.Errorf("a line that is not ours: %q", line)
		}
		switch name {
		case "":
			s.comments++
			s.last = value
			fields += ":"
		case "id":
			fields += "i"
			if f.ID, err = strconv.ParseInt(value, 10, 64); err != nil {
				return f, err
			}
		case "event":
			fields += "e"
			f.Event = value
		case "data":
			fields += "d"
			f.Data = json.RawMessage(value)
			if !json.Valid(f.Data) {
				return f, fmt.Errorf("data is no JSON: %q", value)
			}
		default:
			return f, fmt.Errorf("a line that is not ours: %q", line)
		}
	}
}

// one returns the next frame.
func (s *stream) one(t testing.TB) frame {
	t.Helper()
	f, err := s.next()
	if err != nil {
		t.Fatalf("read a stream: %v", err)
	}
	return f
}

// all returns all frames until the stream ends.
func (s *stream) all(t testing.TB) (frames []frame) {
	t.Helper()
	for {
		f, err := s.next()
		if errors.Is(err, io.EOF) {
			return frames
		}
		if err != nil {
			t.Fatalf("read a stream after %d frames: %v", len(frames), err)
		}
		frames = append(frames, f)
	}
}

// until returns the frames up to one of this event.
func (s *stream) until(t testing.TB, name string) (frames []frame) {
	t.Helper()
	for {
		f := s.one(t)
		frames = append(frames, f)
		if f.Event == name {
			return frames
		}
	}
}

// event returns the event in a frame.
func (f frame) event(t testing.TB) event {
	t.Helper()
	var e event
	if err := json.Unmarshal(f.Data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// names returns the events of frames. Outputs in a row count as one: how a print is cut is a matter of
// time.
func names(frames []frame) string {
	var list []string
	for i, f := range frames {
		if i == 0 || f.Event != "output" || frames[i-1].Event != "output" {
			list = append(list, f.Event)
		}
	}
	return strings.Join(list, " ")
}

// A live is an answer that came as a stream.
type live struct {
	ID     string
	Events []frame
	// Status and Body are those of the ordinary answer.
	Status int
	Body   json.RawMessage
	harness.Answer
}

// liveAnswer reads a live answer to its end.
func (s *stream) liveAnswer(t testing.TB) live {
	t.Helper()
	frames := s.all(t)
	if len(frames) == 0 || frames[len(frames)-1].Event != "answer" || frames[len(frames)-1].ID != 0 {
		t.Fatalf("got %s, want an answer without an id at the end", names(frames))
	}
	last := frames[len(frames)-1]
	var a struct {
		Status int             `json:"http_status"`
		Body   json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(last.Data, &a); err != nil {
		t.Fatal(err)
	}
	l := live{Events: frames[:len(frames)-1], Status: a.Status, Body: a.Body}
	if err := json.Unmarshal(a.Body, &l.Answer); err != nil {
		t.Fatal(err)
	}
	l.HTTPStatus, l.Raw = a.Status, string(a.Body)
	for _, f := range l.Events {
		if f.Event == "execution.started" {
			l.ID = f.event(t).Execution
		}
	}
	return l
}

// run sends a request that runs a program and returns its live answer.
func run(t testing.TB, c harness.Client, body any) live {
	t.Helper()
	return open(t, c, http.MethodPost, harness.Programmatic, nil, body).liveAnswer(t)
}

// begin starts a program and returns its stream, of which the first event has been read, and the id
// of its execution.
func begin(t testing.TB, c harness.Client, p harness.Program) (*stream, string) {
	t.Helper()
	s := open(t, c, http.MethodPost, harness.Programmatic, nil, p)
	f := s.one(t)
	if f.Event != "execution.started" || f.ID != 1 {
		t.Fatalf("the first event is %d %s", f.ID, f.Event)
	}
	return s, f.event(t).Execution
}

// get returns status, header and body of an answer to a request without a body.
func get(t testing.TB, c harness.Client, method, path string, header http.Header) (status int, answered http.Header, body string) {
	t.Helper()
	return fetch(t, c, method, path, header, nil)
}

// fetch returns status, header and body of an answer.
func fetch(t testing.TB, c harness.Client, method, path string, header http.Header, sent any) (status int, answered http.Header, body string) {
	t.Helper()
	response := send(t, c, method, path, header, sent)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// look gets JSON into a value.
func look(t testing.TB, c harness.Client, path string, into any) {
	t.Helper()
	status, _, body := get(t, c, http.MethodGet, path, nil)
	if status != http.StatusOK {
		t.Fatalf("GET %s: got %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("GET %s: %v: %s", path, err, body)
	}
}
