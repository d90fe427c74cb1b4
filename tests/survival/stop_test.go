package tests

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
)

// signalled sends a signal and waits for the end, which must be an orderly one.
func (s *server) signalled(t *testing.T, number syscall.Signal, limit time.Duration) {
	t.Helper()
	began := time.Now()
	s.heirs = s.family()[1:]
	if err := s.cmd.Process.Signal(number); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(stopTimeout + limit):
		t.Fatalf("the server runs %v after %v", time.Since(began), number)
	}
	// Before it begins to, a signal ends it as it ends any process.
	status, _ := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	early := status.Signaled() && status.Signal() == number && s.log.all() == ""
	if code := s.cmd.ProcessState.ExitCode(); code != 0 && !early {
		t.Errorf("the server ended with code %d after %v, want 0", code, number)
	}
	if took := time.Since(began); took > limit {
		t.Errorf("the server took %v to end, want at most %v", took, limit)
	}
}

// later posts in the background.
func (c client) later(t *testing.T, body any) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		a, err := c.send(t.Context(), body)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	return answers
}

// busy runs for a while after its call.
func busy(seconds float64) program {
	return program{Code: fmt.Sprintf("import time\nx = await ask(n=1)\ntime.sleep(%g)\nprint(x)\nprint(await ask(n=2))", seconds), Tools: tools("ask")}
}

// TestDrainEnds stops the server with what SIGTERM does by default.
func TestDrainEnds(t *testing.T) {
	overSetups(t, eachEngine|ordinaryUser, func(t *testing.T, s setup) {
		server := serveAlone(t, s, quick(t))
		c := server.alice()
		waits, runs := c.pause(t, paused), c.pause(t, busy(1))
		round := c.later(t, runs.answers(echo))
		start := c.later(t, program{Code: "import time\ntime.sleep(1)\nprint('ran')"})
		time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
		family := server.family()
		server.signalled(t, syscall.SIGTERM, 10*time.Second)
		next := <-round
		if next.Status != "tool_call_required" {
			t.Errorf("got %v for the round that ran, want its pause", next)
		}
		(<-start).completes(t, "ran\n")
		if err := server.cleared(family); err != nil {
			t.Error(err)
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		c.post(t, waits.answers(echo)).fails(t, 400, "Execution expired")
		c.post(t, next.answers(echo)).fails(t, 400, "Execution expired")
		c.post(t, program{Code: "print(1)"}).completes(t, "1\n")
	})
}

// TestDrainKeeps stops a server that is to leave what is paused to the next one.
func TestDrainKeeps(t *testing.T) {
	overSetups(t, eachStore|ordinaryUser|ordinaryUserWithRange, func(t *testing.T, s setup) {
		server := serveAlone(t, s, with(quick(t), settings{"DRAIN": "keep"}))
		c := server.alice()
		waits, runs := c.pause(t, paused), c.pause(t, busy(1))
		key := uuid.NewString()
		started := c.postKeyed(t, key, awkward)
		round := c.later(t, runs.answers(echo))
		time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
		server.signalled(t, syscall.SIGTERM, 10*time.Second)
		next := <-round
		if next.Status != "tool_call_required" {
			t.Fatalf("got %v for the round that ran, want its pause", next)
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		c.post(t, waits.answers(echo)).completes(t, "{'n': 1}\n")
		if again := c.post(t, runs.answers(echo)); again.raw != next.raw {
			t.Errorf(askedAgain, again, next)
		}
		if again := c.postKeyed(t, key, awkward); again.raw != started.raw {
			t.Errorf(askedAgain, again, started)
		}
		c.post(t, next.answers(echo)).completes(t, "{'n': 1}\n{'n': 2}\n")
		// What nobody goes on with is the last server's to end.
		server.signalled(t, syscall.SIGTERM, 10*time.Second)
		server.settings["DRAIN"] = "end"
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDrainTimeout stops a server while a program runs for longer than it may.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	for _, drain := range []string{"end", "keep"} {
		t.Run(drain, func(t *testing.T) {
			overSetups(t, eachEngine, func(t *testing.T, s setup) {
				server := serveAlone(t, s, with(quick(t), settings{"DRAIN": drain, "DRAIN_TIMEOUT": "1s"}))
				c := server.alice()
				answers := c.later(t, program{Code: "print('begun', flush=True)\nwhile True: pass"})
				time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
				family := server.family()
				server.signalled(t, syscall.SIGTERM, 6*time.Second)
				a := <-answers
				a.fails(t, http.StatusOK, cancelledText)
				if a.Stdout != "begun\n" {
					t.Errorf("stdout = %q, want what was printed so far", a.Stdout)
				}
				if err := server.cleared(family); err != nil {
					t.Error(err)
				}
				if err := server.start(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestInterrupted presses Ctrl-C: the whole foreground group gets the signal.
func TestInterrupted(t *testing.T) {
	overSetups(t, eachEngine|ordinaryUser, func(t *testing.T, s setup) {
		all := with(s.settings, quick(t))
		server, err := newServer(all)
		if err != nil {
			t.Fatal(err)
		}
		if server.attributes == nil {
			server.attributes = &syscall.SysProcAttr{}
		}
		server.attributes.Setpgid = true
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		stopAfter(t, server)
		c := server.alice()
		runs := c.pause(t, busy(1))
		c.pause(t, paused)
		round := c.later(t, runs.answers(echo))
		time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
		family := server.family()
		if err := syscall.Kill(-server.cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-server.exited:
		case <-time.After(stopTimeout):
			t.Fatalf("the server runs %v after Ctrl-C", stopTimeout)
		}
		if code := server.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the server ended with code %d, want 0", code)
		}
		if a := <-round; a.Status != "tool_call_required" {
			t.Errorf("got %v for the round that ran, want its pause", a)
		}
		if err := server.cleared(family); err != nil {
			t.Error(err)
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStoppedAtStart stops the server before it serves, sooner and later.
func TestStoppedAtStart(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, quick(t))
		server.signalled(t, syscall.SIGTERM, 10*time.Second)
		for n := range 8 {
			if err := server.launch(); err != nil {
				t.Fatal(err)
			}
			// It takes a while until it is the server, and not the shell that starts it.
			err := within(5*time.Second, func() error {
				if !catches(server.cmd.Process.Pid, syscall.SIGTERM) {
					return errors.New("the server has not begun")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(n*n) * 5 * time.Millisecond)
			family := server.family()
			server.signalled(t, syscall.SIGTERM, 10*time.Second)
			if err := server.cleared(family); err != nil {
				t.Error(err)
			}
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
	})
}

// catches reports whether a process has a handler for a signal.
func catches(pid int, number syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	// The shell that becomes the server catches nothing, and Go's runtime all.
	_, after, _ := bytes.Cut(status, []byte("SigCgt:"))
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(after[:min(len(after), 17)])), 16, 64)
	return err == nil && mask&(1<<(number-1)) != 0
}

// TestRollingRestart stops the server again and again while programs run; the next
// one goes on with them.
func TestRollingRestart(t *testing.T) {
	restarts := count(5, 50)
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, with(quick(t), settings{"DRAIN": "keep"}))
		stop := walkers(t, server.alice())
		for range restarts {
			time.Sleep(300 * time.Millisecond)
			server.signalled(t, syscall.SIGTERM, 15*time.Second)
			if err := server.start(); err != nil {
				t.Fatal(err)
			}
		}
		if lost := stop(); lost > 0 {
			t.Errorf("%d programs were lost, want none", lost)
		}
		server.signalled(t, syscall.SIGTERM, 15*time.Second)
		server.settings["DRAIN"] = "end"
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
	})
}
