package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/tests/harness"
)

// hostile are texts that end lines, frames, strings or files somewhere.
const hostile = "a\nb\rc\r\n\r\ndata: {}\n\nid: 9\nevent: answer\ndata: {\"http_status\":200}\n\n" +
	"\u2028\u2029\u0085\x00\ufeff\x1b[31m\x1b]0;x\x07</script><img src=x onerror=alert(1)>"

// A program, its client and its tools cannot forge a frame: what they say comes back as the same
// JSON by all ways to read it.
func TestHostileTexts(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		literal, err := json.Marshal(hostile)
		if err != nil {
			t.Fatal(err)
		}
		program := harness.Program{
			Code: "import sys\ntext = " + string(literal) + "\nsys.stdout.buffer.write(b'\\xff\\xc3(\\r\\n\\r\\n')\nprint(text, flush=True)\n" +
				"print(text, file=sys.stderr, flush=True)\nprint(await ask(**{'text': text, 'data: ': ['\\nid: 1']}))\n" +
				"try:\n    await ask(n=2)\nexcept Exception as e:\n    print(e)\nraise ValueError(text)\n",
			Tools: harness.Tools("ask"),
		}
		first := run(t, c, program)
		result := "{\r\n\n\"text\" :\n\t" + string(literal) + "\r}"
		second := run(t, c, fmt.Sprintf(`{"continuation_token": %q, "tool_results": [{"call_id": "call_001", "result": %s}]}`, first.Token, result))
		third := run(t, c, second.Continue(harness.Failure(hostile)))
		if third.Answer.Status != "error" || !strings.Contains(third.Stdout, "\u2028") {
			t.Fatalf("got %v", third.Answer)
		}
		frames := append(append(first.Events, second.Events...), third.Events...)
		path := "/executions/" + first.ID + "/events"
		compare := func(way string, got []any) {
			t.Helper()
			want := make([]any, len(frames))
			for i, f := range frames {
				want[i] = decoded(t, f.Data)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s differs from the live answers:\n%s", way, diff)
			}
		}
		var streamed []any
		for i, f := range open(t, c, http.MethodGet, path, nil, nil).all(t) {
			if e := f.event(t); e.Seq != int64(i+1) || f.ID != e.Seq || f.Event != e.Type {
				t.Errorf("frame %d has id %d and event %s, and the event is %d %s", i, f.ID, f.Event, e.Seq, e.Type)
			}
			streamed = append(streamed, decoded(t, f.Data))
		}
		compare("the stream", streamed)
		_, _, lines := get(t, c, http.MethodGet, path, accepting(ndjson))
		var listed []any
		for line := range strings.Lines(lines) {
			listed = append(listed, decoded(t, []byte(line)))
		}
		compare("the list of lines", listed)
		var p struct{ Data []any }
		look(t, c, path, &p)
		compare("the page", p.Data)
		if got, want := names(open(t, c, http.MethodGet, path+"?view=tool_calls", nil, nil).all(t)),
			"tool_call_start tool_call_end tool_call_start tool_call_error done"; got != want {
			t.Errorf("the view of tool calls has %s, want %s", got, want)
		}
		checkOutput(t, frames, third.Answer)
	})
}

func decoded(t testing.TB, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return v
}

// checkOutput checks that the output events are the output of the answer.
func checkOutput(t testing.TB, frames []frame, a harness.Answer) {
	t.Helper()
	streams := map[string]string{}
	for i, f := range frames {
		e := f.event(t)
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
		if e.Type != "output" {
			continue
		}
		if e.Offset != len(streams[e.Stream]) {
			t.Errorf("event %d of %s has offset %d, want %d", e.Seq, e.Stream, e.Offset, len(streams[e.Stream]))
		}
		streams[e.Stream] += e.Text
	}
	if streams["stdout"] != a.Stdout || streams["stderr"] != a.Stderr {
		t.Errorf("events tell of %q and %q, the answer of %q and %q", streams["stdout"], streams["stderr"], a.Stdout, a.Stderr)
	}
}

