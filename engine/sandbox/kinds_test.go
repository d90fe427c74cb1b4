package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
)

// kindsPool is a pool of both kinds.
func kindsPool(p sandbox.Provider, plain, scientific, ceiling int) *sandbox.Pool {
	return sandbox.NewPool(sandbox.PoolOptions{
		Provider: p, Log: slog.New(slog.DiscardHandler), Ceiling: ceiling,
		Sizes: map[sandbox.Kind]int{sandbox.Plain: plain, sandbox.Scientific: scientific},
	})
}

// idleOf returns how many sandboxes of each kind are idle.
func idleOf(p *sandbox.Pool) string {
	s := p.Stats()
	return fmt.Sprintf("%d plain, %d scientific", s.Kinds[sandbox.Plain].Idle, s.Kinds[sandbox.Scientific].Idle)
}

func TestPoolKeepsBothKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := sandboxtest.New("")
		p := kindsPool(provider, 2, 1, 10)
		if err := p.First(t.Context()); err != nil {
			t.Fatal(err)
		}
		if made := provider.Made()[:2]; !slices.Contains(made, sandbox.Plain) || !slices.Contains(made, sandbox.Scientific) {
			t.Errorf("the first that were made are %v, want one of each kind", made)
		}
		synctest.Wait()
		if got, want := idleOf(p), "2 plain, 1 scientific"; got != want {
			t.Errorf("%s are idle, want %s", got, want)
		}
		began := time.Now()
		for _, kind := range []sandbox.Kind{sandbox.Scientific, sandbox.Plain, sandbox.Plain} {
			c, err := p.Take(t.Context(), kind, "")
			if err != nil {
				t.Fatal(err)
			}
			defer p.Release(c)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v to take what was idle, want 0", took)
		}
		s := p.Stats()
		if s.Kinds[sandbox.Plain].Warm != 2 || s.Kinds[sandbox.Scientific].Warm != 1 || s.Warm != 3 {
			t.Errorf("the figures are %+v, want 2 plain starts and 1 scientific one, all warm", s)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got, want := idleOf(p), "2 plain, 1 scientific"; got != want {
			t.Errorf("a second later %s are idle, want %s", got, want)
		}
		p.Close()
	})
}

// At the ceiling an idle sandbox of one kind makes room for someone who waits for the other,
// and one of them only.
func TestIdleSandboxesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := sandboxtest.New("")
		p := kindsPool(provider, 0, 3, 3)
		p.Running(0)
		synctest.Wait()
		if got, want := idleOf(p), "0 plain, 3 scientific"; got != want {
			t.Fatalf("%s are idle, want %s", got, want)
		}
		c, err := p.Take(t.Context(), sandbox.Plain, "ada")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := idleOf(p), "0 plain, 2 scientific"; got != want {
			t.Errorf("%s are idle, want %s", got, want)
		}
		p.Release(c)
		synctest.Wait()
		if got, want := idleOf(p), "0 plain, 3 scientific"; got != want {
			t.Errorf("when it is released %s are idle, want %s", got, want)
		}
		closePool(t, p, provider)
	})
}

// Whoever waits for one kind is not overtaken for ever by those who want the other.
func TestNoKindStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := sandboxtest.New("")
		provider.Set(func(s *sandboxtest.Settings) { s.Delay = time.Millisecond })
		p := kindsPool(provider, 1, 1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		for i := range 4 {
			busy.Go(func() {
				for ctx.Err() == nil {
					if c, err := p.Take(ctx, sandbox.Plain, fmt.Sprint("plain", i)); err == nil {
						time.Sleep(time.Millisecond)
						p.Release(c)
					}
				}
			})
		}
		time.Sleep(time.Second)
		for range 10 {
			waiting, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			c, err := p.Take(waiting, sandbox.Scientific, "ada")
			cancel()
			if err != nil {
				t.Fatalf("Take of the other kind = %v, want it in its turn", err)
			}
			p.Release(c)
		}
		cancel()
		busy.Wait()
		closePool(t, p, provider)
	})
}

// A burst of starts on an empty pool is served in the order in which it came, whatever kinds
// it wants.
func TestBurst(t *testing.T) {
	for _, kinds := range [][]sandbox.Kind{{sandbox.Plain}, sandbox.Kinds} {
		for _, ceiling := range []int{8, 100} {
			t.Run(fmt.Sprint(kinds, " ", ceiling), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					provider := sandboxtest.New("")
					provider.Set(func(s *sandboxtest.Settings) { s.Delay = 5 * time.Millisecond })
					p := kindsPool(provider, 0, 0, ceiling)
					var mu sync.Mutex
					var order []int
					var wg sync.WaitGroup
					for i := range 50 {
						wg.Go(func() {
							c, err := p.Take(t.Context(), kinds[i%len(kinds)], "ada")
							if err != nil {
								t.Errorf("start %d: %v", i, err)
								return
							}
							mu.Lock()
							order = append(order, i)
							mu.Unlock()
							time.Sleep(time.Millisecond)
							p.Release(c)
						})
						synctest.Wait()
					}
					wg.Wait()
					for place, i := range order {
						// Those that are made at the same time may change places.
						if distance := place - i; distance >= sandbox.Makers || -distance >= sandbox.Makers {
							t.Fatalf("served in the order %v", order)
						}
					}
					if len(order) != 50 {
						t.Errorf("%d of 50 were served", len(order))
					}
					closePool(t, p, provider)
				})
			})
		}
	}
}

// broken is a provider that cannot make one kind.
type broken struct {
	*sandboxtest.Script
	kind sandbox.Kind
}

var errBroken = errors.New("cannot be made")

func (b broken) Create(ctx context.Context, kind sandbox.Kind) (string, error) {
	if kind == b.kind {
		return "", errBroken
	}
	return b.Script.Create(ctx, kind)
}

// A kind that cannot be made holds up nobody who wants the other, and takes no room.
func TestOneKindCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := broken{sandboxtest.New(""), sandbox.Scientific}
		p := kindsPool(provider, 1, 1, 2)
		p.Running(0)
		refused := make(chan error)
		go func() {
			_, err := p.Take(t.Context(), sandbox.Scientific, "ada")
			refused <- err
		}()
		synctest.Wait()
		for range 5 {
			began := time.Now()
			c, err := p.Take(t.Context(), sandbox.Plain, "bob")
			if err != nil || time.Since(began) > 0 {
				t.Errorf("Take of the kind that can be made = %v, after %v", err, time.Since(began))
				continue
			}
			p.Release(c)
			synctest.Wait()
		}
		if made := len(provider.Made()); made > 6 {
			t.Errorf("%d were made for five starts and one idle one", made)
		}
		if err := <-refused; !errors.Is(err, sandbox.ErrNoCapacity) || !errors.Is(err, errBroken) {
			t.Errorf("Take of the kind that cannot be made = %v, want ErrNoCapacity and its cause", err)
		}
		closePool(t, p, provider.Script)
	})
}
