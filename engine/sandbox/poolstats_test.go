package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
)

func TestPoolStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := sandboxtest.New("")
		const delay = time.Second
		provider.Set(func(s *sandboxtest.Settings) { s.Delay = delay })
		var waited, made []time.Duration
		p := testPool(provider, 1, 2, func(o *sandbox.PoolOptions) {
			o.Waited = func(d time.Duration) { waited = append(waited, d) }
			o.Made = func(d time.Duration) { made = append(made, d) }
		})
		type figures struct{ Idle, Making, Waiting, Live, Warm, Cold, Refused, Made, Failed int }
		check := func(when string, want figures) {
			t.Helper()
			synctest.Wait()
			all := sandbox.KindStats{
				Idle: want.Idle, Making: want.Making, Waiting: want.Waiting, Size: 1,
				Warm: uint64(want.Warm), Cold: uint64(want.Cold), Refused: uint64(want.Refused),
				Made: uint64(want.Made), Failed: uint64(want.Failed),
			}
			stats := sandbox.PoolStats{
				KindStats: all, Live: want.Live, Ceiling: 2,
				Kinds: map[sandbox.Kind]sandbox.KindStats{sandbox.Plain: {}, sandbox.Scientific: all},
			}
			if diff := cmp.Diff(stats, p.Stats()); diff != "" {
				t.Errorf("%s the figures are wrong (-want +got):\n%s", when, diff)
			}
		}
		check("at first", figures{})
		first := mustTake(t, p)
		check("after a cold start", figures{Making: 1, Live: 2, Cold: 1, Made: 1})
		time.Sleep(10 * time.Second)
		check("when it is filled", figures{Idle: 1, Live: 2, Cold: 1, Made: 2})
		second := mustTake(t, p)
		check("after a warm start", figures{Live: 2, Warm: 1, Cold: 1, Made: 2})

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		refused := make(chan error, 1)
		go func() {
			_, err := take(ctx, p)
			refused <- err
		}()
		check("when one waits", figures{Waiting: 1, Live: 2, Warm: 1, Cold: 1, Made: 2})
		if err := <-refused; !errors.Is(err, sandbox.ErrNoCapacity) {
			t.Errorf("take = %v, want ErrNoCapacity", err)
		}
		check("after it has waited in vain", figures{Live: 2, Warm: 1, Cold: 1, Refused: 1, Made: 2})

		provider.Set(func(s *sandboxtest.Settings) { s.Fail = errors.New("no more") })
		p.Release(first)
		time.Sleep(delay)
		check("when none can be made", figures{Live: 1, Warm: 1, Cold: 1, Refused: 1, Made: 2, Failed: 1})
		if want := []time.Duration{time.Second, 0, 3 * time.Second}; !slices.Equal(waited, want) {
			t.Errorf("starts waited %v, want %v", waited, want)
		}
		if want := []time.Duration{time.Second, time.Second}; !slices.Equal(made, want) {
			t.Errorf("sandboxes took %v to make, want %v", made, want)
		}
		p.Release(second)
		closePool(t, p, provider)
	})
}
