package live

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// atLeisure is the longest that the server may let a client wait while others are slow. It is far
// from what a request takes, and from the 30 s after which slow readers are cut off: a request that
// waits for one of them takes longer than this, and one on a busy machine does not.
const atLeisure = 10 * time.Second

// TestL7SlowReaders lets readers stand still in the middle of a journal while the embedded store
// grows. bbolt maps its file anew for that, which waits until no transaction reads.
func TestL7SlowReaders(t *testing.T) {
	t.Parallel()
	const readers, printed = 40, 6 << 20
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{
		"OUTPUT": "8MiB", "METRICS_ADDR": "127.0.0.1:0",
	}))
	c := s.Alice()
	a := c.Pause(t, harness.Program{
		Code:  fmt.Sprintf("for _ in range(%d): print('x' * 65535)\nawait ask()", printed>>16),
		Tools: harness.Tools("ask"),
	})
	path := "/executions/" + a.Header.Get("Fermata-Execution") + "/events"
	for range readers {
		conn := s.SendRaw(t, "")
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX-API-Key: key-a\r\nAccept: %s\r\n\r\n", path, eventStream); err != nil {
			t.Fatal(err)
		}
	}
	// They stand still when no more is sent, though there is more to send to each of them.
	sent := -1.0
	err := harness.Within(20*time.Second, func() error {
		time.Sleep(300 * time.Millisecond)
		all := s.Metrics(t)
		open, now := all["fermata_journal_readers"], all["fermata_journal_bytes_sent_total"]
		defer func() { sent = now }()
		if open != readers || now != sent || now > readers*printed*0.9 {
			return fmt.Errorf("%v readers have been sent %v bytes, before %v", open, now, sent)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	before := sizeOf(t, s, recordsFile)
	var took []time.Duration
	for i := 0; i < 60 && sizeOf(t, s, recordsFile) < 2*before; i++ {
		a := timed(t, c, &took, harness.Program{
			Code:  "for _ in range(4): await asyncio.gather(*[ask(x='x' * 60_000) for _ in range(20)])",
			Tools: harness.Tools("ask"),
		})
		for a.Status == "tool_call_required" {
			a = timed(t, c, &took, a.Continue(harness.Value("null")))
		}
		a.Completes(t, "")
	}
	after := sizeOf(t, s, recordsFile)
	// Its map doubles.
	if after < 2*before {
		t.Errorf("the store has grown from %d to %d bytes, want twice as many", before, after)
	}
	slices.Sort(took)
	t.Logf("of %d requests, half took %v and the slowest %v, while the store grew from %d to %d MiB",
		len(took), took[len(took)/2], took[len(took)-1], before>>20, after>>20)
	if slowest := took[len(took)-1]; slowest > atLeisure {
		t.Errorf("a request took %v while readers stand still", slowest)
	}
	if all := s.Metrics(t); all["fermata_journal_readers"]+all["fermata_journal_readers_cut_off_total"] != readers {
		t.Errorf("there are %v readers, and %v were cut off, want %d", all["fermata_journal_readers"], all["fermata_journal_readers_cut_off_total"], readers)
	}
	c.Post(t, a.Continue(harness.Value("null")))
}

// timed posts a request and notes how long its answer took.
func timed(t *testing.T, c harness.Client, took *[]time.Duration, body any) harness.Answer {
	t.Helper()
	began := time.Now()
	a := c.Post(t, body)
	*took = append(*took, time.Since(began))
	return a
}

func sizeOf(t *testing.T, s *harness.Server, name string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(s.Settings["STATE_DIR"], name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A crowd are many readers of one execution.
type crowd struct {
	t       *testing.T
	reading sync.WaitGroup
	mu      sync.Mutex
	// seen counts the readers by the hash of all that they have seen, from the first event to the
	// last one.
	seen map[[sha256.Size]byte]int
}

// follow opens streams of an execution, all of which are at the event "execution.paused" when it
// returns.
func follow(t *testing.T, c harness.Client, id string, readers int) *crowd {
	t.Helper()
	all := &crowd{t: t, seen: map[[sha256.Size]byte]int{}}
	var paused sync.WaitGroup
	for range readers {
		r := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil)
		paused.Add(1)
		all.reading.Go(func() { all.read(r, sync.OnceFunc(paused.Done)) })
	}
	paused.Wait()
	return all
}

func (all *crowd) read(r *stream, paused func()) {
	defer paused()
	hash := sha256.New()
	for seq := int64(1); ; seq++ {
		f, err := r.next()
		if err != nil || f.ID != seq {
			all.t.Errorf("a reader got event %d, %v after event %d", f.ID, err, seq-1)
			return
		}
		hash.Write(f.Data)
		hash.Write([]byte{'\n'})
		switch f.Event {
		case "execution.paused":
			paused()
		case "execution.ended":
			if _, err := r.next(); !errors.Is(err, io.EOF) {
				all.t.Errorf("after the end: %v", err)
			}
			all.mu.Lock()
			all.seen[[sha256.Size]byte(hash.Sum(nil))]++
			all.mu.Unlock()
			return
		}
	}
}

// saw waits until all streams have ended, and checks that each reader has seen the same as one who
// comes later.
func (all *crowd) saw(c harness.Client, id string, readers int) {
	all.t.Helper()
	all.reading.Wait()
	_, body := ended(all.t, c, id, ndjson, "")
	if n := all.seen[sha256.Sum256([]byte(body))]; n != readers || len(all.seen) != 1 {
		all.t.Errorf("%d of %d readers have seen what is stored; there are %d versions", n, readers, len(all.seen))
	}
}

// TestL8ReadersOverRedis lets a thousand readers follow an execution over Redis. They need no
// connection to Redis each, and leave those of the server to claims.
func TestL8ReadersOverRedis(t *testing.T) {
	const readers = 1000
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{
		"REDIS_URL": redis.URL(), "MAX_READERS": "2000",
	}))
	c := s.Alice()
	first := c.Pause(t, harness.Program{Code: harness.Py(`
		import asyncio
		await ask()
		for i in range(200):
		    print(i, flush=True)
		    await asyncio.sleep(0.02)
	`), Tools: harness.Tools("ask")})
	id := first.Header.Get("Fermata-Execution")
	all := follow(t, c, id, readers)

	ctx, stop := context.WithCancel(t.Context())
	most := make(chan int, 1)
	go func() {
		n := 0
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			list, err := redis.Client.ClientList(ctx).Result()
			if err == nil {
				n = max(n, strings.Count(list, "\n")-1) // One of them is this one.
			}
		}
		most <- n
	}()
	var others sync.WaitGroup
	slowest := make([]time.Duration, 8)
	for i := range slowest {
		others.Go(func() {
			for range 5 {
				began := time.Now()
				if err := harness.FiveRounds(t.Context(), c, i); err != nil {
					t.Errorf("an execution beside the readers: %v", err)
				}
				slowest[i] = max(slowest[i], time.Since(began))
			}
		})
	}
	if a := c.Post(t, first.Continue(harness.Value("null"))); a.Status != "completed" {
		t.Errorf("got %v", a)
	}
	others.Wait()
	all.saw(c, id, readers)
	stop()
	connections := <-most
	t.Logf("%d readers; at most %d connections to Redis; six requests took at most %v", readers, connections, slices.Max(slowest))
	// The pool of the client library has ten for each processor. One more hears of journals.
	if limit := 10*runtime.NumCPU() + 2; connections < 2 || connections > limit {
		t.Errorf("the server had %d connections to Redis, want at most %d", connections, limit)
	}
	if slowest := slices.Max(slowest); slowest > 3*atLeisure {
		t.Errorf("six requests took %v beside the readers", slowest)
	}
}

