package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// The index lists executions, by principal and all together, and counts the bytes of their
// journals. In a Cluster it is on other nodes than the executions, so it is written separately, shortly after
// the record. If a server dies in between, the execution is listed, and its journal counts, only when another
// server continues the execution or the execution ends.
//
// The keys of a group, which is a principal or everyone, have one hash tag:
//
//	…:list   sorted set: when an execution began, in milliseconds as 12 hexadecimal digits, and its id
//	…:until  sorted set: the ids of executions, by the latest time at which their journal expires
//	…:ended  sorted set: the ids of executions that have ended, by when they did
//	…:bytes  hash: for each id, the bytes for which the journal counts, and the name in the list
//	…:total  the sum of these bytes
const (
	indexPrefix   = "fermata-index:{"
	everyoneGroup = "everyone"
)

// groupOf returns the group of a principal. Its name is a hash, which does not reveal the principal.
func groupOf(principal string) string {
	sum := sha256.Sum256([]byte("fermata principal " + principal))
	return hex.EncodeToString(sum[:16])
}

func indexKeys(group string) []string {
	base := indexPrefix + group + "}:"
	return []string{base + "list", base + "until", base + "ended", base + "bytes", base + "total"}
}

// memberOf returns the name of an execution in a list.
func memberOf(created time.Time, id string) string {
	return fmt.Sprintf("%012x", stored.CreatedMillis(created)) + id
}

// placeOf is the inverse of memberOf.
func placeOf(member string) (continuation.Place, error) {
	if len(member) < 12 {
		return continuation.Place{}, fmt.Errorf("member %q of the list of executions is cut off", member)
	}
	ms, err := strconv.ParseInt(member[:12], 16, 64)
	return continuation.Place{Created: time.UnixMilli(ms).UTC(), ID: member[12:]}, err
}

// remove is the first part of the scripts of the index. It is a function that removes an execution from a group
// and returns for how many bytes it counted. Its first command needs no memory, so that it works even if Redis
// is full: Redis lets a script that has written something continue.
const remove = `
local function remove(id)
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[2], id)
  local entry = redis.call('HGET', KEYS[4], id)
  if not entry then return 0 end
  local bytes, member = string.match(entry, '^(%d+) (.*)$')
  redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[1], member)
  redis.call('DECRBY', KEYS[5], bytes)
  return tonumber(bytes)
end
`

// enter notes an execution in a group, and drops expired ones. It returns the ids of the executions whose
// journals must be removed because the group has too many bytes.
//
//	ARGV[1]  the name in the list   ARGV[2]  the id        ARGV[3]  the bytes for which it counts
//	ARGV[4]  now                    ARGV[5]  when its journal is over
//	ARGV[6]  1 if it has ended      ARGV[7]  the most bytes of the group, 0 for no limit
var enter = redis.NewScript(remove + `
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[4], 'LIMIT', 0, 100)) do remove(id) end
if ARGV[6] == '0' and redis.call('ZSCORE', KEYS[3], ARGV[2]) then return {} end
remove(ARGV[2])
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[2])
if ARGV[6] == '1' then redis.call('ZADD', KEYS[3], ARGV[4], ARGV[2]) end
redis.call('HSET', KEYS[4], ARGV[2], ARGV[3] .. ' ' .. ARGV[1])
local total = redis.call('INCRBY', KEYS[5], ARGV[3])
local gone = {}
local most = tonumber(ARGV[7])
while most > 0 and total > most and #gone < 100 do
  local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if not oldest then break end
  remove(oldest)
  gone[#gone + 1] = oldest
  total = tonumber(redis.call('GET', KEYS[5]))
end
for i = 1, 5 do redis.call('PEXPIRE', KEYS[i], math.max(redis.call('PTTL', KEYS[i]), ARGV[5] - ARGV[4])) end
return gone
`)

// leave removes an execution from a group.
//
//	ARGV[1]  the name in the list  ARGV[2]  the id
var leave = redis.NewScript(remove + `
remove(ARGV[2])
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
`)

const (
	// indexQueue is how many entries may wait for the index. If there are more, the oldest one is lost, as in
	// a crash.
	indexQueue = 1 << 14
	// indexRetry is the time between two attempts to write an entry while Redis is not available.
	indexRetry = time.Second
	// notedGrowth is by how many bytes the journal of a live execution must grow until the index is updated.
	notedGrowth = 64 << 10
	// liveLife is how long the index keeps an execution without an update.
	liveLife = 24 * time.Hour
)

// An entry is an update of the index about one execution: how large its journal is, or that it was removed.
type entry struct {
	principal, id string
	created       time.Time
	size          int64
	life          time.Duration // 0 for an execution that lives
	gone          bool
	group         string // the only group that must be updated, or empty for all
}