// A reader sees what a program prints while it runs, and goes on where another one has left off.
func TestFollow(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		answering, id := begin(t, c, harness.Program{Code: harness.Py(`
			import asyncio
			for i in range(20):
			    print(i, flush=True)
			    await asyncio.sleep(0.05)
			await ask()
			print("end")
		`), Tools: harness.Tools("ask")})
		path := "/v1/executions/" + id + "/events"
		r := open(t, c, http.MethodGet, path, nil, nil)
		var frames []frame
		for len(frames) < 5 {
			frames = append(frames, r.one(t))
		}
		_ = r.response.Body.Close()
		resume := http.Header{"Last-Event-ID": {strconv.FormatInt(frames[4].ID, 10)}}
		r = open(t, c, http.MethodGet, path+"?after=1", resume, nil) // the header wins
		frames = append(frames, r.until(t, "execution.paused")...)
		paused := answering.liveAnswer(t)
		ended := run(t, c, paused.Continue(harness.Value("null")))
		frames = append(frames, r.all(t)...)
		checkOutput(t, frames, ended.Answer)
		if last := frames[len(frames)-1]; last.Event != "execution.ended" {
			t.Errorf("the stream ends with %s", last.Event)
		}
		// Nothing follows the end, and a place beyond it is no place to wait at.
		for _, after := range []string{strconv.Itoa(len(frames)), "1000000", "9223372036854775807"} {
			if got := open(t, c, http.MethodGet, path+"?after="+after, nil, nil).all(t); len(got) > 0 {
				t.Errorf("after %s: got %s", after, names(got))
			}
		}
	})
}

// A reader who waits at a place that never comes is let go at the end.
func TestBeyondTheEnd(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		first := run(t, c, harness.AskOnce)
		r := open(t, c, http.MethodGet, "/executions/"+first.ID+"/events?after=1000", nil, nil)
		run(t, c, first.Continue(harness.Value("1")))
		if got := r.all(t); len(got) > 0 {
			t.Errorf("got %s, want nothing", names(got))
		}
	})
}

// What a program prints after a quiet moment is with the reader at once.
func TestPrintIsFast(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		_, id := begin(t, c, harness.Program{Code: harness.Py(`
			import time
			for i in range(30):
			    time.sleep(0.1)
			    print(time.time(), flush=True)
		`)})
		r := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil)
		var took []time.Duration
		for {
			f := r.one(t)
			if f.Event == "execution.ended" {
				break
			}
			var printed float64
			if _, err := fmt.Sscan(f.event(t).Text, &printed); f.Event == "output" && err == nil {
				took = append(took, time.Since(time.UnixMicro(int64(printed*1e6))))
			}
		}
		if len(took) < 20 {
			t.Fatalf("only %d prints came one by one", len(took))
		}
		slowest := took[0]
		for _, d := range took {
			slowest = max(slowest, d)
		}
		t.Logf("slowest of %d: %v", len(took), slowest)
		// The machine may be busy. The benchmark has the figures.
		if slowest > 2*time.Second {
			t.Errorf("a print took %v to its reader", slowest)
		}
	})
}

// The client chooses the form of events, and gets no form that there is not.
func TestForms(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		id := run(t, c, harness.Program{Code: "print(1)"}).ID
		path := "/executions/" + id + "/events"
		for accept, want := range map[string]string{
			"":                                       "application/json",
			"*/*":                                    "application/json",
			"application/*":                          "application/json",
			eventStream:                              eventStream,
			ndjson:                                   ndjson,
			"text/*":                                 eventStream,
			"application/json;q=0.5, " + eventStream: eventStream,
			"application/json, " + eventStream:       "application/json",
			"*/*;q=0.1, " + ndjson:                   ndjson,
			"text/html":                              "",
			eventStream + ";q=0":                     "",
			"nonsense":                               "",
		} {
			header := http.Header{}
			if accept != "" {
				header.Set("Accept", accept)
			}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				status, answered, body := get(t, c, method, path, header)
				if want == "" {
					if status != http.StatusNotAcceptable {
						t.Errorf("%s, Accept %q: got %d %s, want 406", method, accept, status, body)
					}
					continue
				}
				if got := answered.Get("Content-Type"); status != http.StatusOK || got != want {
					t.Errorf("%s, Accept %q: got %d and %s, want %s", method, accept, status, got, want)
				}
				if method == http.MethodHead && body != "" {
					t.Errorf("HEAD, Accept %q: got a body: %s", accept, body)
				}
			}
		}
	})
}

