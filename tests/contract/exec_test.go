package contract

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

const good = "0 - - -"

// TestExec runs programs without tools and checks all that the answer tells of them.
func TestExec(t *testing.T) {
	exit := func(code int) string { return fmt.Sprintf("%d - RE Exited with error status %[1]d", code) }
	cases := []struct {
		name, lang, code string
		args             []string
		stdout           string
		stderr           []string // in this order; without any, nothing
		how              string
	}{
		{name: "print", lang: "py", code: "print('é')", stdout: "é\n", how: good},
		{name: "python", lang: "python", code: "print(1)", stdout: "1\n", how: good},
		{name: "a program as the client wraps it", lang: "py", code: "import asyncio\nasync def main():\n    print(await asyncio.sleep(0, 1))\nasyncio.run(main())", stdout: "1\n", how: good},
		{name: "top-level await", lang: "py", code: "print(await asyncio.sleep(0, 1))", stdout: "1\n", how: good},
		{name: "main", lang: "py", code: "if __name__ == '__main__': print(1)", stdout: "1\n", how: good},
		{name: "pandas", lang: "py", code: "import pandas as pd\nprint(pd.Series([1, 2]).sum())", stdout: "3\n", how: good},
		{name: "arguments", lang: "py", code: "import sys\nprint(sys.argv[1:])", args: []string{"a b", "", "é'\""}, stdout: "['a b', '', 'é\\'\"']\n", how: good},
		{name: "comment", lang: "py", code: "#", how: good},
		{name: "raises", lang: "py", code: "print(1)\n1 / 0", stdout: "1\n", stderr: []string{"Traceback (most recent call last):\n  File \"<program>\", line 2, in <module>\n", "ZeroDivisionError: division by zero\n"}, how: exit(1)},
		{name: "syntax", lang: "py", code: "x = = 1", stderr: []string{"SyntaxError: invalid syntax"}, how: exit(1)},
		{name: "exit", lang: "py", code: "import sys\nsys.exit(3)", how: exit(3)},
		{name: "exit 0", lang: "py", code: "import sys\nsys.exit(0)", how: good},
		{name: "exit with a message", lang: "py", code: "import sys\nsys.exit('no')", stderr: []string{"no\n"}, how: exit(1)},
		{name: "exit without cleanup", lang: "py", code: "import os\nprint(1)\nos._exit(7)", stdout: "1\n", how: exit(7)},
		{name: "signal", lang: "py", code: "import os\nos.kill(os.getpid(), 9)", stderr: []string{"[sandbox] Killed by SIGKILL\n"}, how: "- SIGKILL SG Killed by SIGKILL"},
		{name: "flood", lang: "py", code: "while True: print('y' * 1000)", stdout: "*", stderr: []string{"[sandbox] stdout length exceeded\n"}, how: "- SIGKILL OL stdout length exceeded"},
		{name: "flood of errors", lang: "bash", code: "yes >&2", stderr: []string{"y\n[sandbox] stderr length exceeded\n"}, how: "- SIGKILL EL stderr length exceeded"},
		{name: "no tools", lang: "py", code: "print('ask' in globals())", stdout: "False\n", how: good},

		{name: "echo", lang: "bash", code: "echo é", stdout: "é\n", how: good},
		{name: "sh", lang: "sh", code: "echo 1; echo 2 >&2", stdout: "1\n", stderr: []string{"2\n"}, how: good},
		{name: "arguments of a script", lang: "bash", code: `printf '%s|' "$#" "$@"`, args: []string{"a b", "", "-c", "$x"}, stdout: "4|a b||-c|$x|", how: good},
		{name: "exit of a script", lang: "bash", code: "echo 1; exit 3", stdout: "1\n", how: exit(3)},
		{name: "signal of a script", lang: "bash", code: "kill -TERM $$", stderr: []string{"[sandbox] Killed by SIGTERM\n"}, how: "- SIGTERM SG Killed by SIGTERM"},
		{name: "the app looks for a missing file", lang: "bash", code: "cat -- '/mnt/data/missing'", stderr: []string{"No such file or directory"}, how: exit(1)},
		{name: "the app writes a file", lang: "py", code: "import pathlib\npathlib.Path('/mnt/data/a.txt').write_text('''x''')\nprint(open('a.txt').read())", stdout: "x\n", how: good},
		{name: "jq", lang: "bash", code: `echo '{"a":[1]}' | jq -c .a`, stdout: "[1]\n", how: good},
		{name: "left in the background", lang: "bash", code: "sleep 100 & echo end", stdout: "end\n", how: good},
		{name: "nothing of the runner", lang: "bash", code: "compgen -A function; compgen -e | grep -i -e fermata -e bash_env; echo end", stdout: "end\n", how: good},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				e := c.Exec(t, nil, harness.ExecRequest{Lang: tc.lang, Code: tc.code, Args: tc.args})
				if e.HTTPStatus != http.StatusOK || tc.stdout != "*" && e.Stdout != tc.stdout || e.How() != tc.how {
					t.Errorf("got %v\nwhich is %s, want 200, stdout %q and %s", e, e.How(), tc.stdout, tc.how)
				}
				harness.Contains(t, "stderr", e.Stderr, tc.stderr...)
				if len(tc.stderr) == 0 && e.Stderr != "" {
					t.Errorf("stderr = %q, want nothing", e.Stderr)
				}
				if !harness.IDForm.MatchString(e.Session) || !strings.HasPrefix(string(e.Files), "[") || e.WallTime == nil || *e.WallTime < 0 {
					t.Errorf("got %v, want a session, files and the time it took", e)
				}
			})
		}
		t.Run("expected profile", func(t *testing.T) {
			t.Parallel()
			if e := c.Exec(t, http.Header{"X-Codeapi-Expected-Profile": {"default"}}, harness.ExecRequest{Lang: "py", Code: "print(1)"}); e.Stdout != "1\n" {
				t.Errorf("got %v, want it run", e)
			}
		})
		t.Run("session", func(t *testing.T) {
			t.Parallel()
			session := rand.Text()[:21]
			if e := c.Exec(t, nil, harness.ExecRequest{Lang: "py", Code: "print(1)", Session: session}); e.Session != session {
				t.Errorf("session = %q, want %q", e.Session, session)
			}
			if e := c.Exec(t, nil, harness.ExecRequest{Lang: "py", Code: "print(1)", Session: "x"}); !harness.IDForm.MatchString(e.Session) {
				t.Errorf("session = %q, want a new one", e.Session)
			}
		})
	})
}

