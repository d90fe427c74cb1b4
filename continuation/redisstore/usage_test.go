//go:build linux

package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/redisstore"
)

// usedToday returns what a principal has used today.
func usedToday(t *testing.T, s *redisstore.Store, u continuation.Usage) (calls int64) {
	t.Helper()
	list, err := s.Usage(t.Context(), continuation.UsageQuery{Principal: u.Principal, Since: u.Day, Until: u.Day, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list {
		calls += u.Calls
	}
	return calls
}

// The client repeats a write whose reply was lost, but Redis adds the usage only once.
func TestUsageLostReply(t *testing.T) {
	server := startServer(t)
	proxy := startProxy(t, server.socket)
	s := open(t, "unix://"+proxy.socket)
	u := continuation.Usage{Day: continuation.DayOf(time.Now()), Principal: "ada", Toolset: "weather", Calls: 1}
	for i := range int64(8) {
		proxy.loseReply.Store(i%2 == 1)
		if err := s.AddUsage(t.Context(), []continuation.Usage{u}, time.Hour); err != nil {
			t.Fatalf("AddUsage = %v, want success", err)
		}
		if got := usedToday(t, s, u); got != i+1 {
			t.Fatalf("after %d calls %d are counted", i+1, got)
		}
	}
	// Now the reply to the write itself is lost, and not the reply to the read before it.
	proxy.loseWrite.Store(true)
	if err := s.AddUsage(t.Context(), []continuation.Usage{u}, time.Hour); err != nil {
		t.Fatalf("AddUsage = %v, want success", err)
	}
	if proxy.loseWrite.Load() {
		t.Fatal("no reply was lost, want one")
	}
	if got := usedToday(t, s, u); got != 9 {
		t.Errorf("after 9 calls %d are counted", got)
	}
}

// Redis learns neither who has used toolsets nor which.
func TestUsageIsEncrypted(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url(), redisstore.WithKey(secret(1)))
	u := continuation.Usage{Day: continuation.DayOf(time.Now()), Principal: "ada", Toolset: "weather", Calls: 1}
	if err := s.AddUsage(t.Context(), []continuation.Usage{u}, time.Hour); err != nil {
		t.Fatal(err)
	}
	keys := server.client.Keys(t.Context(), "fermata-usage:*").Val()
	if len(keys) != 2 {
		t.Fatalf("Redis has the keys %v, want a list and a value", keys)
	}
	for _, key := range keys {
		if ttl := server.client.TTL(t.Context(), key).Val(); ttl <= 0 || ttl > 25*time.Hour {
			t.Errorf("%s lives %v, want the rest of the day and an hour", key, ttl)
		}
		dump := server.client.Dump(t.Context(), key).Val()
		for _, hidden := range []string{"ada", "weather"} {
			if strings.Contains(dump, hidden) || strings.Contains(key, hidden) {
				t.Errorf("%s tells %q", key, hidden)
			}
		}
	}
	// A value of another day is refused.
	for _, key := range keys {
		if value, err := server.client.Get(t.Context(), key).Result(); err == nil {
			other := strings.Replace(key, string(u.Day), string(u.Day.Add(-1)), 1)
			if err := server.client.Set(t.Context(), other, value, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := s.Usage(t.Context(), continuation.UsageQuery{Principal: "ada", Since: u.Day.Add(-1), Until: u.Day, Limit: 10})
	wantUnavailable(t, "Usage with a value that was moved", err)
}
