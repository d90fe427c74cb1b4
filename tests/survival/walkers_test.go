package survival

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// insist posts a request again and again, unchanged, until the answer is not 503.
func insist(ctx context.Context, c harness.Client, header http.Header, body any) (harness.Answer, error) {
	raw, err := harness.Marshal(body)
	if err != nil {
		return harness.Answer{}, err
	}
	return c.Insist(ctx, http.MethodPost, harness.Programmatic, header, raw)
}

// A ledger counts how often each call of one program was executed, by the id and the input of the
// call. The tools of the program write it.
type ledger map[string]int

// steps is the number of rounds of a walk.
const steps = 6

// walk is a program that adds up the results of its calls in a variable, sleeps between them, and
// in the end prints the sum and leaves it in a file. At each step it prints text that is cut within
// a character, and bytes that are no text.
var walk = harness.Program{Code: harness.Py(`
	import os, random, sys, time
	total = 0
	for n in range(` + strconv.Itoa(steps) + `):
		print("step", n)
		time.sleep(random.random() * 0.02)
		os.write(1, b"\xc3")
		os.write(2, b"\xffhere\r\n")
		time.sleep(random.random() * 0.02)
		total += await step(n=n)
		os.write(1, b"\xa9\n")
	print(int(total))
	open("total", "w").write(str(total))
`), Tools: harness.Tools("step")}

// walkOutput is what a walk prints.
func walkOutput() (stdout, stderr string) {
	var b strings.Builder
	for n := range steps {
		fmt.Fprintf(&b, "step %d\né\n", n)
	}
	fmt.Fprintln(&b, 10*steps*(steps-1)/2)
	return b.String(), strings.Repeat("\ufffdhere\r\n", steps)
}

// walked checks that every call of a walk was executed once, and how the walk ended.
func (l ledger) walked(end harness.Answer) error {
	for n := range steps {
		if call := fmt.Sprintf(`call_%03d {"n":%d}`, n+1, n); l[call] != 1 {
			return fmt.Errorf("%s was executed %d times, want 1; in all %v, ended with %v", call, l[call], l, end)
		}
	}
	stdout, stderr := walkOutput()
	if len(l) != steps || end.Status != "completed" || end.Stdout != stdout || end.Stderr != stderr {
		return fmt.Errorf("got %v and %d calls, want %d, %q and %q", end, len(l), steps, stdout, stderr)
	}
	if names := end.Names(); len(names) != 1 || names[0] != "total" {
		return fmt.Errorf("got %v with the files %q, want one file, total", end, names)
	}
	return nil
}

// errLostStart means that a start ended with a clear error, and may or may not have run.
var errLostStart = errors.New("lost before its first answer")

// walkOnce runs a walk to its end, whatever happens to the server meanwhile.
func walkOnce(ctx context.Context, c harness.Client, o *observer) error {
	l, key := ledger{}, uuid.NewString()
	program := walk
	program.Labels = o.awaits(ctx, key)
	a, err := insist(ctx, c, harness.Keyed(key), program)
	if err == nil && a.Status == "error" && a.Error == "Sandbox execution failed" {
		return cmp.Or(o.lost(ctx, a), errLostStart)
	}
	for err == nil && a.Status == "tool_call_required" {
		next := a.Continue(func(call harness.Call) harness.Result {
			l[call.ID+" "+call.CompactInput()]++
			n := strings.Trim(strings.SplitN(string(call.Input), ":", 2)[1], " }")
			return harness.Result{Result: []byte(n + "e1")}
		})
		if err := o.saw(ctx, a); err != nil {
			return err
		}
		time.Sleep(rand.N(40 * time.Millisecond)) // Tools take some time.
		a, err = insist(ctx, c, nil, next)
	}
	if err == nil {
		err = l.walked(a)
	}
	if err == nil {
		err = o.ended(ctx, a, l)
	}
	return err
}

