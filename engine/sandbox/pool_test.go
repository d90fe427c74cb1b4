package sandbox_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
)

func testPool(p sandbox.Provider, size, ceiling int, change ...func(*sandbox.PoolOptions)) *sandbox.Pool {
	o := sandbox.PoolOptions{
		Provider: p, Log: slog.New(slog.DiscardHandler), Sizes: map[sandbox.Kind]int{sandbox.Scientific: size}, Ceiling: ceiling,
	}
	for _, f := range change {
		f(&o)
	}
	return sandbox.NewPool(o)
}

// inPool runs a test, in simulated time, with a pool of which nothing is left in the end. says changes what
// the provider does, unless it is nil.
func inPool(t *testing.T, size, ceiling int, says func(*sandboxtest.Settings), test func(*testing.T, *sandbox.Pool, *sandboxtest.Script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		provider := sandboxtest.New("")
		if says != nil {
			provider.Set(says)
		}
		p := testPool(provider, size, ceiling)
		test(t, p, provider)
		closePool(t, p, provider)
	})
}

// wantIdle checks how many sandboxes wait in the pool.
func wantIdle(t *testing.T, p *sandbox.Pool, want int, when string) {
	t.Helper()
	if got := p.Stats().Idle; got != want {
		t.Errorf("%d are idle %s, want %d", got, when, want)
	}
}

// take takes a scientific sandbox for nobody in particular.
func take(ctx context.Context, p *sandbox.Pool) (*sandbox.Conn, error) {
	return p.Take(ctx, sandbox.Scientific, "")
}

func mustTake(t *testing.T, p *sandbox.Pool) *sandbox.Conn {
	t.Helper()
	c, err := take(t.Context(), p)
	if err != nil {
		t.Fatalf("Take = %v", err)
	}
	return c
}

// closePool closes a pool and checks that it has left nothing.
func closePool(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
	t.Helper()
	p.Close()
	if n := provider.Alive(); n != 0 {
		t.Errorf("%d sandboxes are left, want none", n)
	}
	if s := p.Stats(); s.Live != 0 || s.Making != 0 {
		t.Errorf("the pool counts %d live, %d being made, want none", s.Live, s.Making)
	}
}

func TestPoolIsFilledAhead(t *testing.T) {
	inPool(t, 3, 10, func(s *sandboxtest.Settings) { s.Delay = time.Second }, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		s := mustTake(t, p)
		time.Sleep(10 * time.Second)
		wantIdle(t, p, 3, "after a while")
		// What is ready is had at once.
		began := time.Now()
		p.Release(mustTake(t, p))
		if got := time.Since(began); got != 0 {
			t.Errorf("it took %v to take a ready one, want 0", got)
		}
		if provider.AtOnce() > sandbox.Makers {
			t.Errorf("%d were made at one time, want at most %d", provider.AtOnce(), sandbox.Makers)
		}
		p.Release(s)
	})
}

func TestPoolLetsAProgramBegin(t *testing.T) {
	inPool(t, 2, 10, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		p.Running(0)
		synctest.Wait()
		taken := []*sandbox.Conn{mustTake(t, p), mustTake(t, p)}
		p.Running(1)
		time.Sleep(sandbox.StartTime - 1)
		wantIdle(t, p, 0, "while a program began")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantIdle(t, p, 1, "after that")
		p.Running(-1)
		for _, s := range taken {
			p.Release(s)
		}
	})
}

func TestPoolIsFilledWhenNothingRuns(t *testing.T) {
	inPool(t, 4, 10, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		p.Running(1)
		synctest.Wait()
		wantIdle(t, p, 2, "while a program runs")
		p.Running(-1)
		synctest.Wait()
		wantIdle(t, p, 2, "when one has just run")
		time.Sleep(sandbox.CalmTime / 2)
		p.Running(1)
		p.Running(-1)
		time.Sleep(sandbox.CalmTime - 1)
		wantIdle(t, p, 2, "when one has run since")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantIdle(t, p, 4, "when none runs")
	})
}

// A pool is full when all that may live are in use, not when they are idle or about to be had.
func TestPoolIsFull(t *testing.T) {
	inPool(t, 2, 2, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		wantFull := func(want bool, when string) {
			t.Helper()
			if got := p.Full(); got != want {
				t.Errorf("the pool is full %s: %t, want %t", when, got, want)
			}
		}
		wantFull(false, "before it made any")
		p.Running(0)
		synctest.Wait()
		wantFull(false, "when all are idle")
		first := mustTake(t, p)
		wantFull(false, "when one is in use")
		second := mustTake(t, p)
		wantFull(true, "when both are in use")
		provider.Set(func(s *sandboxtest.Settings) { s.Delay = time.Second })
		p.Release(first)
		synctest.Wait()
		wantFull(false, "when one is being made")
		taken := make(chan *sandbox.Conn, 1)
		go func() { taken <- mustTake(t, p) }()
		p.Release(second)
		synctest.Wait()
		wantFull(false, "when one waits and two are being made")
		time.Sleep(time.Minute)
		wantFull(false, "when the one who waited has one")
		p.Release(<-taken)
	})
}

