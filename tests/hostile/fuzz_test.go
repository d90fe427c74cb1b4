//go:build linux

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// fuzzProgram returns a program of the folder fuzz, with assignments of these variables in front.
func fuzzProgram(t *testing.T, name string, variables map[string]any) hostile {
	t.Helper()
	p, err := readHostile(filepath.Join("fuzz", name))
	if err != nil {
		t.Fatal(err)
	}
	var head strings.Builder
	for variable, value := range variables {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&head, "%s = %s\n", variable, text)
	}
	p.name = fmt.Sprintf("%s with the seed %v", p.name, variables["SEED"])
	p.code = head.String() + p.code
	return p
}

// fuzzedCalls is how many system calls TestHostileSystemCalls makes in each round.
const fuzzedCalls = 100_000

var madeLine = regexp.MustCompile(`(?m)^MADE (\d+)`)

// TestHostileSystemCalls makes system calls of all numbers with odd arguments.
func TestHostileSystemCalls(t *testing.T) {
	const limit = 30 * time.Second
	overBesieged(t, func(t *testing.T, b besieged) {
		a := besiege(t, b)
		hostileRounds(t, func(t *testing.T, seed uint64) {
			seeds := rand.New(rand.NewPCG(seed, 1))
			made := 0
			for tries := 0; made < fuzzedCalls; tries++ {
				if tries == 30 {
					t.Fatalf("%d system calls after %d programs, want %d", made, tries, fuzzedCalls)
				}
				// Some calls end the program; the next program makes the rest.
				p := fuzzProgram(t, "syscalls.py", map[string]any{"SEED": seeds.Uint32(), "COUNT": fuzzedCalls - made, "LIMIT": limit.Seconds()})
				p.timeout = limit + 5*time.Second
				for _, got := range a.attack(t, []hostile{p}) {
					if last := madeLine.FindAllStringSubmatch(got.Stdout, -1); len(last) > 0 {
						n, _ := strconv.Atoi(last[len(last)-1][1]) // The pattern matches digits.
						made += n
					}
				}
				if t.Failed() {
					return
				}
			}
		})
		a.end(t)
	})
}

// TestHostileFrames writes damaged frames to the supervisor and to the server.
func TestHostileFrames(t *testing.T) {
	overBesieged(t, func(t *testing.T, b besieged) {
		a := besiege(t, b)
		golden, programs := goldenFrames(t), 120/b.atOnce
		hostileRounds(t, func(t *testing.T, seed uint64) {
			seeds := rand.New(rand.NewPCG(seed, 2))
			for range programs {
				p := fuzzProgram(t, "frames.py", map[string]any{"SEED": seeds.Uint32(), "GOLDEN": golden})
				p.tool, p.timeout = "ask", time.Second
				a.attack(t, []hostile{p})
			}
		})
		a.end(t)
	})
}

// goldenFrames returns the good and bad frames that the server and the runner are tested with.
func goldenFrames(t *testing.T) (golden []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "python", "testdata", "frames.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Good, Bad []struct{ Bytes string }
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(cases.Good, cases.Bad...) {
		golden = append(golden, c.Bytes)
	}
	return golden
}

const (
	// fuzzedConnections is the highest number of connections at the same time.
	fuzzedConnections = 300
	// fuzzedFor is for how long a round makes new connections.
	fuzzedFor = 20 * time.Second
	// connectionLife is how long the server may keep a connection that has no key and sends no
	// valid request: the longest of its limits for bodies and idle connections, and some more.
	connectionLife = 130 * time.Second
	// goodAnswer is how long a well-behaved client may have to wait meanwhile.
	goodAnswer = 3 * time.Second
)

// TestHostileConnections opens connections without a key that send damaged requests, or nothing. A
// well-behaved client is served all the time, and the server closes every other connection.
func TestHostileConnections(t *testing.T) {
	t.Parallel()
	b := besieged{name: "process", settings: harness.With(harness.Common, hostileSettings), atOnce: 1}
	a := besiege(t, b)
	hostileRounds(t, func(t *testing.T, seed uint64) {
		ctx, cancel := context.WithTimeout(t.Context(), fuzzedFor)
		defer cancel()
		var held sync.WaitGroup
		free := make(chan struct{}, fuzzedConnections)
		held.Go(func() { a.goodClient(ctx, t) })
		seeds := rand.New(rand.NewPCG(seed, 3))
		for ctx.Err() == nil {
			one := rand.New(rand.NewPCG(seeds.Uint64(), 4))
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				continue
			}
			held.Go(func() {
				defer func() { <-free }()
				if err := a.connect(ctx, one); err != nil {
					t.Error(err)
				}
			})
		}
		held.Wait()
		if err := a.unharmed(t.Context()); err != nil {
			t.Errorf("after the connections: %v", err)
			a.again(t)
		}
	})
	a.end(t)
}

