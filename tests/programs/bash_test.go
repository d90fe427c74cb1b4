package programs

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// runScripts is harness.RunCases for shell scripts.
func runScripts(t *testing.T, c harness.Client, cases []harness.Case) {
	cases = slices.Clone(cases) // The other setups have them, too.
	for i := range cases {
		cases[i].Lang = "bash"
	}
	harness.RunCases(t, c, cases)
}

// TestBashCalls runs scripts that call tools.
func TestBashCalls(t *testing.T) {
	cases := []harness.Case{
		{
			Name: "the client's example", Tools: harness.Tools("query_database"),
			Code: `
				data=$(query_database '{"sql": "SELECT * FROM users"}')
				echo "$data" | jq '.[] | .name'
			`,
			Answer: harness.Value(`[{"name":"Ada"},{"name":"Bob"}]`),
			Stdout: "\"Ada\"\n\"Bob\"\n", Batches: []int{1},
		},
		{
			Name: "the client's example of parallel calls, behind its guard", Tools: harness.Tools("web-search"),
			Code: `
				: &
				wait "$!"
				{ sf=$(web_search '{"query": "SF weather"}'); printf '%s\n' "$sf" > /mnt/data/sf.json; } &
				{ ny=$(web_search '{"query": "NY weather"}'); printf '%s\n' "$ny" > /mnt/data/ny.json; } &
				wait
				echo "SF: $(jq -r .query /mnt/data/sf.json)"
				echo "NY: $(jq -r .query /mnt/data/ny.json)"
			`,
			Stdout: "SF: SF weather\nNY: NY weather\n", Batches: []int{2},
		},
		{
			Name: "variables outlive pauses", Tools: harness.Tools("ask"),
			Code: `
				total=0
				for n in 1 2 3; do
				    total=$((total + $(ask "{\"n\":$n}" | jq .n)))
				done
				echo $total
			`,
			Stdout: "6\n", Batches: []int{1, 1, 1},
		},
		{
			Name: "20 rounds", Tools: harness.Tools("ask"),
			Code:   `for n in {1..20}; do ask >/dev/null; done; echo $n`,
			Stdout: "20\n", Batches: slices.Repeat([]int{1}, 20),
		},
		{
			Name: "20 at once", Tools: harness.Tools("ask"),
			Code: `
				for n in {1..20}; do ask "{\"n\":$n}" >$n & done
				wait
				cat $(seq 20) | jq -s 'map(.n) | add'
			`,
			Stdout: "210\n", Batches: []int{20},
		},
		{
			Name: "many of them, more than there can be processes", Tools: harness.Tools("ask"),
			Code:   `for n in {1..5}; do for n in {1..30}; do ask >>all & done; wait; done; wc -l <all`,
			Stdout: "150\n", Batches: slices.Repeat([]int{30}, 5),
		},
		{
			Name: "chains side by side", Tools: harness.Tools("ask"),
			Code: `
				chain() { for step in 1 2 3; do ask >/dev/null; done; }
				chain & chain & wait
				echo end
			`,
			Stdout: "end\n", Batches: []int{2, 2, 2},
		},
		{
			Name: "in children", Tools: harness.Tools("ask"),
			Code:   `printf '1\n2\n3\n' | xargs -P 3 -I{} bash -c 'ask "{\"n\":{}}" >/dev/null'; echo end`,
			Stdout: "end\n", Batches: []int{3},
		},
		{
			Name: "beside one that is busy", Tools: harness.Tools("ask"),
			Code: `
				while :; do :; done &
				ask
				kill $!
			`,
			Stdout: "{}\n", Batches: []int{1},
		},
		{
			Name: "beside one that sleeps", Tools: harness.Tools("ask"),
			Code: `
				sleep 0.3 &
				ask
				wait
				ask
			`,
			Stdout: "{}\n{}\n", Batches: []int{1, 1},
		},
		{Name: "no call", Code: "echo é; echo no >&2", Stdout: "é\n", Stderr: []string{"no"}},
		{Name: "no call, with tools", Code: "echo 1", Tools: harness.Tools("ask"), Stdout: "1\n", Batches: []int{}},
		{Name: "names", Code: "get_weather; _1_x; for_tool; tool; echo", Tools: harness.Tools("get.weather", "1-x", "for", "名前", "echo"), Stdout: "{}\n{}\n{}\n{}\n{}\n"},
		{Name: "locale", Code: `x=é; echo "${#x} $LC_ALL"`, Stdout: "1 C.UTF-8\n"},
		{Name: "no white space in results", Code: "ask", Tools: harness.Tools("ask"), Answer: harness.Value(`{ "a" : [ 1 , "x  y" ] }`), Stdout: "{\"a\":[1,\"x  y\"]}\n"},
		{
			Name: "strings are quoted", Code: `x=$(ask); echo "$x"; jq -r . <<<"$x"`, Tools: harness.Tools("ask"),
			Answer: harness.Value(`"a\"b"`), Stdout: "\"a\\\"b\"\na\"b\n",
		},
		{
			Name: "numbers keep their digits", Tools: harness.Tools("ask"),
			Code:   `ask '{"a":12345678901234567890,"b":1.10,"c":1E400}'`,
			Stdout: `{"a":12345678901234567890,"b":1.10,"c":1E400}` + "\n",
		},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		runScripts(t, harness.Serve(t, s, s.Libraries()).Alice(), cases)
	})
}

