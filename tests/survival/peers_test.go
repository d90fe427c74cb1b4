package survival

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestUnsignedPeerBodies sends bodies of 99 MB without a signature to a path that only servers use:
// the server refuses them before it reads them.
func TestUnsignedPeerBodies(t *testing.T) {
	t.Parallel()
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"REDIS_URL": redis.URL()})
	before := s.ResidentMiB(t)
	junk := strings.Repeat("x", 8<<20)
	for _, header := range []string{"", "X-Fermata-Signature: 1.2.3\r\n"} {
		for range 8 {
			conn := s.SendRaw(t, "POST /internal/resume HTTP/1.1\r\nHost: x\r\n"+header+"Content-Length: 99000000\r\n\r\n")
			go func() {
				_, _ = io.WriteString(conn, junk) // The server may have closed the connection.
			}()
			if err := harness.AwaitClose(conn, harness.AtOnce); err != nil {
				t.Error(err)
			}
		}
	}
	conn := s.SendRaw(t, "POST /internal/cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000\r\n\r\n")
	if status, body, err := harness.ReadAnswer(conn, harness.AtOnce); err != nil || status != 401 {
		t.Errorf("got %d %s %v, want 401", status, body, err)
	}
	if after := s.ResidentMiB(t); after > before+100 {
		t.Errorf("bodies that nobody signed took the server from %d to %d MiB", before, after)
	}
}

