package stored

import (
	"context"
	"sync"
)

// Watchers keeps the channels of readers that wait for journals to grow. The zero value is ready to use.
type Watchers struct {
	// Changed, if it is set, is called when the first watcher of an execution comes and when the last one has
	// left.
	Changed func(id string)

	mu   sync.Mutex
	byID map[string]map[chan struct{}]struct{}
}

// Watch returns a channel that receives after Wake, until ctx ends. Then the channel is closed.
func (w *Watchers) Watch(ctx context.Context, id string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	if w.byID == nil {
		w.byID = make(map[string]map[chan struct{}]struct{})
	}
	first := w.byID[id] == nil
	if first {
		w.byID[id] = make(map[chan struct{}]struct{})
	}
	w.byID[id][ch] = struct{}{}
	w.mu.Unlock()
	w.changed(first, id)
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		delete(w.byID[id], ch)
		last := len(w.byID[id]) == 0
		if last {
			delete(w.byID, id)
		}
		close(ch) // Wake sends only while mu is held.
		w.mu.Unlock()
		w.changed(last, id)
	})
	return ch
}

func (w *Watchers) changed(yes bool, id string) {
	if yes && w.Changed != nil {
		w.Changed(id)
	}
}

// Watched reports whether anybody watches the execution.
func (w *Watchers) Watched(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byID[id] != nil
}

// Wake signals all watchers of the execution.
func (w *Watchers) Wake(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wake(w.byID[id])
}

func wake(channels map[chan struct{}]struct{}) {
	for ch := range channels {
		select {
		case ch <- struct{}{}:
		default: // There is a signal that was not received yet.
		}
	}
}
