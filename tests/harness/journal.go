package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ExecutionHeader is the header of an answer that tells to which execution it belongs.
const ExecutionHeader = "Fermata-Execution"

// Execution returns the id of the execution to which an answer belongs.
func (a Answer) Execution() string { return a.Header.Get(ExecutionHeader) }

// Insist repeats a request, unchanged, until there is an answer that is not 503.
func (c Client) Insist(ctx context.Context, method, path string, header http.Header, body any) (Answer, error) {
	for {
		a, err := c.Request(ctx, method, path, header, body)
		if ctx.Err() != nil {
			return a, errors.Join(err, fmt.Errorf("%s %s: no answer but %v", method, path, a))
		}
		if err == nil && a.HTTPStatus != http.StatusServiceUnavailable {
			return a, nil
		}
		if err == nil && a.Header.Get("Retry-After") == "" {
			return a, fmt.Errorf("%s %s: got %v without Retry-After", method, path, a)
		}
		time.Sleep(retryTime)
	}
}

// retryTime is the time between two attempts of a client whose server is away.
const retryTime = 20 * time.Millisecond

// look gets JSON into a value, however long the server is away meanwhile.
func (c Client) look(ctx context.Context, path string, into any) error {
	a, err := c.Insist(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	if a.HTTPStatus != http.StatusOK {
		return fmt.Errorf("GET %s: got %v", path, a)
	}
	return json.Unmarshal([]byte(a.Raw), into)
}

// An Event is an event of a journal, with the members that tests look at. Raw is its JSON, byte for
// byte as the server has sent it.
type Event struct {
	Raw string `json:"-"`

	Seq         int64           `json:"seq"`
	Time        time.Time       `json:"time"`
	Type        string          `json:"type"`
	Execution   string          `json:"execution"`
	Stream      string          `json:"stream"`
	Offset      int             `json:"offset"`
	Text        string          `json:"text"`
	Call        string          `json:"call"`
	Record      string          `json:"record"`
	Tool        string          `json:"tool"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output"`
	Round       int             `json:"round"`
	Waiting     []string        `json:"waiting"`
	File        json.RawMessage `json:"file"`
	Status      string          `json:"status"`
	Rounds      int             `json:"rounds"`
	Calls       int             `json:"calls"`
	StdoutBytes int             `json:"stdout_bytes"`
	StderrBytes int             `json:"stderr_bytes"`
}

// A Journal is what a client has read so far of the journal of an execution. It checks that the
// events tell one possible story: the zero value knows no event, and add accepts the one that may
// come next.
type Journal struct {
	ID     string
	Events []Event
	// Streams are the texts of stdout and stderr.
	Streams map[string]string
	// Calls are the calls in the order made.
	Calls []JournalCall
	Files int
	// approved are the calls that have been approved and have not begun.
	approved map[string]bool
	// paused is true in a pause; rounds counts the pauses.
	paused bool
	rounds int
}

// A JournalCall is a tool call as a journal tells of it. Status is that of its record.
type JournalCall struct {
	ID, Record, Tool, Input, Output, Status string
}

// The statuses of the records of calls.
const (
	callWaits     = "waiting"
	callExecutes  = "executing"
	callCompleted = "completed"
	callFailed    = "failed"
)

// open reports whether the call has no result.
func (c JournalCall) open() bool { return c.Status == callWaits || c.Status == callExecutes }

// add adds the next event, or says why it cannot be the next one.
func (j *Journal) add(raw []byte) error {
	e := Event{Raw: string(raw)}
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("event %q: %w", raw, err)
	}
	if err := j.follows(e); err != nil {
		return fmt.Errorf("execution %s, event %d: %w: %s; the events before it:\n%s", j.ID, len(j.Events)+1, err, raw, j)
	}
	j.Events = append(j.Events, e)
	return nil
}

// String shows the events in the message of a failed test.
func (j *Journal) String() string {
	var b strings.Builder
	for _, e := range j.Events {
		b.WriteString(e.Raw + "\n")
	}
	return b.String()
}

// Ended reports whether the last event has been read.
func (j *Journal) Ended() bool { return j.last().Type == "execution.ended" }

// Types returns the types of the events that begin with one of these prefixes.
func (j *Journal) Types(prefixes ...string) (types []string) {
	for _, e := range j.Events {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.Type, p) }) {
			types = append(types, e.Type)
		}
	}
	return types
}

// Status returns how the execution has ended, empty if it has not.
func (j *Journal) Status() string {
	if !j.Ended() {
		return ""
	}
	return j.last().Status
}

func (j *Journal) last() (e Event) {
	if n := len(j.Events); n > 0 {
		e = j.Events[n-1]
	}
	return e
}