// TestBashErrors runs scripts that fail, and scripts whose tools fail.
func TestBashErrors(t *testing.T) {
	const exit1 = "Sandbox exited with code 1"
	cases := []harness.Case{
		{
			Name: "caught", Code: "ask || echo caught", Tools: harness.Tools("ask"), Answer: harness.Failure("no such\ncity"),
			Stdout: `{"error":"no such\ncity"}` + "\ncaught\n", Stderr: []string{"no such\ncity\n"},
		},
		{
			Name: "in a variable", Code: `x=$(ask 2>/dev/null) || echo "$x" | jq -r .error`, Tools: harness.Tools("ask"), Answer: harness.Failure("'$(exit)\""),
			Stdout: "'$(exit)\"\n",
		},
		{Name: "not caught", Code: "set -e\nask >/dev/null\necho no", Tools: harness.Tools("ask"), Answer: harness.Failure("no"), Error: exit1, Stderr: []string{"no\n"}},
		{Name: "without a message", Code: "ask || true", Tools: harness.Tools("ask"), Answer: harness.Failure(""), Stdout: `{"error":"tool execution failed"}` + "\n", Stderr: []string{"tool execution failed"}},
		{
			Name: "one of several", Tools: harness.Tools("ask", "fail"),
			Code: `ask >a & fail >b 2>/dev/null & wait; cat a b`,
			Answer: func(c harness.Call) harness.Result {
				if c.Name == "fail" {
					return harness.Failure("no")(c)
				}
				return harness.Echo(c)
			},
			Stdout: "{}\n{\"error\":\"no\"}\n", Batches: []int{2},
		},
		{
			Name: "input is no object", Code: "ask text || echo $?", Tools: harness.Tools("ask"), Batches: []int{},
			Stdout: "1\n", Stderr: []string{"tool input for ask must be a JSON object, got: text\n"},
		},
		{Name: "exit", Code: "echo 1; exit 3", Stdout: "1\n", Error: "Sandbox exited with code 3"},
		{Name: "exit of a child", Code: "bash -c 'kill -9 $$'", Error: "Sandbox exited with code 137", Stderr: []string{"Killed"}},
		{Name: "exit by a signal", Code: "kill -TERM $$", Error: "Sandbox exited with code -15"},
		{Name: "no such command", Code: "nosuch", Error: "Sandbox exited with code 127", Stderr: []string{"line 1: nosuch: command not found"}},
		{Name: "no such file", Code: "cat nosuch", Error: exit1, Stderr: []string{"cat: nosuch: No such file or directory"}},
		{Name: "syntax", Code: "echo 1\nif", Stdout: "1\n", Error: "Sandbox exited with code 2", Stderr: []string{"line 3: syntax error"}},
		{Name: "too many rounds", Code: "while :; do ask; done >/dev/null", Tools: harness.Tools("ask"), Error: "Exceeded maximum round trips (20)", Stderr: []string{"Exceeded maximum round trips (20): FERMATA_MAX_ROUNDS"}},
		{Name: "too much output", Code: "yes", Error: "stdout length exceeded", Stdout: strings.Repeat("y\n", 1<<19)},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		runScripts(t, harness.Serve(t, s, harness.With(harness.Settings{"ERROR_STYLE": "inline"}, s.Libraries())).Alice(), cases)
	})
}

