package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox/sandboxtest"
)

// A store that hangs delays no kill: not while output, a pause or a claim is to be recorded.
func TestKillsWhileTheStoreHangs(t *testing.T) {
	const budget = 2 * time.Second
	for name, c := range map[string]struct {
		code string
		// hangs is from which state in a record on the store hangs.
		hangs core.State
		// resumed is true if the program is resumed, and cancelled if it is cancelled after budget, which it does not have.
		resumed, cancelled bool
		want               core.State
	}{
		"output and a timeout":      {code: "out:a hang", hangs: core.Running, want: core.TimedOut},
		"output and a cancellation": {code: "out:a hang", hangs: core.Running, cancelled: true, want: core.Cancelled},
		"a pause":                   {code: "nap ask end", hangs: core.Paused, cancelled: true, want: core.Cancelled},
		"a claim":                   {code: "ask hang", hangs: core.Running, resumed: true, cancelled: true, want: core.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			script := sandboxtest.New("home.2")
			o := stickyOptions(t, script, t.Output())
			kept := o.Store
			var hangs atomic.Bool
			hangs.Store(!c.resumed)
			o.Store = &hooked{Store: kept, put: func(ctx context.Context, r continuation.Record, ttl time.Duration, chapter continuation.Chapter) error {
				if hangs.Load() && core.State(r.State) == c.hangs {
					<-ctx.Done()
					return continuation.ErrUnavailable
				}
				return kept.Put(ctx, r, ttl, chapter)
			}}
			synctest.Test(t, func(t *testing.T) {
				e := newTalker(t, o)
				defer closing(t, e)
				s := starting(c.code, "")
				if !c.cancelled {
					s.Timeout = budget
				}
				var id string
				s.Began = func(execution string) { id = execution }
				run := func() (core.Outcome, error) { return e.Start(t.Context(), s) }
				if c.resumed {
					paused, err := run()
					if err != nil {
						t.Fatal(err)
					}
					run = func() (core.Outcome, error) { return e.Resume(t.Context(), answering(paused)) }
					hangs.Store(true)
				}
				began := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					if outcome, err := run(); err == nil && outcome.State != c.want {
						t.Errorf("the program is %q, want %q", outcome.State, c.want)
					}
				}()
				time.Sleep(budget)
				synctest.Wait()
				x := e.executions.find(id)
				if c.cancelled {
					x.cancel()
				}
				synctest.Wait()
				if heard := script.Heard(x.sandbox.Ref); !strings.HasSuffix(heard, "K") {
					t.Errorf("after %v the sandbox has heard %q, want that it was told to kill the program", time.Since(began), heard)
				}
				<-done
			})
		})
	}
}