// follows returns an error if e cannot be the next event, and otherwise notes what it tells.
func (j *Journal) follows(e Event) error {
	switch before := j.last(); {
	case e.Seq != int64(len(j.Events)+1):
		return fmt.Errorf("its number is %d", e.Seq)
	case e.Time.Before(before.Time):
		return errors.New("it is older than the event before it")
	case j.Ended():
		return errors.New("it stands behind the end")
	case (e.Type == "execution.started") != (e.Seq == 1):
		return errors.New("only the first event tells of the start")
	}
	switch e.Type {
	case "execution.started":
		return same("its execution", e.Execution, j.ID)
	case "output":
		return j.prints(e)
	case "call.started", "approval.requested":
		return j.calls(e)
	case "approval.given", "approval.refused":
		return j.decides(e)
	case "call.completed", "call.failed":
		return j.answers(e)
	case "execution.paused":
		return j.pauses(e)
	case "execution.resumed":
		err := errors.Join(same("a pause before it", j.paused, true), same("its round", e.Round, j.rounds))
		j.paused = false
		return err
	case "file.stored":
		j.Files++
	case "execution.ended":
		open := slices.ContainsFunc(j.Calls, func(c JournalCall) bool { return c.open() })
		return errors.Join(same("open calls", open, false), same("rounds", e.Rounds, j.rounds), same("calls", e.Calls, len(j.Calls)),
			same("stdout_bytes", e.StdoutBytes, len(j.Streams["stdout"])), same("stderr_bytes", e.StderrBytes, len(j.Streams["stderr"])))
	}
	return nil
}

