//go:build linux

package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/redisstore"
	"fermata/continuation/storetest"
)

// Somebody who can write to Redis cannot forge, move or remove events of an encrypted journal unnoticed.
func TestForgedJournals(t *testing.T) {
	redis := startServer(t)
	s := open(t, redis.url(), redisstore.WithKey(secret(1)))
	a, b := storetest.NewAuthor(s, "ada"), storetest.NewAuthor(s, "bob")
	for range 4 {
		a.Write(t, 2)
		b.Write(t, 2)
	}
	name := func(x *storetest.Author) string { return "fermata:{" + x.Record.ID + "}:journal" }
	entry := func(x *storetest.Author, id string) string {
		list, err := redis.client.XRange(t.Context(), name(x), id, id).Result()
		if err != nil || len(list) != 1 {
			t.Fatalf("entry %s = %v, %v, want one", id, list, err)
		}
		return list[0].Values["c"].(string)
	}
	for what, change := range map[string]func(key string){
		"another's events": func(key string) { redis.client.XAdd(t.Context(), add(key, "8-2", entry(b, "8-2"))) },
		"earlier events":   func(key string) { redis.client.XAdd(t.Context(), add(key, "8-2", entry(a, "6-2"))) },
		"noise":            func(key string) { redis.client.XAdd(t.Context(), add(key, "8-2", "x")) },
		"a changed number": func(key string) { redis.client.XAdd(t.Context(), add(key, "9-2", entry(a, "8-2"))) },
	} {
		t.Run(what, func(t *testing.T) {
			kept := redis.client.Dump(t.Context(), name(a)).Val()
			defer redis.client.RestoreReplace(t.Context(), name(a), 0, kept)
			rest, err := redis.client.XRange(t.Context(), name(a), "-", "6-2").Result()
			if err != nil {
				t.Fatal(err)
			}
			forged := "forged"
			redis.client.Del(t.Context(), forged)
			for _, e := range rest {
				redis.client.XAdd(t.Context(), add(forged, e.ID, e.Values["c"].(string)))
			}
			change(forged)
			redis.client.Rename(t.Context(), forged, name(a))
			if events, err := s.Events(t.Context(), a.Record.ID, 0, 1<<20); !errors.Is(err, continuation.ErrUnavailable) {
				t.Errorf("Events = %d events, %v, want an error", len(events), err)
			}
		})
	}
	storetest.WantEvents(t, s, a.Record.ID, 1, 8)

	redis.client.XDel(t.Context(), name(a), "4-2")
	if events, err := s.Events(t.Context(), a.Record.ID, 0, 1<<20); !errors.Is(err, continuation.ErrUnavailable) || !strings.Contains(err.Error(), "events 3 to 4 are missing") {
		t.Errorf("Events of a journal from which somebody has removed some = %d events, %v, want an error", len(events), err)
	}
}

// In a failover Redis may lose chapters that it has confirmed. The execution can still continue.
func TestLostChapters(t *testing.T) {
	redis := startServer(t)
	s := open(t, redis.url())
	a := storetest.NewAuthor(s, "ada")
	a.Write(t, 2)
	a.Write(t, 2)
	redis.client.XDel(t.Context(), "fermata:{"+a.Record.ID+"}:journal", "4-2")
	a.Write(t, 2)
	a.End(t, time.Hour)
	events, err := s.Events(t.Context(), a.Record.ID, 2, 1<<20)
	if err != nil || len(events) != 3 || events[0].Seq != 5 {
		t.Errorf("Events after the second = %v, %v, want 5 to 7", events, err)
	}
}

// A start with the key of an earlier one begins a new journal, even if the journal keeps no events.
func TestAnewWithoutEvents(t *testing.T) {
	redis := startServer(t)
	s := open(t, redis.url())
	a := storetest.NewAuthor(s, "ada")
	a.Write(t, 3)
	if err := s.Delete(t.Context(), a.Record.ID); err != nil {
		t.Fatal(err)
	}
	b := storetest.NewAuthor(s, "ada")
	b.Record.ID = a.Record.ID
	b.Write(t, 0)
	if events, err := s.Events(t.Context(), b.Record.ID, 0, 1<<20); !errors.Is(err, continuation.ErrNotFound) {
		t.Errorf("Events = %v, %v, want none of the earlier journal", events, err)
	}
}

func add(key, id, value string) *client.XAddArgs {
	return &client.XAddArgs{Stream: key, ID: id, Values: []any{"c", value}}
}