// An index writes entries in the background, in their order.
type index struct {
	client redis.UniversalClient
	limits continuation.JournalLimits
	log    *slog.Logger

	mu    sync.Mutex
	queue []entry
	// noted has the sizes that the index has for the large journals of live executions.
	noted map[string]int64
	// fed has room for one signal that there is something in the queue.
	fed     chan struct{}
	stop    context.CancelFunc
	working sync.WaitGroup
}

func newIndex(client redis.UniversalClient, limits continuation.JournalLimits, log *slog.Logger) *index {
	ctx, cancel := context.WithCancel(context.Background())
	x := &index{client: client, limits: limits, log: log, noted: map[string]int64{}, fed: make(chan struct{}, 1), stop: cancel}
	x.working.Go(func() { x.work(ctx) })
	return x
}

// note takes a write to an execution into account, whose journal has size bytes now. A large journal of a live
// execution counts for the size that it may reach before the next update, so that the journals never have more
// bytes together than they count for.
func (x *index) note(r continuation.Record, c continuation.Chapter, size int64) {
	x.mu.Lock()
	grown := size-x.noted[r.ID] >= notedGrowth
	switch {
	case c.Life > 0:
		delete(x.noted, r.ID)
	case grown && len(x.noted) < indexQueue:
		x.noted[r.ID] = size
	}
	if noted := x.noted[r.ID]; noted > 0 {
		size = noted + notedGrowth
	}
	x.mu.Unlock()
	if c.Summary != nil || c.Life > 0 || grown {
		x.feed(entry{principal: r.Principal, id: r.ID, created: r.Created, size: size, life: c.Life})
	}
}

// forgotten takes into account that an execution was forgotten.
func (x *index) forgotten(s continuation.Summary) {
	x.feed(entry{principal: s.Principal, id: s.ID, created: s.Created, gone: true})
}

// drop removes the place of an execution that does not exist any more from one group.
func (x *index) drop(group string, p continuation.Place) {
	x.feed(entry{id: p.ID, created: p.Created, gone: true, group: group})
}

func (x *index) feed(e entry) {
	x.mu.Lock()
	if len(x.queue) >= indexQueue {
		x.queue = x.queue[1:]
	}
	x.queue = append(x.queue, e)
	x.mu.Unlock()
	select {
	case x.fed <- struct{}{}:
	default: // There is a signal that was not received yet.
	}
}

// work writes the entries of the queue until ctx ends.
func (x *index) work(ctx context.Context) {
	for {
		select {
		case <-x.fed:
		case <-ctx.Done():
			return
		}
		for e, ok := x.next(); ok; e, ok = x.next() {
			if !x.write(ctx, e) {
				return
			}
		}
	}
}

func (x *index) next() (entry, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queue) == 0 {
		return entry{}, false
	}
	e := x.queue[0]
	x.queue[0], x.queue = entry{}, x.queue[1:]
	return e, true
}

// write writes an entry to its groups, and tries again until that succeeds. It reports false if ctx
// has ended.
func (x *index) write(ctx context.Context, e entry) bool {
	groups := map[string]int64{groupOf(e.principal): x.limits.Principal, everyoneGroup: x.limits.All}
	if e.group != "" {
		groups = map[string]int64{e.group: 0}
	}
	for group, most := range groups {
		for told := false; ; told = true {
			err := x.tell(ctx, group, most, e)
			if err == nil {
				break
			}
			if !told && ctx.Err() == nil {
				x.log.Warn("cannot write the list of executions; it is tried again", "execution", e.id, "err", err)
			}
			select {
			case <-time.After(indexRetry):
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

// tell makes one attempt to write an entry to a group.
func (x *index) tell(ctx context.Context, group string, most int64, e entry) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if e.gone {
		return leave.Run(ctx, x.client, indexKeys(group), memberOf(e.created, e.id), e.id).Err()
	}
	now, life, ended := time.Now(), liveLife, 0
	if e.life > 0 {
		life, ended = e.life, 1
	}
	gone, err := enter.Run(ctx, x.client, indexKeys(group), memberOf(e.created, e.id), e.id, stored.Counts(e.size),
		now.UnixMilli(), stored.LifeEnd(now, life), ended, most).StringSlice()
	if err != nil {
		return err
	}
	for _, id := range gone {
		// The other groups notice it when they list the execution.
		if _, err := forgetKeys(ctx, x.client, id); err != nil {
			return err
		}
	}
	return nil
}

// members returns up to n places after one in the list of a group.
func (x *index) members(ctx context.Context, group string, after continuation.Place, n int) ([]continuation.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	from := "+"
	if after != (continuation.Place{}) {
		from = "(" + memberOf(after.Created, after.ID)
	}
	names, err := x.client.ZRevRangeByLex(ctx, indexKeys(group)[0], &redis.ZRangeBy{Min: "-", Max: from, Count: int64(n)}).Result()
	if err != nil {
		return nil, err
	}
	places := make([]continuation.Place, len(names))
	for i, name := range names {
		if places[i], err = placeOf(name); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// close stops the index. Entries that are not written yet are lost.
func (x *index) close() {
	x.stop()
	x.working.Wait()
}
