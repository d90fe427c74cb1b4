package survival

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// count is how often a test is to repeat something: in a soak it takes its time.
func count(usually, soaking int) int {
	if os.Getenv("FERMATA_SOAK") == "1" {
		return soaking
	}
	return usually
}

// insist sends a request until it is answered, and not with a 503: the same request
// again and again.
func insist(ctx context.Context, c harness.Client, header http.Header, body any) (harness.Answer, error) {
	raw, err := harness.Marshal(body)
	if err != nil {
		return harness.Answer{}, err
	}
	for {
		a, err := c.Request(ctx, http.MethodPost, harness.Programmatic, header, raw)
		if ctx.Err() != nil {
			return a, errors.Join(err, fmt.Errorf("no answer but %v", a))
		}
		if err == nil && a.HTTPStatus != http.StatusServiceUnavailable {
			return a, nil
		}
		if err == nil && a.Header.Get("Retry-After") == "" {
			return a, fmt.Errorf("got %v without Retry-After", a)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A ledger is written by the tools of one program: how often each has run, by the
// call's id and argument.
type ledger map[string]int

// steps is how many rounds a walker's program has.
const steps = 6

// walk is a program that keeps a sum in a variable, rests between its calls, tells the
// sum at its end and leaves it in a file.
var walk = harness.Program{Code: harness.Py(`
	import random, time
	total = 0
	for n in range(` + strconv.Itoa(steps) + `):
		time.sleep(random.random() * 0.04)
		total += await step(n=n)
	print(int(total))
	open("total", "w").write(str(total))
`), Tools: harness.Tools("step")}

// walked checks that a walk has called every tool once.
func (l ledger) walked(end harness.Answer) error {
	for n := range steps {
		if call := fmt.Sprintf(`call_%03d {"n":%d}`, n+1, n); l[call] != 1 {
			return fmt.Errorf("%s was executed %d times, want 1; in all %v, ended with %v", call, l[call], l, end)
		}
	}
	if want := fmt.Sprintf("%d\n", 10*steps*(steps-1)/2); len(l) != steps || end.Status != "completed" || end.Stdout != want {
		return fmt.Errorf("got %v and %d calls, want %d and %q", end, len(l), steps, want)
	}
	if names := end.Names(); len(names) != 1 || names[0] != "total" {
		return fmt.Errorf("got %v with the files %q, want one file, total", end, names)
	}
	return nil
}

// errLostStart is the clear error of a start that may or may not have run.
var errLostStart = errors.New("lost before its first answer")

// walkOnce runs the program to its end through whatever happens to the server.
func walkOnce(ctx context.Context, c harness.Client) error {
	l := ledger{}
	a, err := insist(ctx, c, harness.Keyed(uuid.NewString()), walk)
	if err == nil && a.Status == "error" && a.Error == "Sandbox execution failed" {
		return errLostStart
	}
	for err == nil && a.Status == "tool_call_required" {
		next := a.Continue(func(call harness.Call) harness.Result {
			l[call.ID+" "+strings.ReplaceAll(string(call.Input), " ", "")]++
			n := strings.Trim(strings.SplitN(string(call.Input), ":", 2)[1], " }")
			return harness.Result{Result: []byte(n + "e1")}
		})
		time.Sleep(rand.N(40 * time.Millisecond)) // The tools take their time.
		a, err = insist(ctx, c, nil, next)
	}
	if err != nil {
		return err
	}
	return l.walked(a)
}

// walkers keeps programs going, through whatever happens to their servers, until
// stop is called, which waits for their ends and returns how many were lost.
func walkers(t *testing.T, clients ...harness.Client) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	var wg sync.WaitGroup
	var walks, lost atomic.Int64
	done := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				one, cancel := context.WithTimeout(ctx, 90*time.Second)
				err := walkOnce(one, clients[n%len(clients)])
				cancel()
				walks.Add(1)
				switch {
				case errors.Is(err, errLostStart):
					lost.Add(1)
				case err != nil:
					t.Error(err)
					return
				}
			}
		})
	}
	return func() int64 {
		defer cancel()
		close(done)
		wg.Wait()
		t.Logf("%d programs, %d of them %v", walks.Load(), lost.Load(), errLostStart)
		if walks.Load() < 4 || lost.Load() > walks.Load()/2 {
			t.Errorf("%d of %d programs were lost at their start", lost.Load(), walks.Load())
		}
		return lost.Load()
	}
}
