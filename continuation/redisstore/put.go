package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// The keys of an execution are in one slot of a Cluster. Beside the record there are
//
//	…:journal  a stream with an entry for each chapter. The id of an entry is the number of the
//	           chapter's last event, and the number of its events.
//	…:summary  "1" if the execution has ended, otherwise "0", and then the summary
//	…:size     the size of the journal in bytes
const (
	journalSuffix = ":journal"
	summarySuffix = ":summary"
	sizeSuffix    = ":size"
)

// put writes a value if its version follows the stored one, and a chapter of the journal, in one
// step.
//
//	KEYS     record, journal, summary, size
//	ARGV[1]  the version that must be stored, encoded as in a value; empty for none
//	ARGV[2]  the value
//	ARGV[3]  its time to live in milliseconds
//	ARGV[4]  the number of the chapter's first event, 0 if it has no events
//	ARGV[5]  the id of its entry
//	ARGV[6]  its events
//	ARGV[7]  the summary, empty if it stays as it is
//	ARGV[8]  how long journal and summary live, in milliseconds; 0 for as long as the execution
//	ARGV[9]  how much longer than the record they live, in milliseconds, while the execution does
//	ARGV[10] the channel of the journal
//	ARGV[11] 1 if the write may go past the limit of Redis' memory
//
// The first command that writes decides whether a full Redis lets the script write: SETRANGE with an empty text
// changes nothing, and is refused; PERSIST needs no memory, and after it nothing is refused.
//
// The first version of a record begins a new journal if its chapter has the journal's first event, or a summary
// and no events. There may be a gap before a chapter, since Redis can lose confirmed writes in a failover. If
// the user of Redis may not publish, there is no message about new events, and readers see them later.
//
// It returns how large the journal is now, even if all was stored before: the client library
// repeats a command that got no reply. The nonce in the head tells a repeated write from another
// write with the same content. It returns -1 if nothing was written, and -2 - n if nothing was
// written because the journal, whose record is gone, has n events already.
var put = redis.NewScript(`
local head = redis.call('GETRANGE', KEYS[1], 0, ` + headEnd + `)
local function size() return tonumber(redis.call('GET', KEYS[4]) or 0) end
if head == string.sub(ARGV[2], 1, #head) and head ~= '' then return size() end
if string.sub(head, 2, 9) ~= ARGV[1] then return -1 end
local ended = redis.call('GETRANGE', KEYS[3], 0, 0) == '1'
local first = tonumber(ARGV[4])
local function begin()
  if ARGV[11] == '1' then redis.call('PERSIST', KEYS[1]) else redis.call('SETRANGE', KEYS[1], 0, '') end
end
if first > 0 then
  local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
  local n = 0
  if last[1] then n = tonumber(string.match(last[1][1], '^%d+')) end
  if ARGV[1] == '' and first == 1 then
    begin()
    redis.call('DEL', KEYS[2], KEYS[4])
    ended = false
  elseif ended then return -1
  elseif first <= n then
    if ARGV[1] ~= '' then return -1 end
    return -2 - n
  else begin()
  end
  redis.call('XADD', KEYS[2], ARGV[5], 'c', ARGV[6])
  redis.call('INCRBY', KEYS[4], #ARGV[6])
else
  begin()
  if ARGV[1] == '' and ARGV[7] ~= '' then redis.call('DEL', KEYS[2], KEYS[4]) end
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if ARGV[7] ~= '' then
  redis.call('SET', KEYS[3], ARGV[7])
  ended = string.sub(ARGV[7], 1, 1) == '1'
end
local life = tonumber(ARGV[8])
if life == 0 and not ended then life = tonumber(ARGV[3]) + tonumber(ARGV[9]) end
if life > 0 then
  for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], life) end
end
if first > 0 then redis.pcall('PUBLISH', ARGV[10], ARGV[4]) end
return size()
`)

// sequelError means that a chapter repeats events that the journal has.
type sequelError struct{ has int64 }

func (e sequelError) Error() string { return fmt.Sprintf("the journal has %d events already", e.has) }

// Put implements continuation.Store. In a Redis that is full, and has no old journals that could make room, it writes
// past the limit: what an execution that has begun adds is little, and is removed when the execution has ended.
func (s *Store) Put(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
	var size int64
	write := func(past bool) (err error) {
		size, err = s.follow(ctx, r, ttl, c, past)
		return err
	}
	err := s.withRoom(ctx, func() error { return write(false) })
	if full(err) {
		err = write(true)
	}
	switch {
	case errors.Is(err, continuation.ErrConflict):
		return fmt.Errorf("put record %s, version %d: %w", r.ID, r.Version, err)
	case err != nil:
		return stored.Unavailable("put record "+r.ID, err)
	}
	s.index.note(r, c, size)
	return nil
}

// follow is like put, for a chapter of which the journal may have a part already. This happens if the record
// does not exist any more, since then the last event of the journal is not known.
func (s *Store) follow(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter, past bool) (size int64, err error) {
	size, err = s.put(ctx, r, ttl, c, past)
	if sequel, ok := errors.AsType[sequelError](err); ok {
		known := min(sequel.has-c.First+1, int64(len(c.Events)))
		c.First, c.Events = c.First+known, c.Events[known:]
		size, err = s.put(ctx, r, ttl, c, past)
	}
	return size, err
}

// put writes a record and a chapter, past the limit of Redis' memory if past is true, and returns the size of
// the journal.
func (s *Store) put(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter, past bool) (size int64, err error) {
	value, err := encode(s.codec, r)
	if err != nil {
		return 0, err
	}
	var before, events, summary []byte
	if r.Version != 1 {
		before = binary.BigEndian.AppendUint64(nil, uint64(r.Version-1))
	}
	first, last := int64(0), c.First+int64(len(c.Events))-1
	if len(c.Events) > 0 {
		first = c.First
		form, err := stored.AppendChapter(make([]byte, 0, stored.ChapterLen(c.Events)), c.Events)
		if err != nil {
			return 0, err
		}
		if events, err = wrap(s.codec, r.ID+journalSuffix, first, form); err != nil {
			return 0, err
		}
	}
	if c.Summary != nil {
		if summary, err = s.encodeSummary(*c.Summary); err != nil {
			return 0, err
		}
	}
	life := int64(0)
	if c.Life > 0 {
		life = stored.Millis(c.Life)
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	k := key(r.ID)
	size, err = put.Run(ctx, s.client, []string{k, k + journalSuffix, k + summarySuffix, k + sizeSuffix},
		before, value, stored.Millis(ttl), first, strconv.FormatInt(last, 10)+"-"+strconv.Itoa(len(c.Events)), events,
		summary, life, stored.Millis(continuation.JournalSlack), channel(r.ID), past).Int64()
	switch {
	case err != nil:
		return 0, err
	case size == -1:
		return 0, continuation.ErrConflict
	case size < 0:
		return 0, sequelError{-2 - size}
	}
	return size, nil
}
