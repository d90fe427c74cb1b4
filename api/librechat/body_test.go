package librechat_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fermata/api"
	"fermata/api/peer"
)

// A wire is a connection to a server in a bubble of synctest, with the bubble's clock.
type wire struct {
	net.Conn
	in *bufio.Reader
}

// dial serves a handler and returns a connection to it.
func dial(t *testing.T, h http.Handler) wire {
	t.Helper()
	client, conn := net.Pipe()
	listener := &oneConn{conns: make(chan net.Conn, 1)}
	listener.conns <- conn
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 70 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = errors.Join(client.Close(), server.Close()) })
	return wire{client, bufio.NewReader(client)}
}

// send sends a text.
func (w wire) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// An arrival is an answer that has come. Its closing is true if the connection ends with it.
type arrival struct {
	status  int
	body    string
	closing bool
}

// read returns the next answer.
func (w wire) read(t *testing.T) arrival {
	t.Helper()
	response, err := http.ReadResponse(w.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return arrival{response.StatusCode, string(body), response.Close}
}

// TestAnswersBeforeTheBody sends heads that announce a body, and then nothing: what can be
// answered without the body is answered at once, and the connection does not stay.
func TestAnswersBeforeTheBody(t *testing.T) {
	const key, length, chunked = "X-API-Key: good-key\r\n", "Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n"
	const asJSON = "Content-Type: application/json\r\n"
	for _, c := range []struct {
		name, line, header string
		status             int
	}{
		{"no key", "POST /exec/programmatic", length + asJSON, 401},
		{"no key, chunked", "POST /exec/programmatic", chunked + asJSON, 401},
		{"no key, large", "POST /exec", "Content-Length: 900000\r\n" + asJSON, 401},
		{"no key, cancel", "POST /exec/programmatic/cancel", length + asJSON, 401},
		{"no key, upload", "POST /upload", length + "Content-Type: multipart/form-data; boundary=x\r\n", 401},
		{"expecting 100", "POST /exec", length + "Expect: 100-continue\r\n", 401},
		{"no such route", "POST /nowhere", length, 404},
		{"no such route, chunked", "POST /nowhere", chunked, 404},
		{"no such method", "PUT /exec", length + key, 405},
		{"too large", "POST /exec/programmatic", key + asJSON + "Content-Length: 9000000\r\n", 413},
		{"too large to cancel", "POST /exec/programmatic/cancel", key + asJSON + "Content-Length: 70000\r\n", 413},
		{"wrong type", "POST /exec/programmatic", key + length, 415},
		{"no form", "POST /upload", key + length, 400},
		{"health", "GET /health", length, 200},
		{"health, chunked", "GET /health", chunked, 200},
		{"a list", "GET /files/" + session, key + length, 200},
		{"another server, unsigned", "POST /internal/resume", length, 401},
		{"another server, chunked", "POST /internal/cancel", chunked, 401},
		{"often", "POST /exec", key + length + asJSON, 429},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.Files = fileStore(t, dir)
				peers, err := peer.NewKey([][]byte{[]byte("a secret of at least thirty-two bytes")})
				if err != nil {
					t.Fatal(err)
				}
				o.PeerKey = &peers
				o.Rates.Executions = api.Rate{Requests: 1, Window: time.Hour}
				h := newHandler(completed(), o)
				if c.status == 429 {
					call{path: "/exec", body: `{"lang":"py","code":"#"}`}.do(t, h)
				}
				w := dial(t, h)
				began := time.Now()
				w.send(t, c.line+" HTTP/1.1\r\nHost: x\r\n"+c.header+"\r\n")
				a := w.read(t)
				if a.status != c.status || time.Since(began) > 0 {
					t.Errorf("got %d %s after %v, want %d at once", a.status, a.body, time.Since(began), c.status)
				}
				if !a.closing {
					t.Error("the answer does not say that the connection is closed")
				}
				_, err = w.in.ReadByte()
				if took := time.Since(began); !errors.Is(err, io.EOF) || took > time.Second {
					t.Errorf("after %v the connection ends with %v, want its end within a second", took, err)
				}
			})
		})
	}
}