// TestExecLimits runs programs into their limits: stderr tells which one.
func TestExecLimits(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.SmallLimits).Alice()
		cases := []struct{ name, lang, code, stdout, note, how string }{
			{"a loop", "py", "print('so far')\nwhile True: pass", "so far\n", "Time limit exceeded", "- SIGKILL TO Time limit exceeded"},
			{"a sleep", "bash", "echo so far; sleep 100", "so far\n", "Time limit exceeded", "- SIGKILL TO Time limit exceeded"},
			{"children", "bash", "echo so far; trap '' TERM; (setsid sleep 100 &); wait; sleep 100", "so far\n", "Time limit exceeded", "- SIGKILL TO Time limit exceeded"},
			{"memory", "py", "print('so far')\nx = bytearray(1 << 30)", "so far\n", "Out of memory", "- SIGKILL RE Out of memory"},
		}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				e := c.Exec(t, nil, harness.ExecRequest{Lang: tc.lang, Code: tc.code, Timeout: 3000})
				if e.HTTPStatus != http.StatusOK || e.Stdout != tc.stdout || e.How() != tc.how {
					t.Errorf("got %v\nwhich is %s, want 200, stdout %q and %s", e, e.How(), tc.stdout, tc.how)
				}
				if want := "[sandbox] " + tc.note + "\n"; e.Stderr != want {
					t.Errorf("stderr = %q, want %q", e.Stderr, want)
				}
				if e.WallTime == nil || (*e.WallTime == 3000) != strings.Contains(tc.how, "Time limit") {
					t.Errorf("got %v, want wall_time 3000 if that was the limit", e)
				}
			})
		}
	})
}

