package survival

import (
	"context"
	"net/http"
	"syscall"
	"testing"

	"fermata/tests/harness"
)

// executionOf returns the execution that an answer names.
func executionOf(t *testing.T, a harness.Answer) string {
	t.Helper()
	id := a.Header.Get("Fermata-Execution")
	if id == "" {
		t.Fatalf("answer %v names no execution", a)
	}
	return id
}

// TestLogTellsExpiry checks that a pause that runs out leaves a line, with how long it was.
func TestLogTellsExpiry(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.With(harness.JSONLog, harness.Settings{"PAUSE_TTL": "1s"}))
		a := server.Alice().Pause(t, harness.AskOnce)
		line := server.Log.AwaitLines(t, 1, harness.LogLine{
			"msg": "a pause ran out: no continuation came in time", "execution": executionOf(t, a), "session": a.Session,
			"principal": "alice", "outcome": "expired", "level": "INFO", "round": 1.0, "calls": 1.0,
		})[0]
		if waited := line.Number("waited_ms"); waited < 1000 {
			t.Errorf("line %v, want a pause of a second", line)
		}
	})
}

// TestLogTellsStop checks that a server that stops tells what becomes of paused and of running
// programs.
func TestLogTellsStop(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		for drain, message := range map[string]string{
			"end": "a paused execution was ended because the server stops", "keep": "a paused execution is kept for the next server",
		} {
			t.Run(drain, func(t *testing.T) {
				server := harness.ServeAlone(t, s, harness.With(harness.JSONLog, harness.Settings{"DRAIN": drain, "DRAIN_TIMEOUT": "1s"}))
				first, second := server.Alice().Pause(t, harness.AskOnce), server.Alice().Pause(t, harness.AskOnce)
				begun := harness.NewMark()
				running := sendLater(t, server.Alice(), harness.Program{Code: begun.Line() + "while True: pass"})
				begun.Await(t, 1)
				endBySignal(t, server, syscall.SIGTERM)
				for _, a := range []harness.Answer{first, second} {
					server.Log.AwaitLines(t, 1, harness.LogLine{"msg": message, "execution": executionOf(t, a), "round": 1.0})
				}
				server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "execution": executionOf(t, <-running), "outcome": "cancelled"})
				if noise := server.Log.Lines(harness.LogLine{"msg": "sandbox process said", "level": "WARN"}); len(noise) > 0 {
					t.Errorf("the log has noise: %v", noise)
				}
				if err := server.Start(); err != nil {
					t.Fatal(err)
				}
				if drain == "keep" {
					for _, a := range []harness.Answer{first, second} {
						server.Log.AwaitLines(t, 1, harness.LogLine{"msg": takenOver, "execution": executionOf(t, a), "state": "paused"})
					}
					server.Alice().Post(t, first.Continue(harness.Value("1"))).Completes(t, "1\n")
					server.Alice().Post(t, second.Continue(harness.Value("1"))).Completes(t, "1\n")
					server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "execution": executionOf(t, first), "outcome": "completed"})
				}
			})
		}
	})
}

// takenOver is the message about an execution that a server goes on with.
const takenOver = "took an execution over from a server that has died"

// TestLogTellsTakeOver checks that a server tells which executions it takes over from one that was
// killed, which are lost, and how a program ends whose client has gone.
func TestLogTellsTakeOver(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.JSONLog)
		c := server.Alice()
		paused := c.Pause(t, harness.AskOnce)
		begun := harness.NewMark()
		running := c.Pause(t, harness.Program{Code: "await ask()\n" + begun.Line() + "import time\ntime.sleep(2)\n", Tools: harness.Tools("ask")})
		go func() { // Its client waits for the answer when the server is killed.
			_, _ = c.Send(context.WithoutCancel(t.Context()), running.Continue(harness.Value("1")))
		}()
		begun.Await(t, 1)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		line := server.Log.AwaitLines(t, 1, harness.LogLine{"msg": takenOver, "execution": executionOf(t, paused), "principal": "alice", "state": "paused", "round": 1.0})[0]
		if line.Text("from") == "" {
			t.Errorf("line %v does not say from which server", line)
		}
		server.Log.AwaitLines(t, 1, harness.LogLine{"msg": takenOver, "execution": executionOf(t, running), "state": "running"})
		server.Log.AwaitLines(t, 1, harness.LogLine{
			"msg": "a program came to rest and no request waits for its answer", "execution": executionOf(t, running), "outcome": "completed",
		})
		server.Alice().Post(t, paused.Continue(harness.Value("1"))).Completes(t, "1\n")
	})
}

