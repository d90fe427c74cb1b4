//go:build linux

package redisstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/redisstore"
	"fermata/continuation/storetest"
)

// patience is how long an operation may take to notice that Redis is not available: the two
// seconds that a command may take, and one more for a busy machine.
const patience = 3 * time.Second

// soon runs f and checks that it did not take long.
func soon(t *testing.T, what string, f func() error) error {
	t.Helper()
	began := time.Now()
	err := f()
	if took := time.Since(began); took > patience {
		t.Errorf("%s took %v, want at most %v", what, took, patience)
	}
	return err
}

// wantAllUnavailable checks that every method soon reports the outage.
func wantAllUnavailable(t *testing.T, s *redisstore.Store) {
	t.Helper()
	for what, f := range map[string]func() error{
		"Put":    func() error { return s.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{}) },
		"Get":    func() error { _, err := s.Get(t.Context(), "x"); return err },
		"List":   func() error { _, err := s.List(t.Context()); return err },
		"Delete": func() error { return s.Delete(t.Context(), "x") },
		"Ping":   func() error { return s.Ping(t.Context()) },
	} {
		wantUnavailable(t, what, soon(t, what, f))
	}
}

func TestServerIsKilledAndRestarted(t *testing.T) {
	server := startServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, server.url())
	r := storetest.NewRecord()
	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}

	server.kill()
	wantAllUnavailable(t, s)

	server.start(t)
	// The first operation after the restart must not fail: the client replaces the dead
	// connections of its pool and loads the script again.
	r.Version = 2
	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Errorf("Put after the restart = %v, want success", err)
	}
	if got, err := s.Get(t.Context(), r.ID); err != nil || got.Version != 2 {
		t.Errorf("Get after the restart = version %d, %v, want version 2", got.Version, err)
	}
}

// After a restart all the many connections of the pool are dead.
func TestRestartWithFullPool(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url())
	burst := func() (failed int64) {
		var count atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if err := s.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{}); err != nil {
					count.Add(1)
					t.Logf("Put = %v", err)
				}
			})
		}
		wg.Wait()
		return count.Load()
	}
	if failed := burst(); failed != 0 {
		t.Fatalf("%d of 64 Puts failed, want 0", failed)
	}
	server.kill()
	server.start(t)
	if failed := burst(); failed != 0 {
		t.Errorf("%d of 64 Puts failed after the restart, want 0", failed)
	}
}

func TestPausedServer(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url())
	if err := server.client.Do(t.Context(), "CLIENT", "PAUSE", 60_000, "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	err := soon(t, "Put", func() error { return s.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{}) })
	wantUnavailable(t, "Put", err)
	err = soon(t, "Get", func() error { _, err := s.Get(t.Context(), "x"); return err })
	wantUnavailable(t, "Get", err)
	err = soon(t, "Open", func() error { _, err := connect(t.Context(), server.url()); return err })
	wantUnavailable(t, "Open", err)
}

func TestFullServer(t *testing.T) {
	server := startServer(t, "--maxmemory-policy", "noeviction")
	s := open(t, server.url())
	r := storetest.NewRecord()
	if err := s.Put(t.Context(), r, ttl, begun(r)); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	if err := s.Room(t.Context(), "x"); err != nil {
		t.Errorf("Room = %v, want nil", err)
	}
	server.limit(t, "1")
	err := s.Room(t.Context(), "x")
	wantUnavailable(t, "Room in a full server", err)
	if !errors.Is(err, continuation.ErrFull) {
		t.Errorf("Room in a full server = %v, want ErrFull", err)
	}

	// What has begun goes on.
	r.Version, r.Events = 2, 2
	next := continuation.Chapter{First: 2, Events: []json.RawMessage{[]byte(`{"n":2}`)}}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s in a full server = %v, want success", what, err)
		}
	}
	must("Put of the next version", s.Put(t.Context(), r, ttl, next))
	r.Version = 3
	must("Put without events", s.Put(t.Context(), r, ttl, continuation.Chapter{}))
	must("Announce", s.Announce(t.Context(), "a", "http://a", ttl))
	must("Describe", s.Describe(t.Context(), "a", "text", ttl))
	today := continuation.DayOf(time.Now())
	_, _, err = s.Spend(t.Context(), continuation.Spending{ID: "1", Principal: "ada", Day: today, Cost: 1}, 10)
	must("Spend", err)
	must("AddUsage", s.AddUsage(t.Context(), []continuation.Usage{{Principal: "ada", Day: today, Toolset: "t"}}, 24*time.Hour))
	must("Delete", s.Delete(t.Context(), "x"))
	if servers, err := s.Servers(t.Context()); err != nil || servers["a"] != "http://a" {
		t.Errorf("Servers = %v, %v, want a", servers, err)
	}
	if got, err := s.Get(t.Context(), r.ID); err != nil || got.Version != 3 {
		t.Errorf("Get from a full server = version %d, %v, want version 3", got.Version, err)
	}
	if events, err := s.Events(t.Context(), r.ID, 0, 1000); err != nil || len(events) != 2 {
		t.Errorf("Events from a full server = %v, %v, want both", events, err)
	}

	server.limit(t, "0")
	must("Room when there is room again", s.Room(t.Context(), "x"))
	if keys := server.client.Keys(t.Context(), "*:room").Val(); len(keys) > 0 {
		t.Errorf("Room has left the keys %q", keys)
	}
}

