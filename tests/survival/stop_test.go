package survival

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// endBySignal sends a signal to a server and checks that it ends properly within closeLimit.
func endBySignal(t *testing.T, s *harness.Server, number syscall.Signal) {
	t.Helper()
	began := time.Now()
	s.Heirs = s.Family()[1:]
	if err := s.Cmd.Process.Signal(number); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Exited:
	case <-time.After(harness.StopTimeout + closeLimit):
		t.Fatalf("the server runs %v after %v", time.Since(began), number)
	}
	// Before the server handles signals, a signal ends it as it ends any process.
	status, _ := s.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	early := status.Signaled() && status.Signal() == number && s.Log.All() == ""
	if code := s.Cmd.ProcessState.ExitCode(); code != 0 && !early {
		t.Errorf("the server ended with code %d after %v, want 0", code, number)
	}
	if took := time.Since(began); took > closeLimit {
		t.Errorf("the server took %v to end, want at most %v", took, closeLimit)
	}
}

// sendLater sends a request in the background and returns a channel for the answer.
func sendLater(t *testing.T, c harness.Client, body any) <-chan harness.Answer {
	answers := make(chan harness.Answer, 1)
	go func() {
		a, err := c.Send(t.Context(), body)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	return answers
}

// busy returns a program that runs for a while after its first call, from begun on, and pauses
// again.
func busy(begun harness.Mark) harness.Program {
	return harness.Program{Code: "import time\nx = await ask(n=1)\n" + begun.Line() + "time.sleep(1)\nprint(x)\nprint(await ask(n=2))", Tools: harness.Tools("ask")}
}

// TestDrainEnds sends SIGTERM to a server with default settings: what runs is answered, what is
// paused ends.
func TestDrainEnds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Quick(t))
		c := server.Alice()
		begun := harness.NewMark()
		waits, runs := c.Pause(t, harness.AskOnce), c.Pause(t, busy(begun))
		round := sendLater(t, c, runs.Continue(harness.Echo))
		start := sendLater(t, c, harness.Program{Code: "import time\n" + begun.Line() + "time.sleep(1)\nprint('ran')"})
		begun.Await(t, 2)
		seen := tells(t, c, nil, waits)
		family := server.Family()
		endBySignal(t, server, syscall.SIGTERM)
		next := <-round
		if next.Status != "tool_call_required" {
			t.Errorf("got %v for the round that ran, want its pause", next)
		}
		ran := <-start
		ran.Completes(t, "ran\n")
		if err := server.Cleared(family); err != nil {
			t.Error(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for _, stopped := range []harness.Answer{waits, next} {
			over := c.Post(t, stopped.Continue(harness.Echo))
			over.Fails(t, 400, "Execution expired")
			if over.Reason != "cancelled" || over.Detail != "The server was stopped (FERMATA_DRAIN=end)" {
				t.Errorf("got %v, want to be told that the server was stopped", over)
			}
		}
		ends(t, c, seen, "cancelled")
		ends(t, c, &harness.Journal{ID: next.Execution()}, "cancelled")
		tells(t, c, nil, ran)
		c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	})
}

