package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// A full Redis refuses writes that need more memory. Executions that are alive are more important than the journals
// of executions that have ended, so the oldest of these journals are removed to make room. Without such journals no
// execution may begin. Those that have begun go on, as do the leases of servers and the sums of costs: their scripts
// begin with a write that needs no memory, and Redis lets a script that has written something continue.
const (
	// roomLimit is how long a start waits to learn whether Redis is full.
	roomLimit = 250 * time.Millisecond
	// roomAtOnce is how many bytes of journals are removed to make room for one write.
	roomAtOnce = 8 << 20
	// roomTries is how often a write is tried again after journals were removed.
	roomTries = 4
	// roomSuffix ends the name of a key that never exists, in the slot of a record.
	roomSuffix = ":room"
)

// evict removes from a group the executions that have ended first, and returns their ids.
//
//	ARGV[1]  how many bytes of journals should be removed
var evict = redis.NewScript(remove + `
local gone, bytes = {}, 0
while bytes < tonumber(ARGV[1]) and #gone < 500 do
  local id = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if not id then break end
  bytes = bytes + remove(id)
  gone[#gone + 1] = id
end
return gone
`)

// full reports whether Redis has refused a command because it is full.
func full(err error) bool { return redis.HasErrorPrefix(err, "OOM") }

// withRoom calls write, which does nothing if Redis is full, and calls it again while old journals can make room.
func (s *Store) withRoom(ctx context.Context, write func() error) error {
	err := write()
	for try := 0; full(err) && try < roomTries; try++ {
		gone, roomErr := s.index.makeRoom(ctx)
		if roomErr != nil {
			s.log.Warn("Redis is full, and journals cannot make room", "err", roomErr)
		}
		if gone == 0 || roomErr != nil {
			return err
		}
		s.log.Warn("Redis is full; the oldest journals have made room", "journals", gone)
		err = write()
	}
	return err
}

// Room implements continuation.Store.
func (s *Store) Room(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	err := s.withRoom(ctx, func() error { return s.askRoom(ctx, id) })
	if full(err) {
		return stored.Unavailable("begin execution "+id, fmt.Errorf("%w: %w", continuation.ErrFull, err))
	}
	return nil
}

// askRoom sends a command that changes nothing and that a full Redis refuses. It waits for the answer no longer than
// roomLimit. The command goes on until then, since one that is cut off costs its connection, and a slow Redis would
// be asked for nothing but new ones.
func (s *Store) askRoom(ctx context.Context, id string) error {
	answer := make(chan error, 1)
	s.asking.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
		defer cancel()
		answer <- s.client.SetRange(ctx, key(id)+roomSuffix, 0, "").Err()
	})
	select {
	case err := <-answer:
		return err
	case <-time.After(roomLimit):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// makeRoom removes the oldest journals of executions that have ended, and returns how many.
func (x *index) makeRoom(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	gone, err := evict.Run(ctx, x.client, indexKeys(everyoneGroup), roomAtOnce).StringSlice()
	if err != nil {
		return 0, fmt.Errorf("make room: %w", err)
	}
	for _, id := range gone {
		// The group of its principal notices it when it lists the execution.
		if _, err := forgetKeys(ctx, x.client, id); err != nil {
			return 0, fmt.Errorf("make room: forget %s: %w", id, err)
		}
	}
	return len(gone), nil
}