func TestPoolCeiling(t *testing.T) {
	inPool(t, 5, 2, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		first, second := mustTake(t, p), mustTake(t, p)
		cause := errors.New("waited too long")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if _, err := take(ctx, p); !errors.Is(err, sandbox.ErrNoCapacity) || !errors.Is(err, cause) {
			t.Errorf("take beyond the ceiling = %v, want ErrNoCapacity and its cause", err)
		}
		if len(provider.Made()) != 2 {
			t.Errorf("%d were made, want 2", len(provider.Made()))
		}
		p.Release(first)
		third := mustTake(t, p)
		if third == first {
			t.Error("a sandbox was given out twice")
		}
		p.Release(second)
		p.Release(third)
	})
}

func TestPoolServesInOrder(t *testing.T) {
	inPool(t, 0, 1, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		s := mustTake(t, p)
		var order []int
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				s := mustTake(t, p)
				order = append(order, i)
				p.Release(s)
			})
			synctest.Wait()
		}
		p.Release(s)
		wg.Wait()
		if want := []int{0, 1, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("served %v, want %v", order, want)
		}
	})
}

func TestPoolOfProviderThatFails(t *testing.T) {
	full := errors.New("no disk")
	says := func(s *sandboxtest.Settings) { s.Fail, s.Delay = full, time.Millisecond }
	inPool(t, 2, 10, says, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := take(t.Context(), p); !errors.Is(err, sandbox.ErrNoCapacity) || !errors.Is(err, full) {
					t.Errorf("take = %v, want ErrNoCapacity and its cause", err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		began := time.Now()
		provider.Set(func(s *sandboxtest.Settings) { s.Fail = nil })
		p.Release(mustTake(t, p))
		if got := time.Since(began); got < sandbox.RetryDelay-time.Millisecond || got > 2*sandbox.RetryDelay {
			t.Errorf("it tried again after %v, want about %v", got, sandbox.RetryDelay)
		}
	})
}

// Those who wait do not pay for one accident.
func TestPoolTriesAgain(t *testing.T) {
	inPool(t, 1, 10, func(s *sandboxtest.Settings) { s.Fail = errors.New("removed by an operator") }, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { p.Release(mustTake(t, p)) })
		}
		synctest.Wait()
		provider.Set(func(s *sandboxtest.Settings) { s.Fail = nil })
		wg.Wait()
	})
}

func TestPoolReplacesTheDead(t *testing.T) {
	inPool(t, 2, 10, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		p.Running(0)
		synctest.Wait()
		provider.Die("s1")
		synctest.Wait()
		wantIdle(t, p, 2, "after one died")
		if !slices.Equal(provider.Destroyed(), []string{"s1"}) {
			t.Errorf("destroyed %v, want s1", provider.Destroyed())
		}
		if s := mustTake(t, p); s.Ref == "s1" {
			t.Error("the dead one was given out")
		} else {
			p.Release(s)
		}
	})
}

func TestPoolReplacesTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := sandboxtest.New("")
		p := testPool(provider, 1, 10, func(o *sandbox.PoolOptions) { o.MaxIdle = time.Minute })
		p.Running(0)
		time.Sleep(59 * time.Second)
		if len(provider.Made()) != 1 {
			t.Errorf("%d were made within a minute, want 1", len(provider.Made()))
		}
		time.Sleep(2 * time.Second)
		if len(provider.Made()) != 2 || provider.Alive() != 1 {
			t.Errorf("%d were made and %d are alive after a minute, want 2 and 1", len(provider.Made()), provider.Alive())
		}
		// One that was taken in time may grow as old as it likes.
		s := mustTake(t, p)
		time.Sleep(time.Hour)
		if provider.Alive() != 2 || s.Err() != nil {
			t.Error("a sandbox in use was ended for its age")
		}
		p.Release(s)
		closePool(t, p, provider)
	})
}