// TestExecRefusals sends requests that the server refuses.
func TestExecRefusals(t *testing.T) {
	cases := []struct {
		name, body string
		header     http.Header
		want       int
		text       string
	}{
		{"no code", `{"lang":"py"}`, nil, 400, "Missing required field: code"},
		{"empty code", `{"lang":"py","code":""}`, nil, 400, "Code cannot be empty"},
		{"no language", `{"code":"1"}`, nil, 400, "Missing required field: lang"},
		{"not JSON", `{"code":`, nil, 400, "request body is not valid JSON at byte 8"},
		{"args", `{"lang":"py","code":"1","args":[1]}`, nil, 400, "args must be an array of strings"},
		{"timeout", `{"lang":"py","code":"1","timeout":999}`, nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"files", `{"lang":"py","code":"1","files":1}`, nil, 400, "files must be an array"},
		{"no key", `{"lang":"py","code":"1"}`, http.Header{"X-Api-Key": {""}}, 401, "Invalid or missing API key"},
		{"text", `{"lang":"py","code":"1"}`, http.Header{"Content-Type": {"text/plain"}}, 415, "Content-Type must be application/json"},
		{"stateful profile", `{"lang":"py","code":"1"}`, http.Header{"X-Codeapi-Expected-Profile": {"stateful"}}, 409, "execution_profile_mismatch"},
		{"two profiles", `{"lang":"py","code":"1"}`, http.Header{"X-Codeapi-Expected-Profile": {"default", "default"}}, 400, "invalid_execution_profile"},
		{"worker", `{"lang":"py","code":"1"}`, http.Header{"X-Librechat-Code-Worker-Id": {"w"}}, 400, "Code bridge worker routing requires the remote-bridge backend"},
		{"workspace", `{"lang":"bash","code":"1"}`, http.Header{"X-Librechat-Code-Workspace-Id": {"w"}}, 400, "Workspace selection requires an authenticated bridge worker"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				for _, prefix := range []string{"", "/v1"} {
					a, err := c.Request(t.Context(), http.MethodPost, prefix+harness.ExecPath, tc.header, tc.body)
					if err != nil {
						t.Fatal(err)
					}
					if a.HTTPStatus != tc.want || a.Error != tc.text {
						t.Errorf("got %v, want %d and the error %q", a, tc.want, tc.text)
					}
				}
			})
		}
		for _, lang := range []string{"js", "ts", "node", "c", "cpp", "java", "php", "rs", "go", "d", "f90", "r", "PY", "Bash", "zsh"} {
			e := c.Exec(t, nil, harness.ExecRequest{Lang: lang, Code: "1"})
			if want := "Unsupported language: " + lang; e.HTTPStatus != http.StatusBadRequest || e.Error != want || !strings.Contains(e.Raw, `"code":"unsupported_capability"`) {
				t.Errorf("got %v, want 400 and the error %q", e, want)
			}
		}
	})
}

// TestExecClientLeaves checks that a program ends when its client has closed the connection.
func TestExecClientLeaves(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"POOL_SIZE": "1"})
		idle := harness.Resting(server.Processes)
		for _, p := range []harness.ExecRequest{
			{Lang: "py", Code: "while True: pass"},
			{Lang: "bash", Code: "sleep 100 & sleep 100"},
		} {
			ctx, leave := context.WithCancel(t.Context())
			var gone sync.WaitGroup
			gone.Go(func() {
				if a, err := server.Alice().Request(ctx, http.MethodPost, harness.ExecPath, nil, p); err == nil {
					t.Errorf("%s: got %v, want the client to have left", p.Code, a)
				}
			})
			runs := func() error {
				if got := server.Processes(); got <= idle {
					return fmt.Errorf("%d processes, want more than %d", got, idle)
				}
				return nil
			}
			if err := harness.Within(harness.ClearTimeout, runs); err != nil {
				t.Errorf("%s: while it runs: %v", p.Code, err)
			}
			leave()
			gone.Wait()
			ends := func() error { return harness.AtMost("processes", server.Processes(), idle) }
			if err := harness.Within(harness.ClearTimeout, ends); err != nil {
				t.Errorf("%s: after its client has left: %v", p.Code, err)
			}
		}
	})
}