// TestSlowBodies sends bodies that do not end.
func TestSlowBodies(t *testing.T) {
	for _, c := range []struct {
		name, path, header string
		limit              time.Duration
		every              time.Duration // between two bytes
		want               string
	}{
		{"silent", path, "Content-Length: 1000\r\n", 0, time.Hour, "408 request body did not arrive within 60 seconds"},
		{"dripping", path, "Content-Length: 5000\r\n", 0, 2 * time.Second, "408 request body did not arrive within 60 seconds"},
		{"dripping, chunked", "/exec", "Transfer-Encoding: chunked\r\n", 0, 2 * time.Second, "408 request body did not arrive within 60 seconds"},
		{"cancel", path + "/cancel", "Content-Length: 50\r\n", 0, 3 * time.Second, "408 request body did not arrive within 60 seconds"},
		{"as set", path, "Content-Length: 1000\r\n", 1500 * time.Millisecond, time.Second, "408 request body did not arrive within 1.5 seconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.BodyTimeout = c.limit
				w := dial(t, newHandler(completed(), o))
				began := time.Now()
				w.send(t, "POST "+c.path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: good-key\r\n"+c.header+"\r\n")
				dripped := make(chan struct{})
				go func() {
					defer close(dripped)
					byByte := " "
					if strings.Contains(c.header, "chunked") {
						byByte = "1\r\n \r\n"
					}
					for {
						time.Sleep(c.every)
						if _, err := io.WriteString(w, byByte); err != nil {
							return // The server has closed.
						}
					}
				}()
				a := w.read(t)
				limit := c.limit
				if limit == 0 {
					limit = api.BodyTimeout
				}
				if got := fmt.Sprint(a.status, " ", a.body); !strings.HasPrefix(got, c.want[:3]) || !strings.Contains(got, c.want[4:]) || time.Since(began) != limit {
					t.Errorf("got %s after %v, want %s after %v", got, time.Since(began), c.want, limit)
				}
				if _, err := w.in.ReadByte(); !errors.Is(err, io.EOF) || time.Since(began) > limit+time.Second {
					t.Errorf("%v after the answer the connection ends with %v, want its end within a second", time.Since(began)-limit, err)
				}
				_ = w.Close()
				<-dripped
			})
		})
	}
}

// A program may run for longer than its request's body may take, and the connection serves
// the next request.
func TestLongRunsKeepTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := completed()
		e.do = func(ctx context.Context) {
			select {
			case <-time.After(5 * time.Minute):
			case <-ctx.Done():
				t.Error("the request was cancelled")
			}
		}
		w := dial(t, newHandler(e, options()))
		for range 2 {
			const body = `{"code":"#"}`
			w.send(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: good-key\r\nContent-Length: %d\r\n\r\n", path, len(body)))
			time.Sleep(api.BodyTimeout - time.Second)
			w.send(t, body)
			if a := w.read(t); a.status != 200 || a.closing {
				t.Errorf("got %+v, want 200 and the connection kept", a)
			}
		}
	})
}

// A client that asks first is told to send its body, and keeps its connection.
func TestContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := dial(t, newHandler(completed(), options()))
		for range 2 {
			w.send(t, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: good-key\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n")
			if a := w.read(t); a.status != 100 {
				t.Errorf("got %+v, want to be told to go on", a)
			}
			w.send(t, `{"code":"#"}`)
			if a := w.read(t); a.status != 200 || a.closing {
				t.Errorf("got %+v, want 200 and the connection kept", a)
			}
		}
	})
}

// An upload whose form is read to its end leaves the connection for the next request.
func TestUploadsKeepTheirConnection(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Files = fileStore(t, dir)
		w := dial(t, newHandler(completed(), o))
		contentType, body := form(file("a", "1"))
		for range 2 {
			w.send(t, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: "+contentType+"\r\nX-API-Key: good-key\r\nTransfer-Encoding: chunked\r\n\r\n")
			w.send(t, fmt.Sprintf("%x\r\n%s\r\n", len(body), body))
			w.send(t, "0\r\n\r\n")
			if a := w.read(t); a.status != 200 || a.closing {
				t.Errorf("got %+v, want 200 and the connection kept", a)
			}
		}
	})
}

// A client that takes a file too slowly does not get it for ever.
func TestSlowDownloads(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Files = largeStore(t, dir)
		h := newHandler(completed(), o)
		sid, fid := put(t, h, "a", strings.Repeat("x", 1<<20))
		w := dial(t, h)
		began := time.Now()
		w.send(t, "GET /download/"+sid+"/"+fid+" HTTP/1.1\r\nHost: x\r\nX-API-Key: good-key\r\n\r\n")
		var err error
		for buffer := make([]byte, 4<<10); err == nil; {
			time.Sleep(10 * time.Second)
			_, err = w.Read(buffer)
		}
		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("a client that takes 400 bytes a second was served for %v", took)
		}
	})
}