// killSandboxes kills all processes below a server.
func killSandboxes(s *harness.Server) {
	for _, p := range s.Family()[1:] {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // It may have ended with another one.
	}
}

// TestLogTellsLostSandbox checks that the log tells of a sandbox that ends while its program runs or
// waits.
func TestLogTellsLostSandbox(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.With(harness.JSONLog, harness.Settings{"POOL_SIZE": "0"}))
		a := server.Alice().Pause(t, harness.AskOnce)
		killSandboxes(server)
		line := server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "a paused program lost its sandbox", "execution": executionOf(t, a), "level": "WARN"})[0]
		if line.Text("outcome") != "expired" {
			t.Errorf("line %v, want it expired", line)
		}
		begun := harness.NewMark()
		running := sendLater(t, server.Alice(), harness.Program{Code: begun.Line() + "while True: pass"})
		begun.Await(t, 1)
		killSandboxes(server)
		lost := <-running
		server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "a running program lost its sandbox", "execution": executionOf(t, lost), "level": "WARN"})
		server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "execution": executionOf(t, lost), "outcome": "sandbox_lost"})
	})
}

// TestLogTellsHandOver checks that the lines of two servers tell which of them ran a step, and how it
// was left.
func TestLogTellsHandOver(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		pause := c[0].Pause(t, harness.AskOnce)
		execution := executionOf(t, pause)
		c[1].Post(t, pause.Continue(harness.Value("1"))).Completes(t, "1\n")
		line := servers[1].Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "execution": execution, "outcome": "completed"})[0]
		if line.Text("by") == "" || line.Number("round") != 1 || line.Number("calls") != 1 || line.Number("ran_ms") < 0 || line["repeated"] != nil {
			t.Errorf("line %v, want the server that ran the step, and what it knows", line)
		}
		servers[0].Log.AwaitLines(t, 1, harness.LogLine{
			"msg": "request", "execution": execution, "outcome": "completed", "route": "/internal/resume", "principal": "alice", "round": 1.0,
		})
		c[1].Post(t, pause.Continue(harness.Value("1"))).Completes(t, "1\n")
		servers[1].Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "execution": execution, "repeated": true})
		a, err := harness.Client{URL: servers[0].URL}.Request(t.Context(), http.MethodPost, "/internal/resume", nil, `{}`)
		if err != nil || a.HTTPStatus != http.StatusUnauthorized {
			t.Fatalf("got %v (%v), want 401", a, err)
		}
		line = servers[0].Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "status": 401.0, "level": "WARN"})[0]
		if line.Text("why") == "" || line.Text("peer") == "" {
			t.Errorf("line %v, want why and from where", line)
		}
	})
}

// TestLogTellsLongWait checks that a start that waits long for a sandbox leaves a line, and that its
// request tells why it got none.
func TestLogTellsLongWait(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.With(harness.JSONLog, harness.Settings{"MAX_SANDBOXES": "1", "POOL_SIZE": "1", "QUEUE_TIMEOUT": "1500ms"}))
		server.Alice().Pause(t, harness.AskOnce)
		a := server.Alice().Post(t, harness.Program{Code: "print(1)"})
		if a.HTTPStatus != http.StatusServiceUnavailable && a.HTTPStatus != http.StatusTooManyRequests {
			t.Fatalf("got %v, want no sandbox", a)
		}
		line := server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "a start waited long for a sandbox", "principal": "alice", "kind": "plain", "level": "WARN"})[0]
		if line.Number("waited_ms") < 1500 {
			t.Errorf("line %v, want the time of the queue", line)
		}
		line = server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "request_id": a.Header.Get("X-Request-Id")})[0]
		if line.Text("reason") == "" {
			t.Errorf("line %v does not tell the reason", line)
		}
	})
}
