//go:build linux

package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/continuation"
)

func TestRegistry(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url())
	ctx := t.Context()
	for name, address := range map[string]string{"one": "http://1", "two": "http://2", "three": "http://3"} {
		if err := s.Announce(ctx, name, address, time.Minute); err != nil {
			t.Fatalf("Announce(%s) = %v, want success", name, err)
		}
	}
	if got, err := s.Locate(ctx, "two"); got != "http://2" || err != nil {
		t.Errorf("Locate(two) = %q, %v, want http://2", got, err)
	}
	if err := s.Withdraw(ctx, "two"); err != nil {
		t.Errorf("Withdraw = %v, want success", err)
	}
	// A server that dies does not withdraw its announcement, which expires by itself.
	if err := server.client.Del(ctx, "fermata-server:three").Err(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"two", "three", "never"} {
		if _, err := s.Locate(ctx, gone); !errors.Is(err, continuation.ErrNotFound) {
			t.Errorf("Locate(%s) = %v, want ErrNotFound", gone, err)
		}
	}
	for range 2 {
		got, err := s.Servers(ctx)
		if err != nil {
			t.Fatalf("Servers = %v, want success", err)
		}
		if diff := cmp.Diff(map[string]string{"one": "http://1"}, got); diff != "" {
			t.Errorf("Servers (-want +got):\n%s", diff)
		}
	}
	if ttl := server.client.TTL(ctx, "fermata-servers").Val(); ttl <= 0 {
		t.Errorf("the set of servers lives for %v, want an end", ttl)
	}
	server.kill()
	if _, err := s.Servers(ctx); !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("Servers without Redis = %v, want ErrUnavailable", err)
	}
}
