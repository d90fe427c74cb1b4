package tests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestUnsignedPeerBodies sends bodies of 99 MB to a path that only servers use, without
// a signature: they are refused before they are read.
func TestUnsignedPeerBodies(t *testing.T) {
	t.Parallel()
	redis := redisAlone(t)
	if err := redis.start(); err != nil {
		t.Fatal(err)
	}
	s := serveAlone(t, processSetup(), settings{"REDIS_URL": redis.url()})
	before := s.resident(t)
	junk := strings.Repeat("x", 8<<20)
	for _, header := range []string{"", "X-Fermata-Signature: 1.2.3\r\n"} {
		for range 8 {
			conn := s.head(t, "POST /internal/resume HTTP/1.1\r\nHost: x\r\n"+header+"Content-Length: 99000000\r\n\r\n")
			go func() {
				_, _ = io.WriteString(conn, junk) // The server may have closed.
			}()
			if err := closes(conn, atOnce); err != nil {
				t.Error(err)
			}
		}
	}
	conn := s.head(t, "POST /internal/cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000\r\n\r\n")
	if status, body, err := answerOf(conn, atOnce); err != nil || status != 401 {
		t.Errorf("got %d %s %v, want 401", status, body, err)
	}
	if after := s.resident(t); after > before+100 {
		t.Errorf("bodies that nobody signed took the server from %d to %d MiB", before, after)
	}
}

// TestForgedAnnouncements has somebody who can write Redis say where a server is, who then
// answers as that server would.
func TestForgedAnnouncements(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"outcome":{"state":"paused","session":"abcdefghijklmnopqrstu","token":"t","calls":[{"id":"call_002","name":"ask","input":{"evil":1}}]}}`)
	}))
	defer impostor.Close()
	redis := redisAlone(t)
	if err := redis.start(); err != nil {
		t.Fatal(err)
	}
	var servers []*server
	for range 2 {
		servers = append(servers, launchAlone(t, setup{"process", with(with(common, quick(t)), settings{
			"REDIS_URL": redis.url(), "REDIS_SECRET": "a secret that encrypts the records",
		})}))
	}
	c := alices(servers)
	pause := c[0].pause(t, paused)
	if err := servers[0].kill(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ids, err := redis.client.SMembers(ctx, "fermata-servers").Result()
	if err != nil || len(ids) != 2 {
		t.Fatalf("Redis knows the servers %v (%v), want two", ids, err)
	}
	// The announcement of the other one is genuine, and not this one's.
	var genuine []string
	for _, id := range ids {
		text, err := redis.client.Get(ctx, "fermata-server:"+id).Result()
		if err != nil {
			t.Fatal(err)
		}
		genuine = append(genuine, text)
	}
	forge := func(text func(i int) string) {
		t.Helper()
		for i, id := range ids {
			if err := redis.client.Set(ctx, "fermata-server:"+id, text(i), time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range map[string]func(i int) string{
		"without a mac":        func(int) string { return impostor.URL },
		"with a mac of others": func(i int) string { return strings.Fields(genuine[1-i])[0] + " " + impostor.URL },
		"with its own mac":     func(i int) string { return strings.Fields(genuine[i])[0] + " " + impostor.URL },
	} {
		stop := make(chan struct{})
		forge(text)
		// The living one announces itself again and again; the forger does, too.
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-time.After(100 * time.Millisecond):
					for i, id := range ids {
						_ = redis.client.Set(context.WithoutCancel(ctx), "fermata-server:"+id, text(i), time.Minute).Err()
					}
				case <-stop:
					return
				}
			}
		}()
		a := c[1].post(t, pause.answers(echo))
		a.fails(t, 503, "The server that holds this execution is away; retry shortly")
		if n := asked.Load(); n != 0 {
			t.Errorf("%s: somebody else was asked %d times", name, n)
		}
		close(stop)
		<-done
	}
	if !strings.Contains(servers[1].log.all(), "is not signed with a secret of this group") {
		t.Errorf("the log does not tell:\n%s", servers[1].log.tail())
	}
	// The server itself is believed again when it is back.
	if err := servers[0].start(); err != nil {
		t.Fatal(err)
	}
	c = alices(servers)
	a, err := c[1].insist(t.Context(), nil, pause.answers(echo))
	if err != nil {
		t.Fatal(err)
	}
	a.completes(t, "{'n': 1}\n")
}

// TestPeerAddress has servers talk to each other over addresses of their own.
func TestPeerAddress(t *testing.T) {
	t.Parallel()
	redis := redisAlone(t)
	if err := redis.start(); err != nil {
		t.Fatal(err)
	}
	var servers []*server
	for range 2 {
		servers = append(servers, launchAlone(t, setup{"process", with(common, settings{"REDIS_URL": redis.url(), "PEER_ADDR": freeAddr(t)})}))
	}
	c := alices(servers)
	pause := c[0].pause(t, paused)
	body := fmt.Sprintf(`{"Principal":"alice","Token":%q,"Results":[{"CallID":"call_001","Value":7}],"Request":"r"}`, pause.Token)
	signed := http.Header{"X-Fermata-Signature": {forgery{signedPath: "/internal/resume", secret: secret}.sign(t, body)}}
	a, err := client{servers[0].url, ""}.request(t.Context(), http.MethodPost, "/internal/resume", signed, body)
	if err != nil || a.code != http.StatusNotFound {
		t.Errorf("the address of clients answers a server with %v %v, want 404", a, err)
	}
	a, err = client{"http://" + servers[0].settings["PEER_ADDR"], "key-a"}.send(t.Context(), program{Code: "print(1)"})
	if err != nil || a.code != http.StatusNotFound {
		t.Errorf("the address of servers answers a client with %v %v, want 404", a, err)
	}
	c[1].post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
}