func TestPoolRefusesSandboxes(t *testing.T) {
	for name, says := range map[string]func(*sandboxtest.Settings){
		"another protocol":  func(s *sandboxtest.Settings) { s.Protocol++ },
		"one that has run":  func(s *sandboxtest.Settings) { s.State = sandbox.Paused },
		"one without state": func(s *sandboxtest.Settings) { s.State = "" },
	} {
		t.Run(name, func(t *testing.T) {
			inPool(t, 0, 1, says, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
				if s, err := take(t.Context(), p); !errors.Is(err, sandbox.ErrNoCapacity) {
					t.Errorf("take = %v, %v, want ErrNoCapacity", s, err)
				}
				if n := provider.Alive(); n != 0 {
					t.Errorf("%d sandboxes are left, want none", n)
				}
			})
		})
	}
}

func TestPoolGivesUpWhatHangs(t *testing.T) {
	inPool(t, 0, 1, func(s *sandboxtest.Settings) { s.Delay = 24 * time.Hour }, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		began := time.Now()
		if _, err := take(t.Context(), p); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("take = %v, want a deadline", err)
		}
		if got, want := time.Since(began), 2*sandbox.MakeTimeout+sandbox.RetryDelay; got != want {
			t.Errorf("gave up after %v, want %v", got, want)
		}
	})
}

// A sandbox that comes in the moment its request gives up goes to the next one.
func TestPoolKeepsWhatCameTooLate(t *testing.T) {
	inPool(t, 1, 1, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		s := mustTake(t, p)
		p.ComeTooLate(sandbox.Scientific, s)
		if got := mustTake(t, p); got != s {
			t.Errorf("took %s, want %s, which came too late for another", got.Ref, s.Ref)
		}
		p.Release(s)
	})
}

func TestPoolForgetsWhoGaveUp(t *testing.T) {
	inPool(t, 0, 1, func(s *sandboxtest.Settings) { s.Delay = 2 * time.Second }, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := take(ctx, p); !errors.Is(err, sandbox.ErrNoCapacity) {
			t.Errorf("take = %v, want ErrNoCapacity", err)
		}
		began := time.Now()
		p.Release(mustTake(t, p))
		if got := time.Since(began); got != time.Second {
			t.Errorf("the next one waited %v, want 1s, the rest of what the first began", got)
		}
	})
}

func TestPoolMakesFewAtOneTime(t *testing.T) {
	inPool(t, 0, 10, func(s *sandboxtest.Settings) { s.Delay = time.Second }, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { p.Release(mustTake(t, p)) })
		}
		wg.Wait()
		if provider.AtOnce() != sandbox.Makers {
			t.Errorf("%d were made at one time for 6 who waited, want %d", provider.AtOnce(), sandbox.Makers)
		}
	})
}

func TestPoolClose(t *testing.T) {
	inPool(t, 2, 3, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		used := mustTake(t, p)
		synctest.Wait()
		provider.Set(func(s *sandboxtest.Settings) { s.Delay = time.Hour })
		other, third := mustTake(t, p), mustTake(t, p)
		waiting := make(chan error)
		go func() {
			_, err := take(t.Context(), p)
			waiting <- err
		}()
		p.Release(third) // so that one is being made when the pool closes
		synctest.Wait()
		p.Release(used)
		p.Release(other)
		began := time.Now()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			p.Close()
		}()
		if err := <-waiting; !errors.Is(err, sandbox.ErrClosing) {
			t.Errorf("take of one who waits = %v, want ErrClosing", err)
		}
		<-closed
		if got := time.Since(began); got != 0 {
			t.Errorf("closing took %v, want 0: what is being made is given up", got)
		}
		if s, err := take(t.Context(), p); !errors.Is(err, sandbox.ErrClosing) {
			t.Errorf("take of a closed pool = %v, %v, want ErrClosing", s, err)
		}
	})
}

func TestPoolCountsWhatItDidNotMake(t *testing.T) {
	inPool(t, 0, 1, nil, func(t *testing.T, p *sandbox.Pool, provider *sandboxtest.Script) {
		ref, err := provider.View("another").Create(t.Context(), sandbox.Plain)
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := p.Adopt(t.Context(), ref, []byte("marker"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := take(ctx, p); !errors.Is(err, sandbox.ErrNoCapacity) {
			t.Errorf("take = %v, want ErrNoCapacity: an adopted one counts", err)
		}
		p.Abandon(adopted)
		s := mustTake(t, p)
		if got := provider.Alive(); got != 2 {
			t.Errorf("%d are alive, want the abandoned one to stay", got)
		}
		provider.Die(ref)
		p.Release(s)
	})
}

// Many at once, in real time and under the race detector.
func TestPoolLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	provider := sandboxtest.New("")
	p := testPool(provider, 4, 8)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				if s, err := take(ctx, p); err == nil {
					p.Running(1)
					p.Running(-1)
					p.Release(s)
				} else if !errors.Is(err, sandbox.ErrNoCapacity) {
					t.Errorf("take = %v, want a sandbox or ErrNoCapacity", err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	closePool(t, p, provider)
}
