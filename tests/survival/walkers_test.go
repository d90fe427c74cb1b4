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

// count returns how often a test repeats something: as usual, or more often in a soak.
func count(usually, soaking int) int {
	if os.Getenv("FERMATA_SOAK") == "1" {
		return soaking
	}
	return usually
}

// insist repeats a request, unchanged, until the answer is not 503.
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

// A ledger counts how often each call of one program was executed, by the id and the input of the
// call. The tools of the program write it.
type ledger map[string]int

// steps is the number of rounds of a walk.
const steps = 6

// walk is a program that adds up the results of its calls in a variable, sleeps between them, and
// in the end prints the sum and leaves it in a file.
var walk = harness.Program{Code: harness.Py(`
	import random, time
	total = 0
	for n in range(` + strconv.Itoa(steps) + `):
		time.sleep(random.random() * 0.04)
		total += await step(n=n)
	print(int(total))
	open("total", "w").write(str(total))
`), Tools: harness.Tools("step")}

// walked checks that every call of a walk was executed once, and how the walk ended.
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

// errLostStart means that a start ended with a clear error, and may or may not have run.
var errLostStart = errors.New("lost before its first answer")

// walkOnce runs a walk to its end, whatever happens to the server meanwhile.
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
		time.Sleep(rand.N(40 * time.Millisecond)) // Tools take some time.
		a, err = insist(ctx, c, nil, next)
	}
	if err != nil {
		return err
	}
	return l.walked(a)
}

// walkers runs one walk after the other, whatever happens to their servers meanwhile, until stop is
// called. stop waits until the walks have ended and returns how many were lost at their start.
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