// Pages of events follow each other.
func TestEventPages(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		ended := run(t, c, harness.Program{Code: "import asyncio\nfor i in range(5):\n    print(i, flush=True)\n    await asyncio.sleep(0.1)"})
		var frames []frame
		for after := int64(0); ; {
			var p struct {
				Data []json.RawMessage `json:"data"`
				Next *int64            `json:"next"`
			}
			look(t, c, fmt.Sprintf("/executions/%s/events?limit=2&after=%d", ended.ID, after), &p)
			if len(p.Data) > 2 || p.Next != nil && len(p.Data) != 2 {
				t.Fatalf("a page of %d, next %v", len(p.Data), p.Next)
			}
			for _, e := range p.Data {
				frames = append(frames, frame{Data: e})
			}
			if p.Next == nil {
				break
			}
			after = *p.Next
		}
		checkOutput(t, frames, ended.Answer)
		if len(frames) != len(ended.Events) {
			t.Errorf("got %d events, want %d", len(frames), len(ended.Events))
		}
	})
}

// Streams have a bound of their own, which names itself.
func TestMostReaders(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"MAX_READERS": "3", "METRICS_ADDR": "127.0.0.1:0"})
	c := s.Alice()
	id := run(t, c, harness.AskOnce).ID
	path := "/executions/" + id + "/events"
	var readers []*stream
	for range 3 {
		readers = append(readers, open(t, c, http.MethodGet, path, nil, nil))
	}
	for _, way := range []struct {
		method, path string
		body         any
	}{{http.MethodGet, path, nil}, {http.MethodPost, harness.Programmatic, harness.Program{Code: "print(1)"}}} {
		status, _, text := fetch(t, c, way.method, way.path, accepting(eventStream), way.body)
		if status != http.StatusTooManyRequests || !strings.Contains(text, "FERMATA_MAX_READERS") {
			t.Errorf("%s %s: got %d %s, want 429", way.method, way.path, status, text)
		}
	}
	if got := s.Metrics(t)["fermata_journal_readers"]; got != 3 {
		t.Errorf("the metrics count %v readers, want 3", got)
	}
	// Another client is not concerned, nor is a page.
	run(t, s.Bob(), harness.Program{Code: "print(1)"})
	if status, _, body := get(t, c, http.MethodGet, path, nil); status != http.StatusOK {
		t.Errorf("a page: got %d %s", status, body)
	}
	_ = readers[0].response.Body.Close()
	err := harness.Within(harness.AtOnce, func() error {
		if n := s.Metrics(t)["fermata_journal_readers"]; n != 2 {
			return fmt.Errorf("the metrics count %v readers, want 2", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	open(t, c, http.MethodGet, path, nil, nil)
}

// A server that stops lets its readers go at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	s, err := harness.StartServer(harness.Common)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.Cmd.ProcessState == nil {
			_ = s.Kill()
		}
	})
	c := s.Alice()
	paused := run(t, c, harness.AskOnce)
	var readers []*stream
	for range 50 {
		r := open(t, c, http.MethodGet, "/executions/"+paused.ID+"/events", nil, nil)
		r.until(t, "execution.paused")
		readers = append(readers, r)
	}
	began := time.Now()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the server took %v to stop", took)
	}
	for _, r := range readers {
		if rest := r.all(t); len(rest) > 0 && rest[len(rest)-1].Event != "execution.ended" || r.comments == 0 && len(rest) == 0 {
			t.Fatalf("got %s and the comment %q, want a comment", names(rest), r.last)
		}
	}
}