// TestBashPartialResults checks that a call without a result stays pending, round after round.
func TestBashPartialResults(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		a := c.Pause(t, harness.Program{Lang: "bash", Tools: harness.Tools("ask"), Code: `
			for n in 1 2 3; do ask "{\"n\":$n}" >$n & done; wait; cat 1 2 3`})
		inputs := map[string]string{}
		for _, call := range a.Calls {
			inputs[call.ID] = call.CompactInput()
		}
		for left := len(a.Calls); left > 1; left-- {
			next := a.Continue(harness.Echo)
			next.Results = next.Results[left-1:]
			a = c.Pause(t, next)
			if len(a.Calls) != left-1 {
				t.Fatalf("%d calls are pending, want %d", len(a.Calls), left-1)
			}
			for _, call := range a.Calls {
				if got := call.CompactInput(); inputs[call.ID] != got {
					t.Errorf("%s has the input %s now, want %s", call.ID, got, inputs[call.ID])
				}
			}
		}
		c.Post(t, a.Continue(harness.Echo)).Completes(t, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n")
	})
}

// TestBashEnds checks that no process of a script outlives it, and that a pause stops all of them.
func TestBashEnds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		t.Run("timeout", func(t *testing.T) {
			t.Parallel()
			server := harness.ServeAlone(t, s, harness.Settings{"POOL_SIZE": "1"})
			idle := harness.Resting(server.Processes)
			for _, code := range []string{
				"echo begun; sleep 100",
				"echo begun; while :; do :; done",
				"echo begun; trap '' TERM INT; (setsid sleep 100 & ); sleep 100 & wait",
			} {
				began := time.Now()
				a := server.Alice().Post(t, harness.Program{Lang: "bash", Code: code, Timeout: 1000})
				a.Fails(t, http.StatusRequestTimeout, "Execution timeout")
				if a.Stdout != "begun\n" {
					t.Errorf("%s: stdout = %q, want what was printed", code, a.Stdout)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%s: the answer came after %v, want it after a second", code, took)
				}
			}
			err := harness.Within(harness.ClearTimeout, func() error { return harness.AtMost("processes", server.Processes(), idle) })
			if err != nil {
				t.Error(err)
			}
		})
		t.Run("what is left in the background", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			began := time.Now()
			// The script ends soon, but its call may be sent before that.
			a, _ := c.Run(t, harness.Program{Lang: "bash", Code: "(sleep 30; echo late) &\nask >/dev/null &\necho end", Tools: harness.Tools("ask")}, harness.Echo)
			a.Completes(t, "end\n")
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("the answer came after %v, want it when the script ends", took)
			}
		})
		t.Run("nothing goes on in a pause", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a := c.Pause(t, harness.Program{Lang: "bash", Tools: harness.Tools("ask"), Code: `
				(while :; do echo >>ticks; sleep 0.01; done) &
				ask >/dev/null
				before=$(wc -l <ticks)
				ask >/dev/null
				after=$(wc -l <ticks)
				kill $!
				echo $((after - before < 100))`})
			a = c.Pause(t, a.Continue(harness.Echo))
			// If it ran, it would tick 200 times in this time.
			time.Sleep(2 * time.Second)
			c.Post(t, a.Continue(harness.Echo)).Completes(t, "1\n")
		})
	})
}

// TestBashRefusals sends scripts that the server refuses.
func TestBashRefusals(t *testing.T) {
	cases := []struct{ name, body, text string }{
		{"sh", `{"code":"#","lang":"sh"}`, `Unsupported language "sh"; supported values are "python" and "bash"`},
		{
			"two names, one function", `{"code":"#","lang":"bash","tools":[{"name":"a.b"},{"name":"a-b"}]}`,
			`Bash tool names "a.b" and "a-b" normalize to the same function identifier "a_b"; rename one to avoid collision`,
		},
		{
			"a name and its other name", `{"code":"#","language":"bash","tools":[{"name":"echo"},{"name":"echo_tool"}]}`,
			`Bash tool names "echo" and "echo_tool" normalize to the same function identifier "echo_tool"; rename one to avoid collision`,
		},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				c.Post(t, tc.body).Fails(t, http.StatusBadRequest, tc.text)
			})
		}
	})
}

