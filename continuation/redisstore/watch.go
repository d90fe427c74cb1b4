package redisstore

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"fermata/continuation/internal/stored"
)

// channelPrefix begins the name of the channel that signals when the journal of an execution has grown.
const channelPrefix = "fermata-journal:"

func channel(id string) string { return channelPrefix + id }

// wakes receives signals about journals that have grown. All watches of a server share one connection, which is
// not used for commands. A signal is only a hint to read again.
type wakes struct {
	client   redis.UniversalClient
	watchers stored.Watchers

	mu sync.Mutex
	// changed are the executions that have got their first watcher or lost their last one.
	changed map[string]bool
	// noted has room for one signal that there is something in changed.
	noted   chan struct{}
	stop    context.CancelFunc
	working sync.WaitGroup
}

func newWakes(client redis.UniversalClient) *wakes {
	ctx, cancel := context.WithCancel(context.Background())
	w := &wakes{client: client, changed: map[string]bool{}, noted: make(chan struct{}, 1), stop: cancel}
	w.watchers.Changed = w.note
	w.working.Go(func() { w.subscribe(ctx) })
	return w
}

// Watch implements continuation.Journals.
func (s *Store) Watch(ctx context.Context, id string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, stored.Unavailable("watch "+id, err)
	}
	return s.wakes.watchers.Watch(ctx, id), nil
}

// note notes that an execution has got its first watcher, or has lost its last one.
func (w *wakes) note(id string) {
	w.mu.Lock()
	w.changed[id] = true
	w.mu.Unlock()
	select {
	case w.noted <- struct{}{}:
	default: // There is a signal that was not received yet.
	}
}

// subscribe keeps the subscription to the journals that are watched, until ctx ends.
func (w *wakes) subscribe(ctx context.Context) {
	var subscription *redis.PubSub
	defer func() {
		if subscription != nil {
			_ = subscription.Close()
		}
	}()
	for {
		select {
		case <-w.noted:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		changed := w.changed
		w.changed = map[string]bool{}
		w.mu.Unlock()
		var more, fewer []string
		for id := range changed {
			if w.watchers.Watched(id) {
				more = append(more, channel(id))
			} else {
				fewer = append(fewer, channel(id))
			}
		}
		if subscription == nil {
			subscription = w.client.Subscribe(ctx)
			heard := subscription.ChannelWithSubscriptions()
			w.working.Go(func() { w.hear(heard) })
		}
		w.change(ctx, subscription.Subscribe, more)
		w.change(ctx, subscription.Unsubscribe, fewer)
	}
}

// change changes the subscription. If the connection is lost, it fails, and the library makes a new connection
// with the changed subscription.
func (w *wakes) change(ctx context.Context, do func(context.Context, ...string) error, channels []string) {
	if len(channels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	_ = do(ctx, channels...)
}

// hear wakes watchers until the subscription is closed. It also wakes them when a subscription begins, since the
// signals before it were not received.
func (w *wakes) hear(heard <-chan any) {
	for message := range heard {
		var name string
		switch message := message.(type) {
		case *redis.Message:
			name = message.Channel
		case *redis.Subscription:
			name = message.Channel
		}
		if id, ok := strings.CutPrefix(name, channelPrefix); ok {
			w.watchers.Wake(id)
		}
	}
}

func (w *wakes) close() {
	w.stop()
	w.working.Wait()
}
