package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestGates fills the places of principals and of the server.
func TestGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGates()
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
		synctest.Wait() // for the function of AfterFunc, which has more to do when it has let e in
		if len(g.principals) > 0 || g.server.free != MaxOfServer {
			t.Errorf("%d principals are remembered, %d places free, want 0 and %d", len(g.principals), g.server.free, MaxOfServer)
		}
	})
}

// TestGateOfToolset checks that a toolset which is opened again has the same gate, unless its bound is
// another one, and what callers are told.
func TestGateOfToolset(t *testing.T) {
	g := NewGates()
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
