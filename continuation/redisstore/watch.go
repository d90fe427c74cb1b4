package redisstore

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"fermata/continuation/internal/stored"
)

// channelPrefix begins the name of the channel that tells of the journal of an execution.
const channelPrefix = "fermata-journal:"

func channel(id string) string { return channelPrefix + id }

// wakes hear of journals that have grown. All watches of a server share one connection, which is
// none of those that commands use. What comes over it is only a hint to read again.
type wakes struct {
	client   redis.UniversalClient
	watchers stored.Watchers
	// mu is held while the subscription changes. subscription is nil until the first watch.
	mu           sync.Mutex
	subscription *redis.PubSub
	hearing      sync.WaitGroup
}

func newWakes(client redis.UniversalClient) *wakes {
	w := &wakes{client: client}
	w.watchers.Changed = w.changed
	return w
}

// Watch implements continuation.Journals.
func (s *Store) Watch(ctx context.Context, id string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, stored.Unavailable("watch "+id, err)
	}
	return s.wakes.watchers.Watch(ctx, id), nil
}

// changed subscribes to the journal of an execution, or ends the subscription if nobody watches it
// any more. If the connection is lost, the library makes a new one and subscribes again.
func (w *wakes) changed(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	switch {
	case !w.watchers.Watched(id):
		if w.subscription != nil {
			_ = w.subscription.Unsubscribe(ctx, channel(id))
		}
	case w.subscription == nil:
		w.subscription = w.client.Subscribe(ctx, channel(id))
		heard := w.subscription.ChannelWithSubscriptions()
		w.hearing.Go(func() { w.hear(heard) })
	default:
		_ = w.subscription.Subscribe(ctx, channel(id))
	}
}

// hear wakes watchers until the subscription is closed. A new subscription wakes them too: what
// came before it was not heard.
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
	w.mu.Lock()
	if w.subscription != nil {
		_ = w.subscription.Close()
	}
	w.mu.Unlock()
	w.hearing.Wait()
}