// A thousand readers of one execution see all of it, and take little of the server's memory.
func TestThousandReaders(t *testing.T) {
	const readers, pieces, piece = 1000, 1000, 1000
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"OUTPUT": "2MiB", "MAX_READERS": "2000"})
	c := s.Alice()
	program := harness.Program{Code: harness.Py(fmt.Sprintf(`
		import asyncio
		await ask()
		for i in range(%d):
		    print(str(i).rjust(%d, "."), flush=True)
		    await asyncio.sleep(0.002)
	`, pieces, piece)), Tools: harness.Tools("ask")}
	// The program itself leaves memory behind, which is not that of readers.
	run(t, c, run(t, c, program).Continue(harness.Value("null")))
	waiting := run(t, c, program)
	path := "/executions/" + waiting.ID + "/events"
	before := s.AnonymousMiB(t)
	results := make(chan error, readers)
	ready := make(chan struct{}, readers)
	for range readers {
		r := open(t, c, http.MethodGet, path, nil, nil)
		go func() {
			results <- func() error {
				stdout, seq := 0, int64(0)
				for {
					f, err := r.next()
					if err != nil {
						return fmt.Errorf("after event %d: %w", seq, err)
					}
					if seq++; f.ID != seq {
						return fmt.Errorf("event %d after event %d", f.ID, seq-1)
					}
					var e event
					if err := json.Unmarshal(f.Data, &e); err != nil {
						return err
					}
					switch e.Type {
					case "execution.paused":
						ready <- struct{}{}
					case "output":
						stdout += len(e.Text)
					case "execution.ended":
						if want := pieces * (piece + 1); stdout != want {
							return fmt.Errorf("got %d bytes of output, want %d", stdout, want)
						}
						return nil
					}
				}
			}()
		}()
	}
	for range readers {
		<-ready
	}
	idle := s.AnonymousMiB(t)
	peak := make(chan int)
	stop := make(chan struct{})
	go func() {
		most := 0
		for {
			select {
			case <-time.After(50 * time.Millisecond):
				most = max(most, s.AnonymousMiB(t))
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	if ended := run(t, c, waiting.Continue(harness.Value("null"))); ended.Answer.Status != "completed" {
		t.Errorf("got %v", ended.Answer)
	}
	for range readers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	close(stop)
	most := <-peak
	t.Logf("the server took %d MiB before, %d MiB with %d readers that wait, and at most %d MiB with them", before, idle, readers, most)
	if most-before > 64 {
		t.Errorf("%d readers took %d MiB, want at most 64", readers, most-before)
	}
}

// A call that the program has given up ends in the journal, like all others, before its execution does.
func TestCallsThatAreGivenUp(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, approval := range []string{"never", "always"} {
			both := c.Pause(t, harness.Program{
				Code:  "import asyncio\nfirst, second = asyncio.create_task(slow(n=1)), asyncio.create_task(ask(n=2))\nprint(await second)\nfirst.cancel()\nprint(await ask(n=3))",
				Tools: []harness.Tool{{Name: "slow", Approval: approval}, {Name: "ask"}}, Approvals: true,
			})
			next := both.Continue(harness.Echo)
			next.Results = slices.DeleteFunc(next.Results, func(r harness.Result) bool { return r.CallID == "call_001" })
			one := c.Pause(t, next)
			if len(both.Calls) != 2 || len(one.Calls) != 1 || one.Calls[0].ID != "call_003" {
				t.Fatalf("calls = %v, then %v", both.Calls, one.Calls)
			}
			a := c.Post(t, one.Continue(harness.Echo))
			a.Completes(t, "{'n': 2}\n{'n': 3}\n")
			j := &harness.Journal{ID: a.Execution()}
			if err := j.Tells(t.Context(), c, a); err != nil {
				t.Fatal(err)
			}
			if err := j.Settled(t.Context(), c); err != nil {
				t.Error(err)
			}
			if call := j.Calls[0]; call.ID != "call_001" || call.Status != "failed" {
				t.Errorf("the call that was given up is %+v", call)
			}
		}
	})
}