// same returns an error unless got is want.
func same[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

func (j *Journal) prints(e Event) error {
	if j.Streams == nil {
		j.Streams = map[string]string{}
	}
	err := same("its offset", e.Offset, len(j.Streams[e.Stream]))
	if e.Text == "" || e.Stream != "stdout" && e.Stream != "stderr" {
		err = errors.Join(err, errors.New("it is no output"))
	}
	j.Streams[e.Stream] += e.Text
	return err
}

// calls notes a call that begins, or that waits for approval before it may begin.
func (j *Journal) calls(e Event) error {
	paused := same("paused", j.paused, false)
	if c := j.call(e.Call); c != nil {
		approved := j.approved[e.Call]
		delete(j.approved, e.Call)
		return errors.Join(paused, same("approved", approved, true), same("its record", e.Record, c.Record), same("its input", string(e.Input), c.Input))
	}
	c := JournalCall{ID: e.Call, Record: e.Record, Tool: e.Tool, Input: string(e.Input), Status: callExecutes}
	if e.Type == "approval.requested" {
		c.Status = callWaits
	}
	j.Calls = append(j.Calls, c)
	return errors.Join(paused, same("its call", e.Call, fmt.Sprintf("call_%03d", len(j.Calls))))
}

// decides notes what somebody has decided on a call.
func (j *Journal) decides(e Event) error {
	c := j.call(e.Call)
	if c == nil {
		return errors.New("its call has not been asked for")
	}
	err := same("its call", c.Status, callWaits)
	c.Status = callExecutes
	if e.Type == "approval.given" {
		if j.approved == nil {
			j.approved = map[string]bool{}
		}
		j.approved[e.Call] = true
	}
	return err
}

// call returns the call with this id, or nil.
func (j *Journal) call(id string) *JournalCall {
	for i := range j.Calls {
		if j.Calls[i].ID == id {
			return &j.Calls[i]
		}
	}
	return nil
}

func (j *Journal) answers(e Event) error {
	for i, c := range j.Calls {
		if c.ID != e.Call {
			continue
		}
		j.Calls[i].Output, j.Calls[i].Status = string(e.Output), strings.TrimPrefix(e.Type, "call.")
		running := c.Status == callExecutes || c.Status == callWaits && e.Type == "call.failed"
		return errors.Join(same("its call runs", running, true), same("its record", e.Record, c.Record))
	}
	return errors.New("its call has not begun")
}

func (j *Journal) pauses(e Event) error {
	j.rounds++
	err := errors.Join(same("paused", j.paused, false), same("its round", e.Round, j.rounds))
	j.paused = true
	for _, id := range e.Waiting {
		open := slices.ContainsFunc(j.Calls, func(c JournalCall) bool { return c.ID == id && c.open() })
		err = errors.Join(err, same(id+" is open", open, true))
	}
	if len(e.Waiting) == 0 {
		err = errors.Join(err, errors.New("it waits for nothing"))
	}
	return err
}

// Read reads the events that have come since the last time, page by page, however long the server
// is away meanwhile.
func (j *Journal) Read(ctx context.Context, c Client) error {
	for {
		var page struct {
			Data []json.RawMessage `json:"data"`
			Next *int64            `json:"next"`
		}
		path := fmt.Sprintf("/executions/%s/events?limit=%d&after=%d", j.ID, 1+rand.N(20), len(j.Events))
		if err := c.look(ctx, path, &page); err != nil {
			return err
		}
		for _, raw := range page.Data {
			if err := j.add(raw); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		if *page.Next != j.last().Seq || len(page.Data) == 0 {
			return fmt.Errorf("GET %s: next is %d after %d events", path, *page.Next, len(j.Events))
		}
	}
}

// Tells reads on and checks that the journal tells of an answer that its client has: of its calls
// if it is a pause, otherwise of its output and its end.
func (j *Journal) Tells(ctx context.Context, c Client, a Answer) error {
	if err := j.Read(ctx, c); err != nil {
		return err
	}
	if a.Status == "tool_call_required" {
		waiting := make([]string, len(a.Calls))
		for i, call := range a.Calls {
			waiting[i] = call.ID
		}
		if last := j.last(); last.Type != "execution.paused" || !slices.Equal(last.Waiting, waiting) {
			return fmt.Errorf("the answer %v is not in the journal:\n%s", a, j)
		}
		return nil
	}
	err := errors.Join(same("ended", j.Ended(), true), same("its status", j.last().Status, a.Status),
		same("stdout", j.Streams["stdout"], a.Stdout), same("stderr", j.Streams["stderr"], a.Stderr), same("files", j.Files, len(a.Files)))
	if err != nil {
		return fmt.Errorf("the answer %v is not in the journal: %w:\n%s", a, err, j)
	}
	return nil
}

// Settled checks that all other ways to look at an ended execution tell the same as its journal.
func (j *Journal) Settled(ctx context.Context, c Client) error {
	again := Journal{ID: j.ID}
	if err := again.lines(ctx, c); err != nil {
		return err
	}
	if got, want := again.String(), j.String(); got != want {
		return fmt.Errorf("the journal as lines:\n%s\nwant what was read before:\n%s", got, want)
	}
	var detail struct {
		Status  string         `json:"status"`
		Created time.Time      `json:"created_at"`
		Ended   time.Time      `json:"ended_at"`
		Rounds  int            `json:"rounds"`
		Calls   int            `json:"calls"`
		Stdout  string         `json:"stdout"`
		Stderr  string         `json:"stderr"`
		Files   []any          `json:"files"`
		States  map[string]int `json:"calls_by_state"`
	}
	path := "/executions/" + j.ID
	if err := c.look(ctx, path, &detail); err != nil {
		return err
	}
	end := j.last()
	err := errors.Join(same("status", detail.Status, end.Status), same("rounds", detail.Rounds, j.rounds), same("calls", detail.Calls, len(j.Calls)),
		same("stdout", detail.Stdout, j.Streams["stdout"]), same("stderr", detail.Stderr, j.Streams["stderr"]), same("files", len(detail.Files), j.Files),
		same("created after the first event", detail.Created.After(j.Events[0].Time), false), same("ended_at", detail.Ended, end.Time),
		same("calls that execute", detail.States[callExecutes], 0),
		same("calls that have ended", detail.States[callCompleted]+detail.States[callFailed], len(j.Calls)))
	if err != nil {
		return fmt.Errorf("GET %s: %w; the journal:\n%s", path, err, j)
	}
	var records struct {
		Data []struct {
			Record string          `json:"call_id"`
			Call   string          `json:"call"`
			Tool   string          `json:"tool_name"`
			Status string          `json:"status"`
			Input  json.RawMessage `json:"input"`
			Output json.RawMessage `json:"output"`
		} `json:"data"`
	}
	if err := c.look(ctx, path+"/calls", &records); err != nil {
		return err
	}
	var calls []JournalCall
	for _, r := range records.Data {
		calls = append(calls, JournalCall{r.Call, r.Record, r.Tool, string(r.Input), string(r.Output), r.Status})
	}
	if !slices.Equal(calls, j.Calls) {
		return fmt.Errorf("GET %s/calls: got %v, want %v", path, calls, j.Calls)
	}
	return nil
}

// lines reads the whole journal of an ended execution as lines.
func (j *Journal) lines(ctx context.Context, c Client) error {
	for !j.Ended() {
		response, err := c.open(ctx, j.ID, "application/x-ndjson", len(j.Events))
		if err != nil {
			return err
		}
		err = eachLine(response, func(line string) error {
			if line == "" {
				return nil // The server tells that it is still there.
			}
			return j.add([]byte(line))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Labelled returns the ids of the executions with a label.
func (c Client) Labelled(ctx context.Context, key, value string) ([]string, error) {
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	err := c.look(ctx, "/executions?label="+url.QueryEscape(key+":"+value), &page)
	ids := make([]string, len(page.Data))
	for i, s := range page.Data {
		ids[i] = s.ID
	}
	return ids, err
}

// open opens a stream of events, however long the server is away meanwhile.
func (c Client) open(ctx context.Context, id, accept string, after int) (*http.Response, error) {
	path := "/executions/" + id + "/events"
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
		if err != nil {
			return nil, err
		}
		c.Authorize(r)
		r.Header.Set("Accept", accept)
		if after > 0 {
			r.Header.Set("Last-Event-ID", strconv.Itoa(after))
		}
		response, err := http.DefaultClient.Do(r)
		switch {
		case err == nil && response.StatusCode == http.StatusOK:
			return response, nil
		case err == nil:
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusServiceUnavailable {
				return nil, fmt.Errorf("GET %s: got %d %s", path, response.StatusCode, text)
			}
		case ctx.Err() != nil:
			return nil, err
		}
		time.Sleep(retryTime)
	}
}

// eachLine calls visit for each whole line of a stream, until the stream ends or breaks off.
func eachLine(response *http.Response, visit func(line string) error) error {
	defer response.Body.Close()
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil // What follows comes with the next stream.
		}
		if err := visit(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
}
