package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// A full Redis refuses writes that need more memory. Claims and pauses are more important than the journals of
// executions that have ended, so the oldest of these journals are removed to make room.
const (
	// roomAtOnce is how many bytes of journals are removed to make room for one write.
	roomAtOnce = 8 << 20
	// roomTries is how often a write is tried again after journals were removed.
	roomTries = 4
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
