package timelines_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api/timelines"
	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/timeline"
)

const execution = "11111111-2222-4333-8444-555555555555"

// forgotten is a store with the journal of an execution whose record has run out.
type forgotten struct {
	continuation.Journals
	events []continuation.Event
	ended  bool
}

func (f *forgotten) add(kind, members string) {
	n := int64(len(f.events) + 1)
	content := fmt.Appendf(nil, `{"seq":%d,"time":"2026-11-27T05:00:00.000Z","type":%q,%s}`, n, kind, members)
	f.events = append(f.events, continuation.Event{Seq: n, Content: content})
}

func (f *forgotten) Get(context.Context, string) (continuation.Record, error) {
	return continuation.Record{}, continuation.ErrNotFound
}

func (f *forgotten) Summary(_ context.Context, id string) (continuation.Summary, error) {
	content, err := json.Marshal(journal.Summary{Mode: journal.Full, Status: journal.StatusPaused})
	return continuation.Summary{ID: id, Principal: "ada", Created: time.UnixMilli(0), Ended: f.ended, Content: content}, err
}

func (f *forgotten) Events(_ context.Context, _ string, after int64, _ int) ([]continuation.Event, error) {
	return f.events[after:], nil
}

func (f *forgotten) begin() {
	f.add("execution.started", `"execution":"x","session":"S","language":"python","contract":"programmatic","code":"1","timeout_ms":1,"outputs":["a"]`)
}

// pieces is a response whose client takes what comes piece by piece.
type pieces struct {
	httptest.ResponseRecorder
	largest, all int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.largest, p.all = max(p.largest, len(b)), p.all+len(b)
	return len(b), nil
}

// TestManyTexts: a timeline that is large for the values of its calls is encoded while it is sent, as one
// that is large for its files is.
func TestManyTexts(t *testing.T) {
	t.Parallel()
	store := &forgotten{ended: true}
	store.begin()
	value := strings.Repeat("x", 60_000)
	for n := range 50 {
		store.add("call.started", fmt.Sprintf(`"call":"call_%03d","record":"r","tool":"a","runner":"client","input":{}`, n))
		store.add("call.completed", fmt.Sprintf(`"call":"call_%03d","record":"r","output":%q,"took_ms":1`, n, value))
	}
	store.add("execution.ended", `"status":"completed"`)
	made, err := timelines.New(journal.NewHistory(store, nil), nil, "").Of(t.Context(), journal.Viewer{Principal: "ada"}, execution, timelines.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	w := &pieces{ResponseRecorder: *httptest.NewRecorder()}
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil), w)
	err = timelines.Send(made, c, http.StatusOK, func(to io.Writer) error { return made.Write(to, timeline.View{Blocks: true, Rendered: true}) })
	if err != nil || w.all < 2*50*len(value) || w.largest > 100_000 {
		t.Errorf("got %v and %d bytes, at most %d of them at once; want them piece by piece", err, w.all, w.largest)
	}
}

// TestForgotten: the timeline of an execution whose pause has run out while nobody was there has its end.
func TestForgotten(t *testing.T) {
	t.Parallel()
	store := &forgotten{}
	store.begin()
	history := journal.NewHistory(store, func(context.Context, string) error {
		store.add("execution.ended", `"status":"expired"`)
		store.ended = true
		return nil
	})
	made, err := timelines.New(history, nil, "").Of(t.Context(), journal.Viewer{Principal: "ada"}, execution, timelines.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	const report = "Runtime error: expired — Missing output files: turn_1/files/a\nFile errors:\n- turn_1/files/a: file not produced"
	if last := made.Blocks[len(made.Blocks)-1]; last.Path != "tc:turn_1.exec.result" || *last.Text != report {
		t.Errorf("the last block is %+v, want the report", last)
	}
}
