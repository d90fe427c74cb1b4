package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"fermata/python"
)

// scripted is a Provider whose sandboxes answer an attach frame and say no more.
type scripted struct {
	// delay is how long it takes to make one; fail, if set, is why it cannot.
	delay time.Duration
	fail  error
	// hello is what new sandboxes say.
	hello hello

	mu        sync.Mutex
	created   int
	making    int
	together  int // the most that were made at one time
	live      map[string][]net.Conn
	destroyed []string
}

func newScripted() *scripted {
	return &scripted{hello: hello{Protocol: python.Protocol, State: "ready"}, live: map[string][]net.Conn{}}
}

func (p *scripted) Create(ctx context.Context, _ Kind) (string, error) {
	p.mu.Lock()
	p.making++
	p.together = max(p.together, p.making)
	delay := p.delay
	p.mu.Unlock()
	var err error
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making--
	if err := errors.Join(err, p.fail); err != nil {
		return "", err
	}
	p.created++
	ref := fmt.Sprintf("s%d", p.created)
	p.live[ref] = nil
	return ref, nil
}

func (p *scripted) Attach(_ context.Context, ref string) (io.ReadWriteCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.live[ref]; !ok {
		return nil, ErrGone
	}
	ours, theirs := net.Pipe()
	p.live[ref] = append(p.live[ref], theirs)
	go p.supervise(theirs)
	return ours, nil
}

// supervise answers attach frames until the stream ends.
func (p *scripted) supervise(stream net.Conn) {
	r := bufio.NewReader(stream)
	for {
		header := make([]byte, frameHeader+markerSize)
		if _, err := io.ReadFull(r, header); err != nil {
			return
		}
		text, err := json.Marshal(p.hello)
		if err != nil {
			panic(err)
		}
		if _, err := stream.Write(header[frameHeader:]); err != nil {
			return
		}
		if err := writeFrame(stream, frameHello, text); err != nil {
			return
		}
	}
}

func (p *scripted) Destroy(_ context.Context, ref string) error {
	p.die(ref)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.destroyed = append(p.destroyed, ref)
	return nil
}

// die ends a sandbox as if by itself.
func (p *scripted) die(ref string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, stream := range p.live[ref] {
		_ = stream.Close() // a pipe's never fails
	}
	delete(p.live, ref)
}

func (p *scripted) List(context.Context) ([]Sandbox, error) { return nil, nil }

func (p *scripted) Close() error { return nil }

// alive returns how many sandboxes there are.
func (p *scripted) alive() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.live)
}

func testPool(p Provider, size, ceiling int) *pool {
	return newPool(Options{Provider: p, Log: slog.New(slog.DiscardHandler), PoolSize: size, MaxSandboxes: ceiling})
}

// made returns how many sandboxes were made.
func (p *scripted) made() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.created
}

// mostTogether returns how many were made at one time, at most.
func (p *scripted) mostTogether() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.together
}

// wantIdle checks how many sandboxes wait in the pool.
func wantIdle(t *testing.T, p *pool, want int, when string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := len(p.idle); got != want {
		t.Errorf("%d are ready %s, want %d", got, when, want)
	}
}

func mustTake(t *testing.T, p *pool) *sandbox {
	t.Helper()
	s, err := p.take(t.Context(), "")
	if err != nil {
		t.Fatalf("take = %v", err)
	}
	return s
}

// closePool closes a pool and checks that it has left nothing.
func closePool(t *testing.T, p *pool, provider *scripted) {
	t.Helper()
	p.close()
	if n := provider.alive(); n != 0 {
		t.Errorf("%d sandboxes are left, want none", n)
	}
	if p.live != 0 || p.making != 0 {
		t.Errorf("the pool counts %d live, %d being made, want none", p.live, p.making)
	}
}

func TestPoolIsFilledAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		provider.delay = time.Second
		p := testPool(provider, 3, 10)
		s := mustTake(t, p)
		time.Sleep(10 * time.Second)
		wantIdle(t, p, 3, "after a while")
		// What is ready is had at once.
		began := time.Now()
		p.release(mustTake(t, p))
		if got := time.Since(began); got != 0 {
			t.Errorf("it took %v to take a ready one, want 0", got)
		}
		if provider.mostTogether() > makers {
			t.Errorf("%d were made at one time, want at most %d", provider.mostTogether(), makers)
		}
		p.release(s)
		closePool(t, p, provider)
	})
}

func TestPoolLetsAProgramBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 2, 10)
		p.running(0)
		synctest.Wait()
		taken := []*sandbox{mustTake(t, p), mustTake(t, p)}
		p.running(1)
		time.Sleep(startTime - 1)
		wantIdle(t, p, 0, "while a program began")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantIdle(t, p, 1, "after that")
		p.running(-1)
		for _, s := range taken {
			p.release(s)
		}
		closePool(t, p, provider)
	})
}

func TestPoolIsFilledWhenNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 4, 10)
		p.running(1)
		synctest.Wait()
		wantIdle(t, p, 2, "while a program runs")
		p.running(-1)
		synctest.Wait()
		wantIdle(t, p, 2, "when one has just run")
		time.Sleep(calmTime / 2)
		p.running(1)
		p.running(-1)
		time.Sleep(calmTime - 1)
		wantIdle(t, p, 2, "when one has run since")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantIdle(t, p, 4, "when none runs")
		closePool(t, p, provider)
	})
}

func TestPoolCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 5, 2)
		first, second := mustTake(t, p), mustTake(t, p)
		cause := errors.New("waited too long")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if _, err := p.take(ctx, ""); !errors.Is(err, ErrNoCapacity) || !errors.Is(err, cause) {
			t.Errorf("take beyond the ceiling = %v, want ErrNoCapacity and its cause", err)
		}
		if provider.made() != 2 {
			t.Errorf("%d were made, want 2", provider.made())
		}
		p.release(first)
		third := mustTake(t, p)
		if third == first {
			t.Error("a sandbox was given out twice")
		}
		p.release(second)
		p.release(third)
		closePool(t, p, provider)
	})
}

func TestPoolServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 0, 1)
		s := mustTake(t, p)
		var order []int
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				s := mustTake(t, p)
				order = append(order, i)
				p.release(s)
			})
			synctest.Wait()
		}
		p.release(s)
		wg.Wait()
		if want := []int{0, 1, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("served %v, want %v", order, want)
		}
		closePool(t, p, provider)
	})
}

func TestPoolOfProviderThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		provider.fail = errors.New("no disk")
		provider.delay = time.Millisecond
		p := testPool(provider, 2, 10)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := p.take(t.Context(), ""); !errors.Is(err, ErrNoCapacity) || !errors.Is(err, provider.fail) {
					t.Errorf("take = %v, want ErrNoCapacity and its cause", err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		began := time.Now()
		provider.mu.Lock()
		provider.fail = nil
		provider.mu.Unlock()
		p.release(mustTake(t, p))
		if got := time.Since(began); got < retryDelay-time.Millisecond || got > 2*retryDelay {
			t.Errorf("it tried again after %v, want about %v", got, retryDelay)
		}
		closePool(t, p, provider)
	})
}

// Those who wait do not pay for one accident.
func TestPoolTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		provider.fail = errors.New("removed by an operator")
		p := testPool(provider, 1, 10)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { p.release(mustTake(t, p)) })
		}
		synctest.Wait()
		provider.mu.Lock()
		provider.fail = nil
		provider.mu.Unlock()
		wg.Wait()
		closePool(t, p, provider)
	})
}

func TestPoolReplacesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 2, 10)
		p.running(0)
		synctest.Wait()
		provider.die("s1")
		synctest.Wait()
		wantIdle(t, p, 2, "after one died")
		if !slices.Equal(provider.destroyed, []string{"s1"}) {
			t.Errorf("destroyed %v, want s1", provider.destroyed)
		}
		if s := mustTake(t, p); s.ref == "s1" {
			t.Error("the dead one was given out")
		} else {
			p.release(s)
		}
		closePool(t, p, provider)
	})
}

func TestPoolReplacesTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 1, 10)
		p.maxIdle = time.Minute
		p.running(0)
		time.Sleep(59 * time.Second)
		if provider.made() != 1 {
			t.Errorf("%d were made within a minute, want 1", provider.made())
		}
		time.Sleep(2 * time.Second)
		if provider.made() != 2 || provider.alive() != 1 {
			t.Errorf("%d were made and %d are alive after a minute, want 2 and 1", provider.made(), provider.alive())
		}
		// One that was taken in time may grow as old as it likes.
		s := mustTake(t, p)
		time.Sleep(time.Hour)
		if s.gone() {
			t.Error("a sandbox in use was ended for its age")
		}
		p.release(s)
		closePool(t, p, provider)
	})
}

func TestPoolRefusesSandboxes(t *testing.T) {
	for name, said := range map[string]hello{
		"another protocol":  {Protocol: python.Protocol + 1, State: "ready"},
		"one that has run":  {Protocol: python.Protocol, State: "paused"},
		"one without state": {Protocol: python.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := newScripted()
				provider.hello = said
				p := testPool(provider, 0, 1)
				if s, err := p.take(t.Context(), ""); !errors.Is(err, ErrNoCapacity) {
					t.Errorf("take = %v, %v, want ErrNoCapacity", s, err)
				}
				if n := provider.alive(); n != 0 {
					t.Errorf("%d sandboxes are left, want none", n)
				}
				closePool(t, p, provider)
			})
		})
	}
}

func TestPoolGivesUpWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		provider.delay = 24 * time.Hour
		p := testPool(provider, 0, 1)
		began := time.Now()
		if _, err := p.take(t.Context(), ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("take = %v, want a deadline", err)
		}
		if got, want := time.Since(began), 2*makeTimeout+retryDelay; got != want {
			t.Errorf("gave up after %v, want %v", got, want)
		}
		closePool(t, p, provider)
	})
}

// A sandbox that comes in the moment its request gives up goes to the next one.
func TestPoolKeepsWhatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 1, 1)
		s := mustTake(t, p)
		turn := make(chan taken, 1)
		turn <- taken{sandbox: s}
		p.leave(turn)
		if got := mustTake(t, p); got != s {
			t.Errorf("took %s, want %s, which came too late for another", got.ref, s.ref)
		}
		p.release(s)
		closePool(t, p, provider)
	})
}

func TestPoolForgetsWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		provider.delay = 2 * time.Second
		p := testPool(provider, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.take(ctx, ""); !errors.Is(err, ErrNoCapacity) {
			t.Errorf("take = %v, want ErrNoCapacity", err)
		}
		began := time.Now()
		p.release(mustTake(t, p))
		if got := time.Since(began); got != time.Second {
			t.Errorf("the next one waited %v, want 1s, the rest of what the first began", got)
		}
		closePool(t, p, provider)
	})
}

func TestPoolMakesFewAtOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		provider.delay = time.Second
		p := testPool(provider, 0, 10)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { p.release(mustTake(t, p)) })
		}
		wg.Wait()
		if provider.mostTogether() != makers {
			t.Errorf("%d were made at one time for 6 who waited, want %d", provider.mostTogether(), makers)
		}
		closePool(t, p, provider)
	})
}

func TestPoolClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 2, 3)
		used := mustTake(t, p)
		synctest.Wait()
		provider.mu.Lock()
		provider.delay = time.Hour
		provider.mu.Unlock()
		other, third := mustTake(t, p), mustTake(t, p)
		waiting := make(chan error)
		go func() {
			_, err := p.take(t.Context(), "")
			waiting <- err
		}()
		p.release(third) // so that one is being made when the pool closes
		synctest.Wait()
		p.release(used)
		p.release(other)
		began := time.Now()
		go p.close()
		if err := <-waiting; !errors.Is(err, ErrClosing) {
			t.Errorf("take of one who waits = %v, want ErrClosing", err)
		}
		p.wg.Wait()
		if got := time.Since(began); got != 0 {
			t.Errorf("closing took %v, want 0: what is being made is given up", got)
		}
		if s, err := p.take(t.Context(), ""); !errors.Is(err, ErrClosing) {
			t.Errorf("take of a closed pool = %v, %v, want ErrClosing", s, err)
		}
		closePool(t, p, provider)
	})
}

func TestPoolCountsWhatItDidNotMake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newScripted()
		p := testPool(provider, 0, 1)
		p.adopted()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.take(ctx, ""); !errors.Is(err, ErrNoCapacity) {
			t.Errorf("take = %v, want ErrNoCapacity: an adopted one counts", err)
		}
		p.mu.Lock()
		p.live--
		p.mu.Unlock()
		s := mustTake(t, p)
		p.abandon(s)
		if got := provider.alive(); got != 1 {
			t.Errorf("%d are alive, want the abandoned one to stay", got)
		}
		provider.die(s.ref)
		closePool(t, p, provider)
	})
}

// Many at once, in real time and under the race detector.
func TestPoolLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	provider := newScripted()
	p := testPool(provider, 4, 8)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				if s, err := p.take(ctx, ""); err == nil {
					p.running(1)
					p.running(-1)
					p.release(s)
				} else if !errors.Is(err, ErrNoCapacity) {
					t.Errorf("take = %v, want a sandbox or ErrNoCapacity", err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	closePool(t, p, provider)
}

// Principals that wait are served in turns, and each in the order in which it came.
func TestTurns(t *testing.T) {
	p := testPool(newScripted(), 0, 0)
	for _, principal := range []string{"ada", "ada", "ada", "bob", "ada", "cyd", "bob"} {
		p.join(principal)
	}
	var order []string
	serve := func() {
		sb := &sandbox{}
		order = append(order, fmt.Sprint(p.waiting[0].principal, p.waiting[0].rank))
		p.put(sb)
	}
	serve()
	serve()
	p.join("dan") // After cyd, who came before.
	for len(p.waiting) > 0 {
		serve()
	}
	if want := []string{"ada1", "bob1", "cyd1", "ada2", "bob2", "dan2", "ada3", "ada4"}; !slices.Equal(order, want) {
		t.Errorf("served %v, want %v", order, want)
	}
}
