package outgoing_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"fermata/engine/tools/outgoing"
)

// packed returns data as gzip.
func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestT6Bodies(t *testing.T) {
	bomb := packed(t, make([]byte, 100<<20))
	nested := packed(t, bomb)
	empty := packed(t, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoding := "gzip"
		body := []byte("hello")
		switch r.URL.Path {
		case "/good":
			body = packed(t, body)
		case "/bomb":
			body = bomb
		case "/nested":
			body, encoding = nested, "gzip, gzip"
		case "/empty":
			w.Header().Set("Content-Encoding", "gzip")
			for {
				if _, err := w.Write(bytes.Repeat(empty, 1000)); err != nil {
					return
				}
			}
		case "/br":
			encoding = "br"
		case "/lie":
		case "/cut":
			body = packed(t, make([]byte, 1000))[:20]
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case "/large":
			encoding, body = "", make([]byte, 1<<20+1)
		case "/limit":
			encoding, body = "", make([]byte, 1<<20)
		case "/failed":
			w.WriteHeader(http.StatusInternalServerError)
			encoding, body = "", make([]byte, 1<<20+1)
		}
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		_, _ = w.Write(body)
	}))
	defer s.Close()
	budget := outgoing.NewBudget(8 << 20)
	c := open(t, s.URL, func(o *outgoing.Options) { o.Budget = budget })
	for path, want := range map[string]outgoing.Reason{
		"/bomb": outgoing.Large, "/nested": outgoing.Encoded, "/empty": outgoing.Large, "/br": outgoing.Encoded, "/lie": outgoing.Unpackable,
		"/cut": outgoing.Unpackable, "/endless": outgoing.Large, "/large": outgoing.Large,
	} {
		t.Run(path[1:], func(t *testing.T) {
			_, err := get(t, c, s.URL+path)
			wantReason(t, err, want)
		})
	}
	a, err := get(t, c, s.URL+"/good")
	if err != nil || string(a.Body) != "hello" {
		t.Fatalf("answer is %v, error %v", a, err)
	}
	a.Release()
	if a, err = get(t, c, s.URL+"/failed"); err != nil || a.Status != http.StatusInternalServerError || a.Body != nil {
		t.Errorf("answer is %v, error %v", a, err)
	}
	// The budget is for all answers that have not been released.
	var held []*outgoing.Answer
	for len(held) < 10 {
		if a, err = get(t, c, s.URL+"/limit"); err != nil {
			break
		}
		held = append(held, a)
	}
	wantReason(t, err, outgoing.Busy)
	if len(held) != 3 {
		t.Errorf("%d answers of 1 MiB fit into the half of 8 MiB that one client may have, want 3", len(held))
	}
	for _, a := range held {
		a.Release()
	}
	if _, err = get(t, c, s.URL+"/limit"); err != nil {
		t.Errorf("nothing came back to the budget: %v", err)
	}
}

func TestT6Deadlines(t *testing.T) {
	t.Parallel()
	hold := func(head string, each time.Duration) string {
		return raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			_, err := io.WriteString(c, head)
			for err == nil && each > 0 {
				<-time.After(each)
				_, err = io.WriteString(c, "a")
			}
			_, _ = io.Copy(io.Discard, in)
		})
	}
	for name, test := range map[string]struct {
		at   string
		want outgoing.Reason
	}{
		"hangs":               {hold("", 0), outgoing.Late},
		"stops in headers":    {hold("HTTP/1.1 200 OK\r\nA", 0), outgoing.Stalled},
		"promises too much":   {hold("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", 0), outgoing.Stalled},
		"trickles":            {hold("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", 20*time.Millisecond), outgoing.Late},
		"trickles in headers": {hold("HTTP/1.1 200 OK\r\n", 20*time.Millisecond), outgoing.Late},
		"reads nothing":       {raw(t, func(_ int, _ net.Conn, in *bufio.Reader) { _, _ = in.ReadString('\n'); <-t.Context().Done() }), outgoing.Late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size := 10
			if name == "reads nothing" {
				size = 64 << 20
			}
			c := open(t, test.at, func(o *outgoing.Options) { o.Idle = 200 * time.Millisecond })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			_, err := c.Do(ctx, outgoing.Request{Method: http.MethodPost, URL: mustParse(t, test.at), Body: make([]byte, size), Principal: "p", MaxBytes: 1 << 20})
			if e := mustFail(t, err, test.want); !e.Sent {
				t.Error("the error does not say that the request was sent")
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestT6AnswerBeforeTheRequestIsRead(t *testing.T) {
	hang := make(chan struct{})
	at := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		_, _ = in.ReadString('\n')
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		<-hang
	})
	c := open(t, at, nil)
	defer close(hang)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, err := c.Do(ctx, outgoing.Request{Method: http.MethodPost, URL: mustParse(t, at), Body: make([]byte, 32<<20), Principal: "p", Repeatable: true, MaxBytes: 100})
	if err != nil || a.Status != http.StatusRequestEntityTooLarge || string(a.Body) != "no" {
		t.Errorf("answer is %v, error %v", a, err)
	}
}
