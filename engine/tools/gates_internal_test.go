package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestGates fills the places of principals and of the server.
func TestGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGates(1)
		var leaves []func()
		enter := func(principal string, most time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			leave, _, err := g.enter(ctx, nil, principal)
			if err == nil {
				leaves = append(leaves, leave)
			}
			return err
		}
		for _, principal := range []string{"a", "b", "c", "d"} {
			for range MaxOfPrincipal {
				if err := enter(principal, time.Second); err != nil {
					t.Fatal(err)
				}
			}
			if err := enter(principal, time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s has one place more: %v", principal, err)
			}
		}
		if err := enter("e", time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the server has one place more: %v", err)
		}
		time.AfterFunc(time.Second, leaves[0])
		if err := enter("e", 2*time.Second); err != nil {
			t.Errorf("no place after one was free again: %v", err)
		}
		for _, leave := range leaves[1:] {
			leave()
		}
		synctest.Wait() // The function of AfterFunc still has something to do after it has let e in.
		if len(g.principals) > 0 || g.server.free != MaxOfServer {
			t.Errorf("%d principals are remembered, %d places free, want 0 and %d", len(g.principals), g.server.free, MaxOfServer)
		}
	})
}

// TestGatesAreBounded fills the places of a principal with calls that wait: the next one fails at once.
func TestGatesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGates(1)
		s := &toolset{gates: g, gate: g.toolset("w", 1)}
		s.described.Key, s.described.Concurrency = "w", 1
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		enter := func(s *toolset, principal string) {
			leave, err := s.enter(ctx, principal)
			if err == nil {
				leave()
			}
			ended <- err
		}
		holds, err := s.enter(t.Context(), "a") // one of the 64 places of a, and the only one of the toolset
		if err != nil {
			t.Fatal(err)
		}
		for range MaxOfPrincipal - 1 + maxWaiting {
			go enter(s, "a")
		}
		synctest.Wait()
		if _, err := s.enter(t.Context(), "a"); err == nil || err.Error() != fmt.Sprintf(textManyWait, maxWaiting) {
			t.Errorf("one more call of the principal: %v", err)
		}
		cancel()
		for range MaxOfPrincipal - 1 + maxWaiting {
			if err := <-ended; err == nil || err.Error() != textCancelled {
				t.Fatalf("a call that was cancelled: %v", err)
			}
		}
		holds()
	})
}

// TestGateOfToolset checks that a toolset that is opened again has the same gate, unless its number of places
// has changed, and checks the error of a call that got no place.
func TestGateOfToolset(t *testing.T) {
	g := NewGates(1)
	first := g.toolset("w", 1)
	if first == nil || g.toolset("w", 1) != first {
		t.Error("the toolset has another gate")
	}
	s := &toolset{gates: g, gate: first}
	s.described.Key, s.described.Concurrency = "w", 1
	leave, err := s.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.enter(ctx, "b"); err == nil || !strings.Contains(err.Error(), "the toolset w was busy") {
		t.Errorf("got %v, want that the toolset was busy", err)
	}
	if g.toolset("w", 2) == first || g.toolset("w", 0) != nil || len(g.toolsets) != 0 {
		t.Error("the toolset has its former gate")
	}
}
