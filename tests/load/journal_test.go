package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// An event is what these tests look at of an event of a journal.
type event struct {
	Seq       int64           `json:"seq"`
	Type      string          `json:"type"`
	Execution string          `json:"execution"`
	Stream    string          `json:"stream"`
	Text      string          `json:"text"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
	Status    string          `json:"status"`
}

// follow reads the events of an execution as lines of JSON, as they come, until the execution has
// ended. It calls begun when the first one has come. Events with a gap between them are an error.
func follow(ctx context.Context, c harness.Client, id string, begun func(), visit func(line []byte, e event) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/executions/"+id+"/events", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/x-ndjson")
	c.Authorize(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("got %s, want a stream", answer.Status)
	}
	lines := bufio.NewReader(answer.Body)
	last := event{}
	for seq := int64(1); ; seq++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if last.Type == "execution.ended" && len(line) == 0 {
				return nil
			}
			return fmt.Errorf("after event %d, %s: %w", last.Seq, last.Type, err)
		}
		last = event{}
		if err := json.Unmarshal(line, &last); err != nil {
			return err
		}
		if last.Seq != seq {
			return fmt.Errorf("event %d stands at place %d", last.Seq, seq)
		}
		if seq == 1 {
			begun()
		}
		if err := visit(line, last); err != nil {
			return err
		}
	}
}

// TestFollowers has 200 readers follow 200 executions, each one its own.
func TestFollowers(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("has 200 executions at once")
		}
		const total = 200
		server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{"QUEUE_TIMEOUT": "60s"}))
		c := server.Alice()
		paused := make([]harness.Answer, total)
		byClients(t, total, func(ctx context.Context, i int) (err error) {
			paused[i], err = c.Send(ctx, harness.Program{Code: fmt.Sprintf(harness.Py(`
				print("[before %d]", flush=True)
				await ask(n=%[1]d)
				for i in range(20): print("[%[1]d", i, end="]\n", flush=True)
			`), i), Tools: harness.Tools("ask")})
			if err == nil && paused[i].Status != "tool_call_required" {
				err = fmt.Errorf("got %v, want a pause", paused[i])
			}
			return err
		})
		var reading, begun sync.WaitGroup
		seen := make([]string, total)
		for i := range total {
			begun.Add(1)
			done := sync.OnceFunc(begun.Done)
			reading.Go(func() {
				defer done()
				id := paused[i].Header.Get("Fermata-Execution")
				err := follow(t.Context(), c, id, done, func(_ []byte, e event) error {
					if e.Type == "execution.started" && e.Execution != id {
						return fmt.Errorf("it is execution %s, want %s", e.Execution, id)
					}
					seen[i] += e.Text
					return nil
				})
				if err != nil {
					t.Errorf("reader %d: %v", i, err)
				}
			})
		}
		begun.Wait()
		byClients(t, total, func(ctx context.Context, i int) error {
			a, err := c.Send(ctx, paused[i].Continue(harness.Echo))
			if err == nil && a.Status != "completed" {
				err = fmt.Errorf("got %v, want it completed", a)
			}
			paused[i].Stdout = a.Stdout
			return err
		})
		reading.Wait()
		for i, text := range seen {
			var want strings.Builder
			fmt.Fprintf(&want, "[before %d]\n", i)
			for n := range 20 {
				fmt.Fprintf(&want, "[%d %d]\n", i, n)
			}
			if text != want.String() || paused[i].Stdout != text {
				t.Errorf("reader %d has seen %q, the answer has %q, want %q", i, text, paused[i].Stdout, want.String())
			}
		}
	})
}

const (
	// rounds is how many pauses an execution may have.
	rounds = 20
	// fullJournal is from what size on a journal keeps nothing of values.
	fullJournal = 16 << 20
	// eventSize is more than an event has without values.
	eventSize = 400
)

// TestL9Values makes calls with inputs and results of 60 KB, and prints between them, until the
// journal is full several times over. Nobody but the readers of values notices.
func TestL9Values(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) { fillJournal(t, s, 25, 60_000) })
}

// TestSoakValues is TestL9Values with as many calls as one execution may make, and values so large that a
// pause has room for them. `make soak` runs it.
func TestSoakValues(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) { fillJournal(t, s, 10_000/rounds, 30_000) })
}

func fillJournal(t *testing.T, s harness.Setup, atOnce, size int) {
	t.Helper()
	calls := rounds * atOnce
	server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{
		"MAX_RESULTS": "2GiB", "MAX_STORED": "256MiB", "MEMORY": "1GiB",
	}))
	c := server.Alice()
	answer := post(t, c, harness.Program{Code: harness.Py(fmt.Sprintf(`
		async def one(i):
		    print(".", end="", flush=True)
		    return len(await ask(i=i, text="x" * %d))
		total = 0
		for round in range(%d):
		    total += sum(await asyncio.gather(*[one(i) for i in range(%d)]))
		print(total)
	`, size, rounds, atOnce)), Tools: harness.Tools("ask"), Timeout: 300_000})
	id := answer.Header.Get("Fermata-Execution")
	value := harness.Value(`"` + strings.Repeat("y", size) + `"`)
	var took []time.Duration
	for answer.Status == "tool_call_required" {
		if len(answer.Calls) != atOnce {
			t.Fatalf("a pause has %d calls, want %d", len(answer.Calls), atOnce)
		}
		next := answer.Continue(value)
		began := time.Now()
		answer = post(t, c, next)
		took = append(took, time.Since(began))
	}
	answer.Completes(t, strings.Repeat(".", calls)+fmt.Sprintln(calls*size))
	t.Logf("%d calls; the first round with a journal that is full took %v, the slowest %v", calls, took[len(took)-1], slices.Max(took))

	counts := map[string]int{}
	bytesOf, whole, empty := 0, 0, 0
	var printed strings.Builder
	err := follow(t.Context(), c, id, func() {}, func(line []byte, e event) error {
		counts[e.Type]++
		bytesOf += len(line)
		if e.Stream == "stdout" {
			printed.WriteString(e.Text)
		}
		for _, value := range []json.RawMessage{e.Input, e.Output} {
			switch {
			case len(value) >= size:
				whole++
				if empty > 0 {
					return errors.New("a value is whole although the journal is full")
				}
			case bytes.HasPrefix(value, []byte(`{"truncated":true,"bytes":`)) && bytes.HasSuffix(value, []byte(`,"head":""}`)):
				empty++
			case value != nil:
				return fmt.Errorf("a value is %s", value)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d values are whole, %d empty; the journal has %d KiB: %v", whole, empty, bytesOf>>10, counts)
	if counts["call.started"] != calls || counts["call.completed"] != calls || counts["execution.paused"] != rounds || counts["execution.resumed"] != rounds {
		t.Errorf("got %v, want %d calls in %d rounds", counts, calls, rounds)
	}
	if printed.String() != answer.Stdout {
		t.Errorf("the events tell of %d bytes of output, the answer of %d", printed.Len(), len(answer.Stdout))
	}
	if whole == 0 || empty == 0 || whole+empty != 2*calls {
		t.Errorf("%d values are whole and %d empty, want %d in all", whole, empty, 2*calls)
	}
	events := 0
	for _, n := range counts {
		events += n
	}
	if most := fullJournal + size + events*eventSize; bytesOf > most {
		t.Errorf("the journal has %d bytes, want at most %d", bytesOf, most)
	}
}

// post is Post with more patience: the bodies are large, and the machine may be busy.
func post(t *testing.T, c harness.Client, body any) harness.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	a, err := c.Send(ctx, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.HTTPStatus != http.StatusOK {
		t.Fatalf("got %v", a)
	}
	return a
}

// TestL9FullRedis fills a Redis with the journals of executions that have ended, more than it has
// room for. They make room for those that live: no pause and no claim fails.
func TestL9FullRedis(t *testing.T) {
	t.Parallel()
	const limit, each = 16 << 20, 700_000
	redis := harness.RedisAlone(t, "--maxmemory", strconv.Itoa(limit), "--maxmemory-policy", "noeviction")
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"REDIS_URL": redis.URL()}))
	alice := server.Alice()
	live := alice.Pause(t, harness.Program{Code: "for i in range(19): print(await ask(i=i))", Tools: harness.Tools("ask")})
	var ids []string
	for i := range 2 * limit / each {
		// Nobody can ask for this answer again, so of all this only the journal is kept.
		a := server.Bob().Post(t, harness.Program{Code: fmt.Sprintf("print('x' * %d)", each)})
		a.Completes(t, strings.Repeat("x", each)+"\n")
		ids = append(ids, a.Header.Get("Fermata-Execution"))
		if i%4 > 0 {
			continue
		}
		live = alice.Pause(t, live.Continue(harness.Echo))
		if err := harness.FiveRounds(t.Context(), alice, i); err != nil {
			t.Fatalf("after %d journals: %v", len(ids), err)
		}
	}
	if log := server.Log.All(); !strings.Contains(log, "the oldest journals have made room") {
		t.Errorf("Redis was not full:\n%s", server.Log.Tail())
	}
	for i, want := range map[int]int{0: http.StatusNotFound, len(ids) - 1: http.StatusOK} {
		a, err := server.Bob().Request(t.Context(), http.MethodGet, "/executions/"+ids[i], nil, nil)
		if err != nil || a.HTTPStatus != want {
			t.Errorf("execution %d of %d: got %v, %v, want %d", i+1, len(ids), a, err, want)
		}
	}
	alice.Pause(t, live.Continue(harness.Echo))
}
