package tests

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRacingContinuations posts two continuations of one round at once: one of them
// has an effect, once.
func TestRacingContinuations(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		p := program{Code: py(`
			effects = []
			effects.append(await ask())
			print(effects)
		`), Tools: tools("ask")}
		race := func(t *testing.T, one, other string) (answers [2]answer) {
			t.Helper()
			pause := c.pause(t, p)
			ready := make(chan struct{})
			var wg sync.WaitGroup
			for i, raw := range []string{one, other} {
				wg.Go(func() {
					next := pause.answers(value(raw))
					<-ready
					var err error
					if answers[i], err = c.send(t.Context(), next); err != nil {
						t.Error(err)
					}
				})
			}
			close(ready)
			wg.Wait()
			return answers
		}
		rounds := 200
		if testing.Short() || s.docker() {
			rounds = 20
		}
		t.Run("different", func(t *testing.T) {
			t.Parallel()
			for range rounds {
				answers := race(t, "1", "2")
				completed := 0
				for i, a := range answers {
					switch {
					case a.Status == "completed":
						completed++
						a.completes(t, fmt.Sprintf("[%d]\n", i+1))
					case a.code == http.StatusConflict:
						a.fails(t, 409, "Another continuation is already in flight for this execution; retry shortly")
					default:
						a.fails(t, 400, "Execution expired") // It came after the end.
					}
				}
				if completed != 1 {
					t.Fatalf("%d of two continuations had an effect, want 1: %v", completed, answers)
				}
			}
		})
		t.Run("identical", func(t *testing.T) {
			t.Parallel()
			for range rounds {
				answers := race(t, "1", "1")
				answers[0].completes(t, "[1]\n")
				if answers[0].raw != answers[1].raw {
					t.Fatalf("got %v and %v for one request, want one answer", answers[0], answers[1])
				}
			}
		})
		t.Run("while it runs", func(t *testing.T) {
			t.Parallel()
			pause := c.pause(t, program{Code: "import time\nx = await ask()\ntime.sleep(1)\nprint(x)", Tools: tools("ask")})
			first := make(chan answer, 1)
			go func() {
				a, err := c.send(t.Context(), pause.answers(value("1")))
				if err != nil {
					t.Error(err)
				}
				first <- a
			}()
			time.Sleep(300 * time.Millisecond) // No answer tells that the first one has begun.
			began := time.Now()
			c.post(t, pause.answers(value("2"))).fails(t, 409, "Another continuation is already in flight for this execution; retry shortly")
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("the refusal came after %v, want it at once", took)
			}
			a := <-first
			a.completes(t, "1\n")
		})
	})
}

// TestManyExecutions runs many programs side by side and looks for what they mix up
// and what they leave behind.
func TestManyExecutions(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		if testing.Short() {
			t.Skip("runs hundreds of programs")
		}
		server := serveAlone(t, s, settings{"QUEUE_TIMEOUT": "60s"})
		c := server.alice()
		wave := func(n int) {
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if err := fiveRounds(t.Context(), c, i); err != nil {
						t.Errorf("execution %d: %v", i, err)
					}
				})
			}
			wg.Wait()
		}
		settled := func() usage {
			var u usage
			// The pool fills up and sandboxes end in the background. A container takes long.
			look := 200 * time.Millisecond
			if s.docker() {
				look = 4 * time.Second
			}
			err := within(time.Minute, func() error {
				before := server.usage()
				time.Sleep(look)
				if u = server.usage(); u.processes != before.processes || u.groups != before.groups || u.files != before.files {
					return fmt.Errorf("still changing: %v, %v", before, u)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			http.DefaultClient.CloseIdleConnections()
			return u
		}
		// Connections to Redis stay, ten at most, and more of them the more is going on.
		kept, many := 2, 100
		if s.settings["REDIS_URL"] != "" {
			kept = 10
		}
		if s.docker() {
			// A busy machine makes one or two containers a second, and none may wait for
			// longer than a minute.
			many = 30
		}
		wave(20) // The first ones make what stays, such as buffers and threads.
		before := settled()
		wave(many)
		after := within(time.Minute, func() error {
			u := settled()
			if u.processes > before.processes || u.groups > before.groups || u.files > before.files || u.descriptors > before.descriptors+kept ||
				u.inner > before.inner || u.memory > before.memory+32<<20 {
				return fmt.Errorf("usage after 100 executions: %+v, before: %+v", u, before)
			}
			return nil
		})
		if after != nil {
			t.Error(after)
		}
	})
}

// fiveRounds runs a program that counts on what it was told, i and no other.
func fiveRounds(ctx context.Context, c client, i int) error {
	a, err := c.send(ctx, program{Code: fmt.Sprintf(py(`
		me, heard = %d, []
		open("mine", "w").write(str(me))
		for n in range(5):
		    heard.append((await ask(me=me, n=n))["me"])
		print(me, heard, open("mine").read())
	`), i), Tools: tools("ask")})
	for n := 0; err == nil && a.Status == "tool_call_required"; n++ {
		if got, want := a.Calls[0].input(), fmt.Sprintf(`{"me":%d,"n":%d}`, i, n); len(a.Calls) != 1 || got != want {
			return fmt.Errorf("calls = %v, want one with %s", a.Calls, want)
		}
		a, err = c.send(ctx, a.answers(echo))
	}
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%[1]d [%[1]d, %[1]d, %[1]d, %[1]d, %[1]d] %[1]d\n", i); a.Stdout != want {
		return fmt.Errorf("got %v, want %q", a, want)
	}
	return nil
}

// A usage is what a server uses of the machine.
type usage struct {
	// processes below it, with it; cgroups of sandboxes; files in its directory.
	processes, groups, files int
	// descriptors are the server's own, inner those of the processes it keeps.
	descriptors, inner int
	// memory is that of the server itself, in bytes.
	memory int
}

func (s *server) usage() usage {
	family := s.family()
	u := usage{processes: len(family), groups: len(sandboxGroups(s.groups))}
	_ = filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, _ error) error { // Files may go while it walks.
		if path == s.filesDir() {
			return filepath.SkipDir // What programs leave stays for a day.
		}
		u.files++
		return nil
	})
	for i, p := range family {
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid)) // It may have ended.
		if i == 0 {
			u.descriptors = len(open)
		} else {
			u.inner += len(open)
		}
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
			u.memory = kilobytes << 10
		}
	}
	return u
}

// TestDisturbance runs well-behaved programs beside those that are not.
func TestDisturbance(t *testing.T) {
	overSetups(t, eachEngine|ordinaryUser, func(t *testing.T, s setup) {
		if testing.Short() {
			t.Skip("runs for seconds")
		}
		c := serve(t, s, small).alice()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, code := range []string{
			"while True: pass",
			"x = []\nwhile True: x.append(bytearray(1 << 20))",
			"while True: print('x' * 1000)",
			"os.kill(os.getpid(), 9)",
			"os.closerange(0, 1024)",
		} {
			wg.Go(func() {
				for ctx.Err() == nil {
					a, err := c.send(ctx, program{Code: code, Timeout: 1000})
					if err == nil && a.code >= 500 {
						t.Errorf("%q: got %v, want no 5xx", code, a)
						return
					}
				}
			})
		}
		for i := range 20 {
			if err := fiveRounds(t.Context(), c, i); err != nil {
				t.Error(err)
			}
		}
		stop()
		wg.Wait()
	})
}