// hanging starts a server with a Redis of the test's own, and lets that Redis hang as soon as the
// program has been continued and has printed "go". It returns the answer to the continuation, and
// the id. The program has the variable began.
func hanging(t *testing.T, code string, hang time.Duration) (s *harness.Server, redis *harness.Redis, id string, next harness.Continuation, answered func() harness.Answer) {
	t.Helper()
	redis = harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	s = harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"REDIS_URL": redis.URL()}))
	c := s.Alice()
	first := c.Pause(t, harness.Program{Code: "import os, time\nawait ask()\nprint('go', flush=True)\ntime.sleep(1)\n" + code, Tools: harness.Tools("ask")})
	id = first.Header.Get("Fermata-Execution")
	reader := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil)
	next = first.Continue(harness.Value("null"))
	answers := make(chan harness.Answer, 1)
	go func() {
		a, err := c.Send(t.Context(), next)
		if err != nil {
			a.Raw = err.Error()
		}
		answers <- a
	}()
	reader.until(t, "output")
	if err := redis.Suspend(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.GoOn() })
	time.AfterFunc(hang, func() { _ = redis.GoOn() }) // The test would notice.
	return s, redis, id, next, func() harness.Answer {
		select {
		case a := <-answers:
			return a
		case <-time.After(time.Minute):
			t.Fatal("no answer within a minute")
			return harness.Answer{}
		}
	}
}

