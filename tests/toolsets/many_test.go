package toolsets

import (
	"fmt"
	"testing"
	"time"

	"fermata/tests/harness"
)

const (
	// manyPrograms make manyCalls calls each, whose endpoint takes manyMS milliseconds.
	manyPrograms, manyCalls, manyMS = 100, 20, 50
	// manyIdeal is how long that takes if 64 calls of a principal run at a time, and nothing else takes
	// any time.
	manyIdeal = manyPrograms * manyCalls * manyMS * time.Millisecond / 64
	// manyBound is how often the ideal a machine may take that does other work as well. A quiet one takes
	// less than 1.5 times as long.
	manyBound = 4
)

// TestManySlowCalls runs 100 programs side by side, each with 20 calls that take 50 ms. That takes little
// longer than the bound of 64 calls at a time allows, and nothing is left of them.
func TestManySlowCalls(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := alone(t, s, harness.Settings{"POOL_SIZE": "4"})
		program := func(key string) harness.Program {
			p := program(key, fmt.Sprintf(`
				await ask()
				got = await asyncio.gather(*[Weather.aio.slow(ms=%d, n=n, key=KEY) for n in range(%d)])
				print(sum(g["n"] is not None for g in got))
			`, manyMS, manyCalls))
			p.Tools = harness.Tools("ask")
			return p
		}
		// run lets so many programs pause, and then measures how long they take when all go on at once.
		run := func(programs int) time.Duration {
			t.Helper()
			key := harness.NewKey()
			var paused []harness.Answer
			for range programs {
				paused = append(paused, d.Pause(t, program(key)))
			}
			ended, began := make(chan error), time.Now()
			for _, pause := range paused {
				go func() {
					a, err := d.Send(t.Context(), pause.Continue(harness.Echo))
					if err == nil && a.Stdout != fmt.Sprintln(manyCalls) {
						err = fmt.Errorf("got %v, want %d results", a, manyCalls)
					}
					ended <- err
				}()
			}
			for range programs {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			took := time.Since(began)
			d.upstream.Sent(t, key, programs*manyCalls)
			if n := d.upstream.Together(key); n > 64 {
				t.Errorf("%d calls ran at the same time, want at most 64", n)
			}
			return took
		}
		run(1)
		before := harness.Resting(d.server.Processes)
		descriptors := d.server.Usage().Descriptors
		// Other tests may take the machine for a while, but hardly three times.
		best := manyBound*manyIdeal + 1
		for try := 0; try < 3 && best > manyBound*manyIdeal && !t.Failed(); try++ {
			best = run(manyPrograms)
			t.Logf("%d programs with %d calls of %d ms took %.2f times the %v that they would ideally take", manyPrograms, manyCalls, manyMS, float64(best)/float64(manyIdeal), manyIdeal)
		}
		if best > manyBound*manyIdeal {
			t.Errorf("it took more than %d times the ideal", manyBound)
		}
		err := harness.Within(30*time.Second, func() error {
			if err := harness.AtMost("processes", d.server.Processes(), before+2); err != nil {
				return err
			}
			// Connections to the endpoint are kept for a while, for the same principal.
			return harness.AtMost("descriptors", d.server.Usage().Descriptors, descriptors+80)
		})
		if err != nil {
			t.Error(err)
		}
	})
}