// begun returns the first chapter of a journal.
func begun(r continuation.Record) continuation.Chapter {
	return continuation.Chapter{
		First: 1, Events: []json.RawMessage{[]byte(`{"n":1}`)},
		Summary: &continuation.Summary{ID: r.ID, Principal: r.Principal, Created: r.Created},
	}
}

// limit sets how much memory the server may have; 0 is no limit.
func (s *server) limit(tb testing.TB, bytes string) {
	tb.Helper()
	if err := s.client.ConfigSet(tb.Context(), "maxmemory", bytes).Err(); err != nil {
		tb.Fatal(err)
	}
}

func TestReadOnlyServer(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url())
	if err := server.client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, "Put to a replica", soon(t, "Put", func() error {
		return s.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{})
	}))
}

func TestPassword(t *testing.T) {
	server := startServer(t, "--requirepass", "hunter2")
	for _, user := range []string{"", ":wrong-password@", "nobody:hunter2@"} {
		url := "unix://" + user + server.socket
		_, err := connect(t.Context(), url)
		wantUnavailable(t, fmt.Sprintf("Open(%q)", url), err)
		if err != nil && strings.Contains(err.Error(), "wrong-password") {
			t.Errorf("Open = %v, want no password in it", err)
		}
	}
	s := open(t, "unix://:hunter2@"+server.socket)
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want success", err)
	}
}

func TestNoServer(t *testing.T) {
	for _, url := range []string{
		"unix://" + filepath.Join(t.TempDir(), "none"),
		"redis://127.0.0.1:1",
		"redis://192.0.2.1:6379", // an address that never answers
		"redis://127.0.0.1:1?cluster=true",
		"redis://127.0.0.1:1?master_name=m",
	} {
		err := soon(t, "Open", func() error { _, err := connect(t.Context(), url); return err })
		wantUnavailable(t, fmt.Sprintf("Open(%q)", url), err)
	}
}

// The client repeats a write whose reply was lost. If Redis has made that write, the
// repeated one must not be reported as a conflict.
func TestLostReply(t *testing.T) {
	server := startServer(t)
	proxy := startProxy(t, server.socket)
	s := open(t, "unix://"+proxy.socket)
	r := storetest.NewRecord()
	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil { // From now on Redis knows the script.
		t.Fatalf("Put = %v, want success", err)
	}

	for r.Version = 2; r.Version < 10; r.Version++ {
		proxy.loseReply.Store(true)
		if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
			t.Fatalf("Put whose first reply is lost = %v, want success", err)
		}
		if proxy.loseReply.Load() {
			t.Fatal("no reply was lost, want one")
		}
		if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); !errors.Is(err, continuation.ErrConflict) {
			t.Errorf("another Put of the same record = %v, want ErrConflict", err)
		}
	}
}

// A proxy is between a client and Redis, and can lose a reply.
type proxy struct {
	socket string
	// loseReply makes the proxy drop the next reply and close its connection.
	loseReply atomic.Bool
	// loseWrite makes it drop the next reply that consists of one number, such as that of a script.
	loseWrite atomic.Bool
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{socket: target + "-proxy"}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			redis, err := new(net.Dialer).DialContext(t.Context(), "unix", target)
			if err != nil {
				_ = client.Close()
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(redis, client)
				_ = redis.Close()
			})
			wg.Go(func() {
				p.replies(client, redis)
				_ = client.Close()
				_ = redis.Close()
			})
		}
	})
	t.Cleanup(wg.Wait) // after the Store's own cleanup, which ends the connections
	t.Cleanup(func() { _ = listener.Close() })
	return p
}

func (p *proxy) replies(client, redis net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := redis.Read(buf)
		if err != nil || p.loseReply.CompareAndSwap(true, false) {
			return
		}
		if buf[0] == ':' && p.loseWrite.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
