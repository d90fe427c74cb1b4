package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tests/harness"
)

// TestRunProgram runs programs and looks at each member of their results.
func TestRunProgram(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		session := connect(t, harness.Serve(t, s, nil).Alice(), nil)
		r := run(t, session, "run_program", map[string]any{"code": "import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('a.txt', 'w').write('of the file')\n{'n': 1}"})
		if r.Failed || r.Status != "completed" || r.Stdout != "out\n" || r.Stderr != "err\n" || string(r.Value) != `{"n":1}` || r.Execution == "" {
			t.Fatalf("a program: %+v", r)
		}
		if len(r.Files) != 1 || r.Files[0].Path != "a.txt" {
			t.Errorf("its files: %+v", r.Files)
		}
		again := run(t, session, "run_program", map[string]any{"language": "bash", "code": "cat a.txt", "session": r.Session})
		if again.Stdout != "of the file" || again.Session != r.Session {
			t.Errorf("a shell script in the same session: %+v", again)
		}
		raised := run(t, session, "run_program", map[string]any{"code": "print('before')\n1/0"})
		if !raised.Failed || raised.Status != "error" || raised.Stdout != "before\n" || !strings.Contains(raised.Error, "ZeroDivisionError") {
			t.Errorf("a program that raises: %+v", raised)
		}
		slow := run(t, session, "run_program", map[string]any{"code": "while True: pass", "timeout": 1000})
		if !slow.Failed || slow.Status != "timed_out" {
			t.Errorf("a program that takes too long: %+v", slow)
		}
		long := run(t, session, "run_program", map[string]any{"code": "print('a' * 100000 + 'z')"})
		if len(long.Stdout) > 41_000 || !strings.Contains(long.Stdout, "bytes are left out here") || !strings.HasSuffix(long.Stdout, "z\n") {
			t.Errorf("long output: %d bytes", len(long.Stdout))
		}
	})
}

// TestArguments refuses what the input schemas forbid, in words that name the argument.
func TestArguments(t *testing.T) {
	session := connect(t, harness.Serve(t, harness.ProcessSetup(), nil).Alice(), nil)
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"run_program", map[string]any{}, "code is required"},
		{"run_program", map[string]any{"code": 1}, "code"},
		{"run_program", map[string]any{"code": "1", "lang": "bash"}, "lang"},
		{"run_program", map[string]any{"code": "1", "language": "ruby"}, "language must be python or bash"},
		{"run_program", map[string]any{"code": "1", "timeout": 10}, "timeout is in milliseconds, from 1000 to 300000"},
		{"run_program", map[string]any{"code": "1", "wait_ms": -1}, "wait_ms is in milliseconds"},
		{"run_program", map[string]any{"code": "1", "session": "../x"}, "session is not one of ours"},
		{"run_program", map[string]any{"code": "1", "request_key": strings.Repeat("k", 129)}, "request_key has 129 bytes, at most 128"},
		{"wait_for_program", map[string]any{}, "execution is required"},
		{"wait_for_program", map[string]any{"execution": "../../x"}, "no such execution"},
		{"wait_for_program", map[string]any{"execution": "x", "wait_ms": 60001}, "wait_ms is in milliseconds, from 0 to 60000"},
		{"list_files", map[string]any{"session": "x"}, "session is required, and is not one of ours"},
		{"read_file", map[string]any{"session": "aaaaaaaaaaaaaaaaaaaaa", "path": "x"}, "no file at this path"},
		{"search_tools", map[string]any{"detail": "everything"}, "detail must be names, summary or full"},
		{"search_tools", map[string]any{"limit": 51}, "limit must be from 1 to 50"},
	} {
		if r := run(t, session, c.tool, c.arguments); !r.Failed || !strings.Contains(r.Text, c.want) {
			t.Errorf("%s %v: %q, want %q", c.tool, c.arguments, r.Text, c.want)
		}
	}
}

