package engine

import (
	"time"

	"fermata/engine/core"
)

// An executionTable has the executions that live on this server, and the ids of those that are
// being taken over.
type executionTable struct {
	table[*execution]
	adopting map[string]bool // guarded by mu
}

func newExecutionTable() *executionTable { return &executionTable{adopting: map[string]bool{}} }

// findByRequest returns the principal's execution whose latest request has this id, or nil. It
// compares principals, since another one may use an id again once the request is forgotten.
func (t *executionTable) findByRequest(c Cancel) *execution {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.byID {
		if last := x.requestID.Load(); last != nil && *last == c.RequestID && x.principal == c.Principal {
			return x
		}
	}
	return nil
}

// ofSession returns the executions of a session that the principal may cancel.
func (t *executionTable) ofSession(which CancelSession) (list []*execution) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.byID {
		if x.session == which.Session && (which.Principal == "" || which.Principal == x.principal) {
			list = append(list, x)
		}
	}
	return list
}

// adopt notes that an execution is being taken over, until adopted is called. It reports false
// if the execution is being taken over already, or lives on this server.
func (t *executionTable) adopt(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[id] != nil || t.adopting[id] {
		return false
	}
	t.adopting[id] = true
	return true
}

func (t *executionTable) adopted(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.adopting, id)
}

// sandboxes returns the sandboxes of the executions.
func (t *executionTable) sandboxes() map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	refs := make(map[string]bool, len(t.byID))
	for _, x := range t.byID {
		refs[x.sandbox.Ref] = true
	}
	return refs
}

// nextRoom returns how long it may take until an execution ends: no time if one runs, since it may
// end at any moment, and otherwise the time until the next pause expires.
func (t *executionTable) nextRoom() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next *time.Time
	for _, x := range t.byID {
		until := x.pausedUntil.Load()
		if until == nil {
			return 0
		}
		if next == nil || until.Before(*next) {
			next = until
		}
	}
	if next == nil {
		return 0
	}
	return max(0, time.Until(*next))
}

// count adds the executions that have not ended to the counts of their states.
func (t *executionTable) count(counts map[core.State]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.byID {
		if state := *x.conversation.state.Load(); !state.Terminal() {
			counts[state]++
		}
	}
}