// TestBashHostile uses names of tools, inputs and results that would do harm if a shell took them
// for anything but text.
func TestBashHostile(t *testing.T) {
	texts := []string{
		"'", `"`, "$(touch /tmp/harm)", "`touch /tmp/harm`", "; touch /tmp/harm #", "\n touch /tmp/harm\n", `\`, `\n`, "%s%n", "-n", "-e",
		"*", "~", "!!", "${x}", "\u2028", "\x01\x1b[31m", "\\u0000", "a\x00b", strings.Repeat("x", 300_000),
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		quoted := func(text string) string {
			raw, err := harness.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(raw))
		}
		harm := "; ls /tmp/harm 2>/dev/null"
		t.Run("results", func(t *testing.T) {
			t.Parallel()
			list := make([]string, len(texts))
			for i, text := range texts {
				list[i] = quoted(text)
			}
			result := "[" + strings.Join(list, ",") + "]"
			a, _ := c.Run(t, harness.Program{Lang: "bash", Code: "ask" + harm + "; true", Tools: harness.Tools("ask")}, harness.Value(result))
			a.Completes(t, result+"\n")
		})
		t.Run("messages", func(t *testing.T) {
			t.Parallel()
			message := strings.Join(texts, "|")
			a, _ := c.Run(t, harness.Program{Lang: "bash", Code: "ask" + harm + "; true", Tools: harness.Tools("ask")}, harness.Failure(message))
			var got struct{ Error string }
			if err := json.Unmarshal([]byte(a.Stdout), &got); err != nil || got.Error != message {
				t.Errorf("stdout = %.200q (%v), want the error as JSON", a.Stdout, err)
			}
			if want := strings.ReplaceAll(message, "\x00", "") + "\n"; a.Stderr != want {
				t.Errorf("stderr = %.200q, want %.200q", a.Stderr, want)
			}
		})
		t.Run("inputs", func(t *testing.T) {
			t.Parallel()
			for _, text := range texts {
				input := `{"x":` + quoted(text) + `}`
				script := "ask '" + strings.ReplaceAll(input, "'", `'\''`) + "' >/dev/null" + harm + "; true"
				a := c.Pause(t, harness.Program{Lang: "bash", Code: script, Tools: harness.Tools("ask")})
				if got := a.Calls[0].CompactInput(); got != input {
					t.Errorf("input = %.200s, want %.200s", got, input)
				}
				c.Post(t, a.Continue(harness.Echo)).Completes(t, "")
			}
		})
		t.Run("names", func(t *testing.T) {
			t.Parallel()
			for _, text := range texts {
				name := "x" + strings.ReplaceAll(text, strings.Repeat("x", 300_000), "y")
				a, _ := c.Run(t, harness.Program{Lang: "bash", Code: "declare -F | grep -v fermata | wc -l" + harm + "; true", Tools: harness.Tools(name)}, harness.Echo)
				a.Completes(t, "1\n")
			}
		})
	})
}

// TestBashForgery has a script send invalid messages to the socket through which its functions call
// tools.
func TestBashForgery(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for i, said := range []string{`''`, `'7\0{}\0'`, `'-1\0{}\0'`, `'x\0{}\0'`, `'0\0'`, `'\0\0\0\0'`, `'99999999999999999999\0{}\0'`} {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				// The runner gives up a message that is cut short.
				a, batches := c.Run(t, harness.Program{Lang: "bash", Tools: harness.Tools("ask"), Code: `
					exec {fd}<>/dev/tcp/127.0.0.1/$__FERMATA_PORT
					printf ` + said + ` >&$fd
					exec {fd}>&-
					ask`}, harness.Echo)
				a.Completes(t, "{}\n")
				// -1 counts tools from the end, so it is a valid tool: a program may call every
				// tool that it was granted.
				if slices.Max(batches) > 2 || len(batches) > 2 {
					t.Errorf("calls by round = %v, want one call, or two", batches)
				}
			})
		}
	})
}

// TestBashSurvives checks that a paused script goes on after the server was killed.
func TestBashSurvives(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Quick(t))
		a := server.Alice().Pause(t, harness.Program{Lang: "bash", Code: "x=$RANDOM; echo $x; ask >/dev/null & ask >/dev/null & wait; echo $x", Tools: harness.Tools("ask")})
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		a = server.Alice().Post(t, a.Continue(harness.Echo))
		before, after, _ := strings.Cut(strings.TrimSpace(a.Stdout), "\n")
		if a.Status != "completed" || before == "" || before != after {
			t.Errorf("got %v, want it completed with the same number twice", a)
		}
	})
}

// TestBashTools checks that scripts find the usual programs.
func TestBashTools(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		for _, name := range []string{"bash", "cat", "sed", "awk", "grep", "sort", "find", "xargs", "tar", "jq", "python3"} {
			if _, err := exec.LookPath(name); err != nil && !harness.InCI {
				t.Logf("left out: %s is not installed", name)
				continue
			}
			c.Post(t, harness.Program{Lang: "bash", Code: "command -v " + name + " >/dev/null && echo yes"}).Completes(t, "yes\n")
		}
	})
}
