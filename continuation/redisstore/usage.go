package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// The sums of a day have one hash tag:
//
//	…           sorted set: the groups of principals who have used something on that day
//	…:<group>   what one of them has used, in the form of a value, with a version and encryption
const usagePrefix = "fermata-usage:{"

func usageListKey(day continuation.Day) string { return usagePrefix + string(day) + "}" }

// usageName is the key of a value, and the name by which it is authenticated.
func usageName(day continuation.Day, group string) string {
	return usageListKey(day) + ":" + group
}

// tally writes a value of sums if its version follows the stored one, also if Redis is full: PERSIST needs no memory.
//
//	KEYS     value, list of the day
//	ARGV[1]  the version that must be stored, encoded as in a value; empty for none
//	ARGV[2]  the value
//	ARGV[3]  its time to live in milliseconds
//	ARGV[4]  the group
var tally = redis.NewScript(`
if redis.call('GETRANGE', KEYS[1], 1, 8) ~= ARGV[1] then return 0 end
redis.call('PERSIST', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[4])
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), ARGV[3]))
return 1
`)

// usagePause limits the pause before a write of sums is tried again because another write came first. The pause
// grows with the number of tries.
const usagePause = time.Millisecond

// AddUsage implements continuation.Usages. Old sums expire in Redis.
func (s *Store) AddUsage(ctx context.Context, add []continuation.Usage, life time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var errs []error
	for _, group := range stored.GroupUsages(add) {
		if ttl := time.Until(group[0].Day.End().Add(life)); ttl > 0 {
			errs = append(errs, s.addUsages(ctx, group, ttl))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return stored.Unavailable("add usage", err)
	}
	return nil
}

// addUsages adds to the sums of one principal on one day. The client library repeats a command that got no
// reply, so a write may have taken effect although the script reports a conflict. The mark of the write in the
// stored value shows whether it has.
func (s *Store) addUsages(ctx context.Context, add []continuation.Usage, ttl time.Duration) error {
	day, group, mark := add[0].Day, groupOf(add[0].Principal), rand.Text()
	name := usageName(day, group)
	for tries := int64(1); ; tries++ {
		value, err := s.client.Get(ctx, name).Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		sums, version, err := s.decodeTally(name, value)
		if err != nil || sums.Has(mark) {
			return err
		}
		var before []byte
		if version > 0 {
			before = binary.BigEndian.AppendUint64(nil, uint64(version))
		}
		sums.Add(add)
		sums.Mark(mark)
		form, err := sums.Encode()
		if err != nil {
			return err
		}
		if value, err = wrap(s.codec, name, version+1, form); err != nil {
			return err
		}
		written, err := tally.Run(ctx, s.client, []string{name, usageListKey(day)}, before, value, stored.Millis(ttl), group).Bool()
		if err != nil || written {
			return err
		}
		select {
		case <-time.After(mathrand.N(usagePause * time.Duration(min(tries, 64)))): //nolint:gosec // no secret
		case <-ctx.Done():
			return fmt.Errorf("%s: others write it all the time: %w", name, continuation.ErrConflict)
		}
	}
}

// decodeTally returns the sums in a value, which is empty if there are none yet, and its version.
func (s *Store) decodeTally(name string, value []byte) (t stored.Tally, version int64, err error) {
	if len(value) == 0 {
		return t, 0, nil
	}
	form, err := unwrap(s.codec, name, value)
	if err != nil {
		return t, 0, fmt.Errorf("%s: %w", name, err)
	}
	t, err = stored.DecodeTally(form)
	return t, versionOf(value), err
}

// Usage implements continuation.Usages.
func (s *Store) Usage(ctx context.Context, q continuation.UsageQuery) ([]continuation.Usage, error) {
	until := q.Until
	if q.After.Day != "" {
		until = min(until, q.After.Day)
	}
	list, err := []continuation.Usage(nil), error(nil)
	for day := until; day >= q.Since && len(list) < q.Limit; {
		if q.Everyone {
			list, err = s.appendEveryone(ctx, list, day, q)
			day = day.Add(-1)
		} else {
			var places []tallyPlace
			for ; day >= q.Since && len(places) < listPage; day = day.Add(-1) {
				places = append(places, tallyPlace{day, groupOf(q.Principal)})
			}
			list, err = s.appendUsages(ctx, list, places, q.After)
		}
		if err != nil {
			return nil, stored.Unavailable("read usage", err)
		}
	}
	return list[:min(len(list), q.Limit)], nil
}

// appendEveryone appends the sums of all principals on a day, until q.Limit is reached.
func (s *Store) appendEveryone(ctx context.Context, list []continuation.Usage, day continuation.Day, q continuation.UsageQuery) ([]continuation.Usage, error) {
	from := "-"
	if q.After.Day == day {
		from = "[" + groupOf(q.After.Principal)
	}
	for len(list) < q.Limit {
		groups, err := s.usageGroups(ctx, day, from)
		if err != nil || len(groups) == 0 {
			return list, err
		}
		places := make([]tallyPlace, len(groups))
		for i, group := range groups {
			places[i] = tallyPlace{day, group}
		}
		if list, err = s.appendUsages(ctx, list, places, q.After); err != nil {
			return nil, err
		}
		from = "(" + groups[len(groups)-1]
	}
	return list, nil
}

func (s *Store) usageGroups(ctx context.Context, day continuation.Day, from string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	return s.client.ZRangeByLex(ctx, usageListKey(day), &redis.ZRangeBy{Min: from, Max: "+", Count: listPage}).Result()
}

// A tallyPlace names the sums of a principal on a day.
type tallyPlace struct {
	day   continuation.Day
	group string
}

// appendUsages appends the sums at places, except those that do not come after the sum after.
func (s *Store) appendUsages(ctx context.Context, list []continuation.Usage, places []tallyPlace, after continuation.Usage) ([]continuation.Usage, error) {
	names := make([]string, len(places))
	for i, place := range places {
		names[i] = usageName(place.day, place.group)
	}
	last := tallyPlace{after.Day, groupOf(after.Principal)}
	err := s.getAll(ctx, names, func(i int, value []byte, found bool) error {
		if !found {
			return nil
		}
		sums, _, err := s.decodeTally(names[i], value)
		if err != nil {
			return err
		}
		toolset := ""
		if places[i] == last {
			toolset = after.Toolset
		}
		list = append(list, sums.Usages(places[i].day, toolset)...)
		return nil
	})
	return list, err
}