// TestDrainKeeps stops a server whose paused programs are handed over to the next one.
func TestDrainKeeps(t *testing.T) {
	harness.OverSetups(t, harness.EachStore|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{"DRAIN": "keep"}))
		c := server.Alice()
		begun := harness.NewMark()
		waits, runs := c.Pause(t, harness.AskOnce), c.Pause(t, busy(begun))
		key := uuid.NewString()
		started := c.PostKeyed(t, key, harness.Awkward)
		round := sendLater(t, c, runs.Continue(harness.Echo))
		begun.Await(t, 1)
		endBySignal(t, server, syscall.SIGTERM)
		next := <-round
		if next.Status != "tool_call_required" {
			t.Fatalf("got %v for the round that ran, want its pause", next)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		seen := tells(t, c, nil, next)
		c.Post(t, waits.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		if again := c.Post(t, runs.Continue(harness.Echo)); again.Raw != next.Raw {
			t.Errorf(harness.AskedAgain, again, next)
		}
		if again := c.PostKeyed(t, key, harness.Awkward); again.Raw != started.Raw {
			t.Errorf(harness.AskedAgain, again, started)
		}
		end := c.Post(t, next.Continue(harness.Echo))
		end.Completes(t, "{'n': 1}\n{'n': 2}\n")
		tells(t, c, seen, end)
		// The last server has to end what nobody continues.
		endBySignal(t, server, syscall.SIGTERM)
		server.Settings["DRAIN"] = "end"
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDrainTimeout stops a server while a program runs for longer than DRAIN_TIMEOUT allows.
func TestDrainTimeout(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		for _, drain := range []string{"end", "keep"} {
			t.Run(drain, func(t *testing.T) {
				t.Parallel()
				server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{"DRAIN": drain, "DRAIN_TIMEOUT": "1s"}))
				c := server.Alice()
				begun := harness.NewMark()
				answers := sendLater(t, c, harness.Program{Code: "print('begun', flush=True)\n" + begun.Line() + "while True: pass"})
				begun.Await(t, 1)
				family := server.Family()
				endBySignal(t, server, syscall.SIGTERM)
				a := <-answers
				a.Fails(t, http.StatusOK, harness.CancelledText)
				if a.Stdout != "begun\n" {
					t.Errorf("stdout = %q, want what was printed so far", a.Stdout)
				}
				if err := server.Cleared(family); err != nil {
					t.Error(err)
				}
				if err := server.Start(); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

// TestInterrupted does what Ctrl-C in a terminal does: the whole process group gets the signal.
func TestInterrupted(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		all := harness.With(s.Settings, harness.Quick(t))
		server, err := harness.NewServer(all)
		if err != nil {
			t.Fatal(err)
		}
		if server.Attributes == nil {
			server.Attributes = &syscall.SysProcAttr{}
		}
		server.Attributes.Setpgid = true
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		harness.StopAfter(t, server)
		c := server.Alice()
		begun := harness.NewMark()
		runs := c.Pause(t, busy(begun))
		c.Pause(t, harness.AskOnce)
		round := sendLater(t, c, runs.Continue(harness.Echo))
		begun.Await(t, 1)
		family := server.Family()
		if err := syscall.Kill(-server.Cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-server.Exited:
		case <-time.After(harness.StopTimeout):
			t.Fatalf("the server runs %v after Ctrl-C", harness.StopTimeout)
		}
		if code := server.Cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the server ended with code %d, want 0", code)
		}
		if a := <-round; a.Status != "tool_call_required" {
			t.Errorf("got %v for the round that ran, want its pause", a)
		}
		if err := server.Cleared(family); err != nil {
			t.Error(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStoppedAtStart stops a server at different moments of its start.
func TestStoppedAtStart(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Quick(t))
		endBySignal(t, server, syscall.SIGTERM)
		for n := range 8 {
			if err := server.Launch(); err != nil {
				t.Fatal(err)
			}
			// At first the process is still the shell that becomes the server.
			err := harness.Within(answerLimit, func() error {
				if !catches(server.Cmd.Process.Pid, syscall.SIGTERM) {
					return errors.New("the server has not begun")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(n*n) * 5 * time.Millisecond)
			family := server.Family()
			endBySignal(t, server, syscall.SIGTERM)
			if err := server.Cleared(family); err != nil {
				t.Error(err)
			}
			// To stop early is no trouble.
			if log := server.Log.All(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "sandbox process said") {
				t.Errorf("the log has noise:\n%s", log)
			}
		}
		if err := server.Start(); err != nil {
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
	// The shell has no handlers, Go's runtime has one for each signal.
	_, after, _ := bytes.Cut(status, []byte("SigCgt:"))
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(after[:min(len(after), 17)])), 16, 64)
	return err == nil && mask&(1<<(number-1)) != 0
}

// TestRollingRestart stops and starts a server again and again while programs run. None is lost.
func TestRollingRestart(t *testing.T) {
	restarts := harness.Count(5, 50)
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{"DRAIN": "keep"}))
		stop := walkers(t, server.Alice())
		for range restarts {
			time.Sleep(300 * time.Millisecond)
			endBySignal(t, server, syscall.SIGTERM)
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		if lost := stop(); lost > 0 {
			t.Errorf("%d programs were lost, want none", lost)
		}
		endBySignal(t, server, syscall.SIGTERM)
		server.Settings["DRAIN"] = "end"
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStop checks that a server that is asked to stop still answers the requests in flight.
func TestStop(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		c.Pause(t, harness.AskOnce)
		begun := harness.NewMark()
		answers := make(chan harness.Answer, 1)
		go func() {
			a, err := c.Send(t.Context(), harness.Program{Code: "import time\nprint('begun', flush=True)\n" + begun.Line() + "time.sleep(1)\nprint('ended')"})
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		begun.Await(t, 1)
		family := server.Family()
		if err := server.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		a := <-answers
		a.Completes(t, "begun\nended\n")
		select {
		case <-server.Exited:
		case <-time.After(harness.StopTimeout):
			t.Fatalf("the server runs %v after SIGTERM", harness.StopTimeout)
		}
		if code := server.Cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the server ended with code %d, want 0", code)
		}
		if err := server.Cleared(family); err != nil {
			t.Error(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		server.Alice().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	})
}