// tells checks that the journal of an execution tells of an answer, and that it still has what was
// seen of it before; nil if nothing was. It returns what there is to see now.
func tells(t *testing.T, c harness.Client, seen *harness.Journal, a harness.Answer) *harness.Journal {
	t.Helper()
	if seen == nil {
		seen = &harness.Journal{ID: a.Execution()}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := seen.Tells(ctx, c, a)
	if err == nil && seen.Ended() {
		err = seen.Settled(ctx, c)
	}
	if err != nil {
		t.Error(err)
	}
	return seen
}

// ends checks that the journal of an execution has come to an end with this status, and that it
// still has what was seen of it before.
func ends(t *testing.T, c harness.Client, seen *harness.Journal, status string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := seen.Read(ctx, c)
	if got := seen.Status(); err == nil && got != status {
		err = fmt.Errorf("got the status %q, want %q:\n%s", got, status, seen)
	}
	if err == nil {
		err = seen.Settled(ctx, c)
	}
	if err != nil {
		t.Error(err)
	}
}

// An observer looks at one walk from outside, in every way. A nil observer looks at nothing.
type observer struct {
	client  harness.Client
	key     string
	journal harness.Journal
	witness *harness.Witness
}

// awaits returns the labels of a walk that is about to start, and has a witness wait for it.
func (o *observer) awaits(ctx context.Context, key string) harness.Labels {
	labels := harness.Labels{"walk": key}
	if o != nil {
		o.key, o.witness = key, o.client.Witness(ctx, "walk", key)
	}
	return labels
}

// saw checks that the journal tells of an answer.
func (o *observer) saw(ctx context.Context, a harness.Answer) error {
	if o == nil {
		return nil
	}
	o.journal.ID = a.Execution()
	return o.journal.Tells(ctx, o.client, a)
}

// ended checks what there is to see of a walk that has completed, whose calls were those of l.
func (o *observer) ended(ctx context.Context, a harness.Answer, l ledger) error {
	if o == nil {
		return nil
	}
	if err := o.saw(ctx, a); err != nil {
		return err
	}
	for n, c := range o.journal.Calls {
		if c.Tool != "step" || c.Status != "completed" || l[c.ID+" "+c.Input] != 1 || c.Output != fmt.Sprintf("%de1", n) {
			return fmt.Errorf("the journal has the call %v, which was not executed so; in all %v", c, l)
		}
	}
	return o.settled(ctx)
}

// lost checks what there is to see of a walk that was lost at its start.
func (o *observer) lost(ctx context.Context, a harness.Answer) error {
	if o == nil {
		return nil
	}
	o.journal.ID = a.Execution()
	if err := o.journal.Read(ctx, o.client); err != nil {
		return err
	}
	if got := o.journal.Status(); got != "error" {
		return fmt.Errorf("an execution that was lost has the status %q:\n%s", got, &o.journal)
	}
	return o.settled(ctx)
}

// witnessPatience is how much later than others a witness may see the end.
const witnessPatience = 30 * time.Second

// settled checks that all ways to look at a walk that has ended agree, also with what was seen while
// it ran.
func (o *observer) settled(ctx context.Context) error {
	if err := o.journal.Settled(ctx, o.client); err != nil {
		return err
	}
	if err := o.witness.Agrees(&o.journal, witnessPatience); err != nil {
		return err
	}
	found, err := o.client.Labelled(ctx, "walk", o.key)
	if err == nil && !slices.Equal(found, []string{o.journal.ID}) {
		err = fmt.Errorf("executions with the label walk:%s: %q, want %s", o.key, found, o.journal.ID)
	}
	return err
}

// walkers runs one walk after the other, whatever happens to their servers meanwhile, until stop is
// called. stop waits until the walks have ended and returns how many were lost at their start.
func walkers(t *testing.T, c harness.Client) (stop func() int64) {
	t.Helper()
	return walking(t, c, false)
}

// forgetfulWalkers is walkers for a store that may lose what it has stored, and journals with it.
func forgetfulWalkers(t *testing.T, c harness.Client) (stop func() int64) {
	t.Helper()
	return walking(t, c, true)
}

func walking(t *testing.T, c harness.Client, forgetful bool) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var walks, lost atomic.Int64
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				one, cancel := context.WithTimeout(ctx, 90*time.Second)
				var o *observer
				if !forgetful {
					o = &observer{client: c}
				}
				err := walkOnce(one, c, o)
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