// TestForgedAnnouncements writes false addresses of servers to Redis. An impostor listens there and
// answers as a server would; no server may ask it.
func TestForgedAnnouncements(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"outcome":{"state":"paused","session":"abcdefghijklmnopqrstu","token":"t","calls":[{"id":"call_002","name":"ask","input":{"evil":1}}]}}`)
	}))
	defer impostor.Close()
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	bucket := harness.Bucket(t)
	var servers []*harness.Server
	for range 2 {
		servers = append(servers, harness.LaunchAlone(t, harness.Setup{Name: "process", Settings: harness.With(harness.Common, harness.Quick(t), harness.Settings{
			"REDIS_URL": redis.URL(), "FILES_URL": bucket, "REDIS_SECRET": "a secret that encrypts the records",
		})}))
	}
	c := harness.Alices(servers)
	pause := c[0].Pause(t, harness.AskOnce)
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ids, err := redis.Client.SMembers(ctx, "fermata-servers").Result()
	if err != nil || len(ids) != 2 {
		t.Fatalf("Redis knows the servers %v (%v), want two", ids, err)
	}
	// Each announcement is genuine, but valid for its own server only.
	var genuine []string
	for _, id := range ids {
		text, err := redis.Client.Get(ctx, "fermata-server:"+id).Result()
		if err != nil {
			t.Fatal(err)
		}
		genuine = append(genuine, text)
	}
	forge := func(text func(i int) string) {
		t.Helper()
		for i, id := range ids {
			if err := redis.Client.Set(ctx, "fermata-server:"+id, text(i), time.Minute).Err(); err != nil {
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
		// The living server announces itself again and again, so the forger has to do the same.
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-time.After(100 * time.Millisecond):
					for i, id := range ids {
						_ = redis.Client.Set(context.WithoutCancel(ctx), "fermata-server:"+id, text(i), time.Minute).Err()
					}
				case <-stop:
					return
				}
			}
		}()
		a := c[1].Post(t, pause.Continue(harness.Echo))
		a.Fails(t, 503, "The server that holds this execution is away; retry shortly")
		if n := asked.Load(); n != 0 {
			t.Errorf("%s: somebody else was asked %d times", name, n)
		}
		close(stop)
		<-done
	}
	if !strings.Contains(servers[1].Log.All(), "is not signed with a secret of this group") {
		t.Errorf("the log does not tell:\n%s", servers[1].Log.Tail())
	}
	// When the server itself is back, the others believe its announcement again.
	if err := servers[0].Start(); err != nil {
		t.Fatal(err)
	}
	c = harness.Alices(servers)
	a, err := insist(t.Context(), c[1], nil, pause.Continue(harness.Echo))
	if err != nil {
		t.Fatal(err)
	}
	a.Completes(t, "{'n': 1}\n")
}

// TestPeerAddress gives servers separate addresses for talking to each other: neither address
// serves the other's requests.
func TestPeerAddress(t *testing.T) {
	t.Parallel()
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	group := harness.Settings{"REDIS_URL": redis.URL(), "FILES_URL": harness.Bucket(t)}
	var servers []*harness.Server
	for range 2 {
		servers = append(servers, harness.LaunchAlone(t, harness.Setup{Name: "process", Settings: harness.With(harness.Common, group, harness.Settings{"PEER_ADDR": harness.FreeAddr(t)})}))
	}
	c := harness.Alices(servers)
	pause := c[0].Pause(t, harness.AskOnce)
	body := fmt.Sprintf(`{"Principal":"alice","Token":%q,"Results":[{"CallID":"call_001","Value":7}],"Request":"r"}`, pause.Token)
	signed := http.Header{"X-Fermata-Signature": {forgery{signedPath: "/internal/resume", secret: harness.Secret}.sign(t, body)}}
	a, err := harness.Client{URL: servers[0].URL, Key: ""}.Request(t.Context(), http.MethodPost, "/internal/resume", signed, body)
	if err != nil || a.HTTPStatus != http.StatusNotFound {
		t.Errorf("the address of clients answers a server with %v %v, want 404", a, err)
	}
	a, err = harness.Client{URL: "http://" + servers[0].Settings["PEER_ADDR"], Key: "key-a"}.Send(t.Context(), harness.Program{Code: "print(1)"})
	if err != nil || a.HTTPStatus != http.StatusNotFound {
		t.Errorf("the address of servers answers a client with %v %v, want 404", a, err)
	}
	c[1].Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
}

// A forgery is a forged request to a path that only servers use.
type forgery struct {
	name, path, signedPath, secret string
	age                            time.Duration
	code                           int
}

// sign returns the signature that a server would send with this body.
func (f forgery) sign(t *testing.T, body string) string {
	t.Helper()
	key, err := hkdf.Key(sha256.New, []byte(f.secret), nil, "fermata peers", sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Add(-f.age).UnixMilli(), 10)
	bodyHash := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(bodyHash[:])
	h := hmac.New(sha256.New, key)
	h.Write([]byte("request\n" + at + "\n" + f.signedPath + "\n" + hash))
	return at + "." + hash + "." + hex.EncodeToString(h.Sum(nil))
}

// TestPeerRequests sends forged requests to the paths that only servers use.
func TestPeerRequests(t *testing.T) {
	const resume, cancel = "/internal/resume", "/internal/cancel"
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		pause := c[0].Pause(t, harness.AskOnce)
		body := fmt.Sprintf(`{"Principal":"alice","Token":%q,"Results":[{"CallID":"call_001","Value":7}],"Request":"r"}`, pause.Token)
		post := func(to harness.Client, path, signature, body string) harness.Answer {
			t.Helper()
			a, err := harness.Client{URL: to.URL, Key: ""}.Request(t.Context(), http.MethodPost, path, http.Header{"X-Fermata-Signature": {signature}}, body)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		for _, f := range []forgery{
			{"another secret", resume, resume, "another secret of at least 32 bytes", 0, 401},
			{"late", resume, resume, harness.Secret, 2 * time.Minute, 401},
			{"early", resume, resume, harness.Secret, -2 * time.Minute, 401},
			{"another path", resume, cancel, harness.Secret, 0, 401},
			{"to another server than the owner, which does not pass it on", resume, resume, harness.Secret, 0, 409},
		} {
			if a := post(c[1], f.path, f.sign(t, body), body); a.HTTPStatus != f.code || a.Session != "" {
				t.Errorf("%s: got %v, want %d", f.name, a, f.code)
			}
		}
		good := forgery{signedPath: resume, secret: harness.Secret}.sign(t, body)
		for name, signature := range map[string]string{
			"none": "", "no mac": strings.Split(good, ".")[0], "no time": strings.Split(good, ".")[1], "junk": "1.zz", "cut": good[:len(good)-2],
		} {
			if a := post(c[0], resume, signature, body); a.HTTPStatus != 401 {
				t.Errorf("signature %s: got %v, want 401", name, a)
			}
		}
		if a := post(c[0], resume, good, body+" "); a.HTTPStatus != 401 {
			t.Errorf("another body: got %v, want 401", a)
		}
		// A server believes another one about the principal of a request, but the token must fit.
		stolen := strings.Replace(body, `"alice"`, `"bob"`, 1)
		if a := post(c[0], resume, forgery{signedPath: resume, secret: harness.Secret}.sign(t, stolen), stolen); a.HTTPStatus != 409 || a.Error != "forbidden" {
			t.Errorf("another principal: got %v, want 409 forbidden", a)
		}
		c[0].Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
	t.Run("without other servers", func(t *testing.T) {
		for _, e := range harness.Sandboxes() {
			c := harness.Serve(t, harness.Setup{Name: e.Name, Settings: harness.With(harness.Common, e.Settings)}, nil).Alice()
			a, err := c.Request(t.Context(), http.MethodPost, "/internal/resume", nil, `{}`)
			if err != nil || a.HTTPStatus != http.StatusNotFound {
				t.Errorf("got %v %v, want 404", a, err)
			}
		}
	})
}
