package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// chaptersAtOnce is how many chapters one command reads.
const chaptersAtOnce = 16

// Events implements continuation.Journals.
func (s *Store) Events(ctx context.Context, id string, after int64, size int) ([]continuation.Event, error) {
	page := stored.Page{After: after, Size: size}
	for next := after + 1; ; {
		chapters, found, err := s.chapters(ctx, id, next)
		switch {
		case err != nil:
			return nil, stored.Unavailable("read the journal of "+id, err)
		case !found:
			return nil, fmt.Errorf("read the journal of %s: %w", id, continuation.ErrNotFound)
		}
		for _, c := range chapters {
			if err := s.follows(c, next); err != nil {
				return nil, stored.Unavailable("read the journal of "+id, err)
			}
			more, err := page.Add(c.first, c.form)
			if err != nil {
				return nil, stored.Unavailable("read the journal of "+id, err)
			}
			if !more {
				return page.Events, nil
			}
			next = c.last + 1
		}
		if len(chapters) < chaptersAtOnce {
			return page.Events, nil
		}
	}
}

// follows returns an error if a chapter of an authenticated journal should have event next and does not. Then
// somebody has removed events, or Redis has lost them.
func (s *Store) follows(c chapter, next int64) error {
	if s.codec.kind() == kindSealed && c.first > max(next, 1) {
		return fmt.Errorf("events %d to %d are missing", next, c.first-1)
	}
	return nil
}

// A chapter is a chapter in stored form, with the numbers of its first and its last event.
type chapter struct {
	first, last int64
	form        []byte
}

// chapters returns some chapters, beginning with the one that has event next, and reports whether there is a
// journal.
func (s *Store) chapters(ctx context.Context, id string, next int64) (list []chapter, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var entries *redis.XMessageSliceCmd
	var exists *redis.IntCmd
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		entries = p.XRangeN(ctx, key(id)+journalSuffix, strconv.FormatInt(max(next, 0), 10), "+", chaptersAtOnce)
		exists = p.Exists(ctx, key(id)+journalSuffix)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	for _, entry := range entries.Val() {
		c, err := s.chapter(id, entry)
		if err != nil {
			return nil, false, fmt.Errorf("chapter %s: %w", entry.ID, err)
		}
		list = append(list, c)
	}
	return list, exists.Val() > 0, nil
}

// chapter decodes an entry of a stream.
func (s *Store) chapter(id string, entry redis.XMessage) (chapter, error) {
	last, count, _ := strings.Cut(entry.ID, "-")
	end, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return chapter{}, err
	}
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil {
		return chapter{}, err
	}
	value, _ := entry.Values["c"].(string)
	form, err := unwrap(s.codec, id+journalSuffix, []byte(value))
	if err != nil {
		return chapter{}, err
	}
	has, err := stored.Count(form)
	if err != nil {
		return chapter{}, err
	}
	// The ids are not encrypted, so they are compared with the place that was encrypted with the chapter.
	c := chapter{end - n + 1, end, form}
	if has != n || versionOf([]byte(value)) != c.first {
		return chapter{}, errors.New("it has been moved")
	}
	return c, nil
}

func (s *Store) encodeSummary(summary continuation.Summary) ([]byte, error) {
	form, err := stored.AppendSummary(nil, summary)
	if err != nil {
		return nil, err
	}
	value, err := wrap(s.codec, summary.ID+summarySuffix, 0, form)
	if err != nil {
		return nil, err
	}
	ended := byte('0')
	if summary.Ended {
		ended = '1'
	}
	return append([]byte{ended}, value...), nil
}

func (s *Store) decodeSummary(id string, value []byte) (continuation.Summary, error) {
	if len(value) == 0 {
		return continuation.Summary{}, errors.New("summary is cut off")
	}
	form, err := unwrap(s.codec, id+summarySuffix, value[1:])
	if err != nil {
		return continuation.Summary{}, err
	}
	return stored.DecodeSummary(form)
}

// Summary implements continuation.Journals.
func (s *Store) Summary(ctx context.Context, id string) (continuation.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	value, err := s.client.Get(ctx, key(id)+summarySuffix).Bytes()
	if errors.Is(err, redis.Nil) {
		return continuation.Summary{}, fmt.Errorf("get summary of %s: %w", id, continuation.ErrNotFound)
	}
	var summary continuation.Summary
	if err == nil {
		summary, err = s.decodeSummary(id, value)
	}
	if err != nil {
		return continuation.Summary{}, stored.Unavailable("get summary of "+id, err)
	}
	return summary, nil
}

// Summaries implements continuation.Journals.
func (s *Store) Summaries(ctx context.Context, principal string, everyone bool, after continuation.Place, limit int) ([]continuation.Summary, error) {
	group := groupOf(principal)
	if everyone {
		group = everyoneGroup
	}
	var list []continuation.Summary
	for from := after; len(list) < limit; {
		members, err := s.index.members(ctx, group, from, limit-len(list))
		if err != nil {
			return nil, stored.Unavailable("list summaries", err)
		}
		if list, err = s.appendSummaries(ctx, list, group, members); err != nil {
			return nil, stored.Unavailable("list summaries", err)
		}
		if len(members) == 0 {
			break
		}
		from = members[len(members)-1]
	}
	return list, nil
}

// appendSummaries appends the summaries of executions to list. It has the index drop executions that do not
// exist any more.
func (s *Store) appendSummaries(ctx context.Context, list []continuation.Summary, group string, members []continuation.Place) ([]continuation.Summary, error) {
	if len(members) == 0 {
		return list, nil
	}
	keys := make([]string, len(members))
	for i, m := range members {
		keys[i] = key(m.ID) + summarySuffix
	}
	err := s.getAll(ctx, keys, func(i int, value []byte, found bool) error {
		if !found {
			s.index.drop(group, members[i])
			return nil
		}
		summary, err := s.decodeSummary(members[i].ID, value)
		if err != nil {
			return fmt.Errorf("summary of %s: %w", members[i].ID, err)
		}
		list = append(list, summary)
		return nil
	})
	return list, err
}

// forget removes the journal and the summary of an execution that has ended. It returns 0 if the execution has
// not ended.
var forget = redis.NewScript(`
if redis.call('GETRANGE', KEYS[2], 0, 0) == '0' then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
return 1
`)

// Forget implements continuation.Journals.
func (s *Store) Forget(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return stored.Unavailable("forget "+id, err)
	}
	summary, err := s.Summary(ctx, id)
	if err != nil && !errors.Is(err, continuation.ErrNotFound) {
		return err
	}
	forgotten, runErr := forgetKeys(ctx, s.client, id)
	switch {
	case runErr != nil:
		return stored.Unavailable("forget "+id, runErr)
	case !forgotten:
		return fmt.Errorf("forget %s: it lives: %w", id, continuation.ErrConflict)
	case err == nil:
		s.index.forgotten(summary)
	}
	return nil
}

func forgetKeys(ctx context.Context, client redis.UniversalClient, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	k := key(id)
	return forget.Run(ctx, client, []string{k + journalSuffix, k + summarySuffix, k + sizeSuffix}).Bool()
}
