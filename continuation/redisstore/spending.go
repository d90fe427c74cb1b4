package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// What a principal has spent on a day is beside its sums, which have the same hash tag:
//
//	…:spent:<group>   the sum, a number
//	…:marks:<group>   sorted set: the marks of the last changes, by their time
//
// The sum is neither encrypted nor signed, though records are. A script adds to it in Redis, which knows no
// secret, so that racing servers never exceed the bound. To write a signed sum, a server would have to read
// the sum first, and to try again until no other server has changed it meanwhile. And somebody who can write
// to Redis would gain as much by removing the sum, or by restoring an older one with its signature, as by
// changing it.
const (
	spentInfix = ":spent:"
	marksInfix = ":marks:"
)

// keptMarks is how many marks of changes a sum keeps. One principal makes fewer changes within the time in which
// the client library repeats a command.
const keptMarks = 1024

// spend adds to a sum unless the sum would exceed a bound. It returns the sum before and whether it was changed.
// The client library repeats a command that got no reply. A repeated command is recognized by its mark, and
// changes nothing. It works also if Redis is full: PERSIST needs no memory.
//
//	KEYS     sum, marks
//	ARGV[1]  the mark
//	ARGV[2]  what is added, negative to take it back
//	ARGV[3]  the bound, empty for none
//	ARGV[4]  the time to live in milliseconds
//	ARGV[5]  the time
//	ARGV[6]  the rank of the last mark that is dropped
var spend = redis.NewScript(`
local before = tonumber(redis.call('GET', KEYS[1]) or '0')
local added = tonumber(ARGV[2])
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then return {before - added, 1} end
if ARGV[3] ~= '' and before + added > tonumber(ARGV[3]) then return {before, 0} end
redis.call('PERSIST', KEYS[1])
redis.call('SET', KEYS[1], before + added, 'PX', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, ARGV[6])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {before, 1}
`)

// Spend implements continuation.Spendings.
func (s *Store) Spend(ctx context.Context, sp continuation.Spending, most int64) (before int64, ok bool, err error) {
	return s.changeSpent(ctx, sp, "spend "+sp.ID, sp.Cost, most)
}

// Refund implements continuation.Spendings.
func (s *Store) Refund(ctx context.Context, sp continuation.Spending) error {
	_, _, err := s.changeSpent(ctx, sp, "refund "+sp.ID, -sp.Cost, "")
	return err
}

func (s *Store) changeSpent(ctx context.Context, sp continuation.Spending, mark string, added int64, most any) (before int64, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	base, group, now := usageListKey(sp.Day), groupOf(sp.Principal), time.Now()
	ttl := max(time.Hour, sp.Day.End().AddDate(0, 0, 1).Sub(now))
	reply, err := spend.Run(ctx, s.client, []string{base + spentInfix + group, base + marksInfix + group},
		mark, added, most, stored.Millis(ttl), now.UnixMilli(), -keptMarks-1).Int64Slice()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("a reply of %d numbers", len(reply))
	}
	if err != nil {
		return 0, false, stored.Unavailable("count costs", err)
	}
	return reply[0], reply[1] == 1, nil
}