// TestExecIsCancelled cancels a program without tools while it runs.
func TestExecIsCancelled(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		id := uuid.NewString()
		answers := make(chan harness.Answer, 1)
		go func() {
			defer close(answers)
			a, err := c.Request(t.Context(), http.MethodPost, harness.ExecPath, identified(id), harness.ExecRequest{Lang: "bash", Code: "echo begun; sleep 100"})
			if err != nil {
				t.Error(err)
				return
			}
			answers <- a
		}()
		err := harness.Within(10*time.Second, func() error {
			// Another principal gets 403 as soon as the request is in flight. A cancel of theirs
			// that comes earlier has no effect on it.
			if a := cancelRequest(t, server.Bob(), id); a.HTTPStatus != http.StatusForbidden {
				return fmt.Errorf("got %v, want the request in flight", a)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		isExactly(t, cancelRequest(t, c, id), 202, cancelRequested)
		if a := <-answers; a.HTTPStatus != http.StatusOK || a.Status != "XX" || a.Stderr != "[sandbox] Execution request cancelled\n" {
			t.Errorf("got %v, want it cancelled", a)
		}
	})
}

// TestExecRetries checks that a program with an idempotency key runs once.
func TestExecRetries(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		header := harness.Keyed(uuid.NewString())
		p := harness.ExecRequest{Lang: "bash", Code: "echo $RANDOM$RANDOM$RANDOM; exit 3"}
		first := c.Exec(t, header, p)
		if again := c.Exec(t, header, p); first.HTTPStatus != http.StatusOK || again.Raw != first.Raw {
			t.Errorf("got %v and %v, want the same answer twice", first, again)
		}
		other, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic, header, p)
		if err != nil {
			t.Fatal(err)
		}
		other.Fails(t, http.StatusConflict, "Idempotency-Key was used for another request")
	})
}

// TestManyExecArguments sends arguments up to the limits and beyond them.
func TestManyExecArguments(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		run := func(lang, code string, args ...string) harness.Answer {
			t.Helper()
			a, err := c.Request(t.Context(), http.MethodPost, "/exec", nil, map[string]any{"lang": lang, "code": code, "args": args})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		most := make([]string, 1000)
		for i := range most {
			most[i] = strings.Repeat("x", 1048)
		}
		long := strings.Repeat("x", 128<<10-1)
		for _, lang := range []string{"py", "bash"} {
			code := map[string]string{"py": "import sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])))", "bash": `all="$*"; echo $# $(( ${#all} - $# + 1 ))`}[lang]
			if a := run(lang, code, most...); a.Stdout != "1000 1048000\n" {
				t.Errorf("%s: got %v, want all arguments", lang, a)
			}
			if a := run(lang, code, long, "x"); a.Stdout != "2 131072\n" {
				t.Errorf("%s: got %v, want all arguments", lang, a)
			}
		}
		for text, args := range map[string][]string{
			"Too many args provided. Maximum is 1000.":   append(most, ""),
			"args[1] is 131072 bytes, maximum is 131071": {"", long + "x"},
			"args have more than 1048576 bytes together": {long, long, long, long, long, long, long, long, "123456789"},
		} {
			if a := run("py", "print(1)", args...); a.HTTPStatus != 400 || a.Error != text {
				t.Errorf("got %v, want 400 %s", a, text)
			}
		}
	})
}

// TestTenMillionExecArguments sends far too many arguments: the server refuses them without
// taking the memory to decode them.
func TestTenMillionExecArguments(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	before := s.ResidentMiB(t)
	body := `{"lang":"py","code":"print(1)","args":[` + strings.Repeat(`"",`, 10_000_000) + `""]}`
	a, err := s.Alice().Request(t.Context(), http.MethodPost, "/exec", nil, body)
	if err != nil || a.HTTPStatus != 400 || a.Error != "Too many args provided. Maximum is 1000." {
		t.Errorf("got %v %v, want 400", a, err)
	}
	// While the body grows it takes its size twice, and once more until garbage is collected.
	if after := s.ResidentMiB(t); after > before+250 {
		t.Errorf("a body of 30 MB took the server from %d to %d MiB", before, after)
	}
}