// TestImpatience leaves programs running, and waits for them by and by.
func TestImpatience(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		session := connect(t, server.Alice(), nil)
		r := run(t, session, "run_program", map[string]any{"code": "import time\nprint('begun', flush=True)\ntime.sleep(3)\n'value'", "wait_ms": 500})
		if r.Failed || r.Status != "running" || r.Execution == "" {
			t.Fatalf("an impatient client: %+v", r)
		}
		if still := run(t, session, "wait_for_program", map[string]any{"execution": r.Execution, "wait_ms": 500}); still.Status != "running" || still.Stdout != "begun\n" {
			t.Errorf("it waits a little: %+v", still)
		}
		if other := run(t, connect(t, server.Bob(), nil), "wait_for_program", map[string]any{"execution": r.Execution, "wait_ms": 0}); !other.Failed || !strings.Contains(other.Text, "no such execution") {
			t.Errorf("another principal: %+v", other)
		}
		for range 2 {
			if end := run(t, session, "wait_for_program", map[string]any{"execution": r.Execution}); end.Failed || end.Status != "completed" || string(end.Value) != `"value"` {
				t.Errorf("it waits: %+v", end)
			}
		}
	})
}

// TestRequestKey asks again with a key: the program runs once, and the key belongs to it.
func TestRequestKey(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		session := connect(t, c, nil)
		arguments := map[string]any{"code": "import uuid\nprint(uuid.uuid4())", "request_key": "key-1"}
		first, second := run(t, session, "run_program", arguments), run(t, session, "run_program", arguments)
		if first.Status != "completed" || first.Execution != second.Execution || first.Stdout != second.Stdout {
			t.Errorf("twice with one key: %+v, then %+v", first, second)
		}
		arguments["code"] = "print(1)"
		if other := run(t, session, "run_program", arguments); !other.Failed || !strings.Contains(other.Text, "request_key was used for another program") {
			t.Errorf("another program with the key: %+v", other)
		}
		// Also who asks again waits no longer than it says.
		endless := map[string]any{"code": "import time\ntime.sleep(250)", "timeout": 300_000, "wait_ms": 0, "request_key": "key-2"}
		first, second = run(t, session, "run_program", endless), run(t, session, "run_program", endless)
		if first.Status != "running" || second.Status != "running" || first.Execution != second.Execution {
			t.Errorf("twice with one key, and without a wait: %+v, then %+v", first, second)
		}
		if a, err := c.Request(t.Context(), http.MethodPost, "/executions/"+first.Execution+"/cancel", nil, nil); a.HTTPStatus != http.StatusAccepted {
			t.Errorf("its cancelling: %v, %v", a, err)
		}
		delete(arguments, "request_key")
		if a, b := run(t, session, "run_program", arguments), run(t, session, "run_program", arguments); a.Execution == b.Execution {
			t.Errorf("without a key the same program ran once: %+v", a)
		}
	})
}

// TestCancel cancels a call: its program ends.
func TestCancel(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		began := make(chan struct{}, 100)
		session := connect(t, c, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if strings.Contains(r.Params.Message, "printed: begun") {
				began <- struct{}{}
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		params := &sdk.CallToolParams{Name: "run_program", Arguments: map[string]any{"code": "import time\nprint('begun', flush=True)\ntime.sleep(200)", "timeout": 300000}}
		params.SetProgressToken("p")
		ended := make(chan error, 1)
		go func() {
			_, err := session.CallTool(ctx, params)
			ended <- err
		}()
		select {
		case <-began:
		case err := <-ended:
			t.Fatalf("the program has not run: %v", err)
		case <-time.After(20 * time.Second):
			t.Fatal("nothing was told of the progress")
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("a cancelled call has a result")
		}
		if err := harness.Within(10*time.Second, func() error { return listed(t, c, "cancelled") }); err != nil {
			t.Error(err)
		}
	})
}
