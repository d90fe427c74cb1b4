package mcptool

import (
	"testing"
	"time"
)

// TestIdleProcessesMakeRoom shows that more principals than there are places for processes can take turns.
func TestIdleProcessesMakeRoom(t *testing.T) {
	limits := NewLimits(3)
	s := hostileSource(t, "", func(o *Options) { o.Limits = limits })
	for range 2 {
		for _, principal := range []string{"alice", "bob", "carol", "dave"} {
			if got, err := call(t, s, principal, "echo", `{}`); err != nil || got != `{}` {
				t.Errorf("%s got %s, %v", principal, got, err)
			}
			limits.mu.Lock()
			if limits.all > 3 {
				t.Errorf("%d processes run", limits.all)
			}
			limits.mu.Unlock()
		}
	}
}

// TestWhoMakesRoom shows which process ends for another: none with a call, and none of a principal that has fewer.
func TestWhoMakesRoom(t *testing.T) {
	limits := NewLimits(5)
	made := map[string]*session{}
	for i, c := range []struct {
		name, owner string
		calls       int
	}{{"a1", "alice", 1}, {"a2", "alice", 0}, {"a3", "alice", 0}, {"b1", "bob", 0}, {"c1", "carol", 0}} {
		sn := &session{calls: c.calls, used: time.Now().Add(time.Duration(-10-i) * time.Second), evicted: make(chan struct{})}
		made[c.name] = sn
		if !limits.place(c.owner, new(*session)) {
			t.Fatal("there is no place")
		}
		limits.settle(sn, c.owner)
	}
	for _, c := range []struct{ whom, want string }{{"alice", "a3"}, {"dave", "c1"}, {"alice", "a2"}, {"alice", ""}, {"dave", "b1"}, {"dave", ""}} {
		var ending *session
		if limits.place(c.whom, &ending) {
			t.Fatal("there is a place")
		}
		if ending != made[c.want] {
			t.Errorf("for %s another process ends than %q", c.whom, c.want)
		}
	}
}