// goodClient is a well-behaved client that runs programs while ctx lasts.
func (a *arena) goodClient(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		begin := time.Now()
		got, err := a.server.Bob().Send(t.Context(), harness.Program{Code: "print(1)"})
		if err != nil || got.Stdout != "1\n" {
			t.Errorf("a good client got %v (%v), want a program that completes", got, err)
			return
		}
		if took := time.Since(begin); took > goodAnswer {
			t.Errorf("a good client waited %v, want at most %v", took, goodAnswer)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// connect opens a connection, sends a damaged request while ctx lasts, and waits until the server
// closes the connection. Some connections it closes itself.
func (a *arena) connect(ctx context.Context, chance *rand.Rand) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.server.URL, "http://"))
	if err != nil {
		return fmt.Errorf("a connection without a key: %w", err)
	}
	defer func() { _ = conn.Close() }()
	begin := time.Now()
	data := fuzzedRequest(chance)
	if chance.IntN(3) > 0 && len(data) < 4000 {
		_ = drip(ctx, conn, data, chance) // The server may have closed the connection.
	} else if err := conn.SetWriteDeadline(time.Now().Add(connectionLife)); err == nil {
		_, _ = conn.Write(data)
	}
	if chance.IntN(4) == 0 {
		return nil
	}
	if err := conn.SetReadDeadline(time.Now().Add(connectionLife)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the server kept a connection without a key for %v, which had sent %.300q", time.Since(begin).Round(time.Second), data)
	}
	return nil // The server has closed the connection, or reset it.
}

// drip sends data in small pieces while ctx lasts.
func drip(ctx context.Context, conn net.Conn, data []byte, chance *rand.Rand) error {
	pause := time.Duration(chance.IntN(50)) * time.Millisecond
	for len(data) > 0 && ctx.Err() == nil {
		n := 1 + chance.IntN(len(data))
		if err := conn.SetWriteDeadline(time.Now().Add(connectionLife)); err != nil {
			return err
		}
		if _, err := conn.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return nil
}

// goodRequests are what damaged requests are made from.
var goodRequests = []string{
	"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
	"POST /exec HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{\"lang\":\"py\",\"code\":\"print(1)\"}",
	"POST /exec/programmatic HTTP/1.1\r\nHost: x\r\nX-API-Key: key\r\nContent-Length: 1000\r\n\r\n{",
	"POST /exec HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 200\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx",
	"GET /download/a/b?x=1 HTTP/1.1\r\nHost: x\r\nRange: bytes=0-\r\n\r\n",
	"POST /exec/programmatic/cancel HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 49999999\r\n\r\n",
	"POST /internal/resume HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"",
}

// fuzzedRequest returns one or more damaged requests.
func fuzzedRequest(chance *rand.Rand) []byte {
	data := []byte(goodRequests[chance.IntN(len(goodRequests))])
	line := func(text string) { data = bytes.Replace(data, []byte("Host: x\r\n"), []byte("Host: x\r\n"+text), 1) }
	for chance.IntN(2) == 0 {
		switch chance.IntN(12) {
		case 0:
			data = data[:chance.IntN(len(data)+1)]
		case 1:
			data = bytes.Repeat(data, 1+chance.IntN(100))
		case 2:
			line("X: " + strings.Repeat("x", 1<<chance.IntN(21)) + "\r\n")
		case 3:
			line(strings.Repeat("X: x\r\n", 1<<chance.IntN(14)))
		case 4:
			line("Content-Length: " + []string{"-1", "0", "5, 6", "99999999999999999999", "1e3", " ", "49999999"}[chance.IntN(7)] + "\r\n")
		case 5:
			line("Transfer-Encoding: " + []string{"chunked", "chunked, chunked", "gzip", "\x00", "identity"}[chance.IntN(5)] + "\r\n")
		case 6:
			data = append(data, []string{"ffffffffffffffff\r\n", "5;x=" + strings.Repeat("y", 5000), "-1\r\n", "0\r\nTrailer: x\r\n", "\r\n\r\n"}[chance.IntN(5)]...)
		case 7:
			data = bytes.Replace(data, []byte("/"), []byte("/"+strings.Repeat("../%2e%00/", 1+chance.IntN(1000))), 1)
		case 8:
			data = bytes.ReplaceAll(data, []byte("\r\n"), []byte([]string{"\n", "\r", "\r\n ", "\x00\r\n"}[chance.IntN(4)]))
		case 9:
			data = bytes.Replace(data, []byte("HTTP/1.1"), []byte([]string{"HTTP/1.0", "HTTP/9.9", "", "HTTP/1.1 x"}[chance.IntN(4)]), 1)
		default:
			for range 1 + chance.IntN(5) {
				if len(data) > 0 {
					data[chance.IntN(len(data))] = byte(chance.IntN(256))
				}
			}
		}
		if len(data) > 4<<20 {
			break
		}
	}
	return data
}