// outputIs waits until the events of an execution are complete and tell that this is what it has
// printed to stdout. It returns how many events of output there are.
func outputIs(t *testing.T, c harness.Client, id, want, last string) (outputs int) {
	t.Helper()
	err := harness.Within(30*time.Second, func() error {
		var events []event
		for more, after := true, int64(0); more; {
			var page struct {
				Data []event
				Next *int64
			}
			look(t, c, fmt.Sprintf("/executions/%s/events?after=%d", id, after), &page)
			if events, more = append(events, page.Data...), page.Next != nil; more {
				after = *page.Next
			}
		}
		var printed strings.Builder
		outputs = 0
		for i, e := range events {
			if e.Seq != int64(i)+1 {
				t.Fatalf("event %d stands at place %d", e.Seq, i+1)
			}
			if e.Type == "output" && e.Stream == "stdout" {
				if e.Offset != printed.Len() {
					t.Fatalf("event %d has the offset %d, want %d", e.Seq, e.Offset, printed.Len())
				}
				printed.WriteString(e.Text)
				outputs++
			}
		}
		if end := events[len(events)-1].Type; end != last || printed.String() != want {
			return fmt.Errorf("the events tell of %d bytes and end with %s, want %d bytes and %s", printed.Len(), end, len(want), last)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return outputs
}

// TestL23Bytes runs a program that prints byte by byte while the store hangs. It does not notice,
// and its journal has few events.
func TestL23Bytes(t *testing.T) {
	t.Parallel()
	s, _, id, _, answered := hanging(t, harness.Py(`
		worst, n, began = 0, 0, time.monotonic()
		while time.monotonic() < began + 5:
		    at = time.monotonic()
		    os.write(1, b".")
		    worst, n = max(worst, time.monotonic() - at), n + 1
		    time.sleep(0.0005)
		print(worst, n)
	`), 3*time.Second)
	a := answered()
	if a.Status != "completed" {
		t.Fatalf("got %v, want it completed", a)
	}
	fields := strings.Fields(strings.TrimLeft(strings.TrimPrefix(a.Stdout, "go\n"), "."))
	worst, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil || n < 100 {
		t.Fatalf("the program has printed %s bytes: %v", fields[1], err)
	}
	outputs := outputIs(t, s.Alice(), id, a.Stdout, "execution.ended")
	t.Logf("%d bytes have come as %d events; the longest write took %.3f s", n, outputs, worst)
	if worst > 2 {
		t.Errorf("a write of the program took %v s while the store hung for 3 s", worst)
	}
	// The supervisor tells of it every 50 ms, and what came while the store hung is joined.
	if outputs > 100 {
		t.Errorf("%d bytes have come as %d events", n, outputs)
	}
}

// TestL23Flood runs a program that prints as fast as it can while the store hangs. It ends at its
// limit, its client is told, and the events follow when the store is back.
func TestL23Flood(t *testing.T) {
	t.Parallel()
	s, redis, id, _, answered := hanging(t, "while True: os.write(1, b'x' * 65536)", time.Hour)
	before := s.AnonymousMiB(t)
	a := answered()
	if !strings.Contains(a.Error, "stdout") {
		t.Errorf("got %v, want an error about stdout", a)
	}
	if grown := s.AnonymousMiB(t) - before; grown > 64 {
		t.Errorf("the server has taken %d MiB for what waits", grown)
	}
	if err := redis.GoOn(); err != nil {
		t.Fatal(err)
	}
	outputIs(t, s.Alice(), id, a.Stdout, "execution.ended")
}

// TestL23Pause lets a program pause while the store hangs: 503 within a time, and the pause with all
// of its events for the client that comes again.
func TestL23Pause(t *testing.T) {
	t.Parallel()
	s, redis, id, next, answered := hanging(t, "for _ in range(1000): os.write(1, b'.')\nprint(await ask())", time.Hour)
	answered().Fails(t, http.StatusServiceUnavailable, "The execution store is not available; retry shortly")
	if err := redis.GoOn(); err != nil {
		t.Fatal(err)
	}
	c := s.Alice()
	var paused harness.Answer
	err := harness.Within(20*time.Second, func() error {
		if paused = c.Post(t, next); paused.Status != "tool_call_required" {
			return fmt.Errorf("got %v, want a pause", paused)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	printed := "go\n" + strings.Repeat(".", 1000)
	outputIs(t, c, id, printed, "execution.paused")
	c.Post(t, paused.Continue(harness.Value("1"))).Completes(t, printed+"1\n")
	outputIs(t, c, id, printed+"1\n", "execution.ended")
}

// TestL23SlowStore runs a program that prints between its calls with a Redis that takes half a
// second for each command. What the program prints meanwhile is joined.
func TestL23SlowStore(t *testing.T) {
	t.Parallel()
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	const delay = 500 * time.Millisecond
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"REDIS_URL": slowed(t, redis, delay)}))
	c := s.Alice()
	// On a slow machine the server may still be busy with its start, and finds the store too slow.
	a, err := c.Insist(t.Context(), http.MethodPost, harness.Programmatic, nil, harness.Program{Code: harness.Py(`
		import time
		for i in range(3):
		    await ask(i=i)
		    began = time.monotonic()
		    while time.monotonic() < began + 2:
		        print(".", end="", flush=True)
		        time.sleep(0.001)
	`), Tools: harness.Tools("ask")})
	if err != nil || a.Status != "tool_call_required" {
		t.Fatalf("got %v, %v, want a pause", a, err)
	}
	id := a.Header.Get("Fermata-Execution")
	var took []time.Duration
	for a.Status == "tool_call_required" {
		a = timed(t, c, &took, a.Continue(harness.Value("null")))
	}
	if a.Status != "completed" {
		t.Fatalf("got %v", a)
	}
	outputs := outputIs(t, c, id, a.Stdout, "execution.ended")
	t.Logf("%d bytes have come as %d events; the rounds took %v", len(a.Stdout), outputs, took)
	if took := slices.Min(took); took < delay {
		t.Errorf("a round took %v: the store is not slow", took)
	}
	// It is written after each command at most.
	if outputs > 6*int(2*time.Second/delay) {
		t.Errorf("%d bytes have come as %d events", len(a.Stdout), outputs)
	}
}

// slowed returns the URL of a Redis that gets everything a while later.
func slowed(t *testing.T, redis *harness.Redis, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(redis.Dir, "slow"))
	if err != nil {
		t.Fatal(err)
	}
	var passing sync.WaitGroup
	t.Cleanup(passing.Wait)
	t.Cleanup(func() { _ = l.Close() })
	passing.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", filepath.Join(redis.Dir, "s"))
			if err != nil {
				_ = client.Close()
				continue
			}
			passing.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
			passing.Go(func() { _, _ = io.Copy(late{server, delay}, client); _ = server.Close() })
		}
	})
	return "unix://" + l.Addr().String()
}
