package tests

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// runScripts is runCases for shell scripts.
func runScripts(t *testing.T, c client, cases []programCase) {
	cases = slices.Clone(cases) // The other setups have them, too.
	for i := range cases {
		cases[i].lang = "bash"
	}
	runCases(t, c, cases)
}

func TestBashCalls(t *testing.T) {
	cases := []programCase{
		{
			name: "the client's example", tools: tools("query_database"),
			code: `
				data=$(query_database '{"sql": "SELECT * FROM users"}')
				echo "$data" | jq '.[] | .name'
			`,
			answer: value(`[{"name":"Ada"},{"name":"Bob"}]`),
			stdout: "\"Ada\"\n\"Bob\"\n", batches: []int{1},
		},
		{
			name: "the client's example of parallel calls, behind its guard", tools: tools("web-search"),
			code: `
				: &
				wait "$!"
				{ sf=$(web_search '{"query": "SF weather"}'); printf '%s\n' "$sf" > /mnt/data/sf.json; } &
				{ ny=$(web_search '{"query": "NY weather"}'); printf '%s\n' "$ny" > /mnt/data/ny.json; } &
				wait
				echo "SF: $(jq -r .query /mnt/data/sf.json)"
				echo "NY: $(jq -r .query /mnt/data/ny.json)"
			`,
			stdout: "SF: SF weather\nNY: NY weather\n", batches: []int{2},
		},
		{
			name: "variables outlive pauses", tools: tools("ask"),
			code: `
				total=0
				for n in 1 2 3; do
				    total=$((total + $(ask "{\"n\":$n}" | jq .n)))
				done
				echo $total
			`,
			stdout: "6\n", batches: []int{1, 1, 1},
		},
		{
			name: "20 rounds", tools: tools("ask"),
			code:   `for n in {1..20}; do ask >/dev/null; done; echo $n`,
			stdout: "20\n", batches: slices.Repeat([]int{1}, 20),
		},
		{
			name: "20 at once", tools: tools("ask"),
			code: `
				for n in {1..20}; do ask "{\"n\":$n}" >$n & done
				wait
				cat $(seq 20) | jq -s 'map(.n) | add'
			`,
			stdout: "210\n", batches: []int{20},
		},
		{
			name: "many of them, more than there can be processes", tools: tools("ask"),
			code:   `for n in {1..5}; do for n in {1..30}; do ask >>all & done; wait; done; wc -l <all`,
			stdout: "150\n", batches: slices.Repeat([]int{30}, 5),
		},
		{
			name: "chains side by side", tools: tools("ask"),
			code: `
				chain() { for step in 1 2 3; do ask >/dev/null; done; }
				chain & chain & wait
				echo end
			`,
			stdout: "end\n", batches: []int{2, 2, 2},
		},
		{
			name: "in children", tools: tools("ask"),
			code:   `printf '1\n2\n3\n' | xargs -P 3 -I{} bash -c 'ask "{\"n\":{}}" >/dev/null'; echo end`,
			stdout: "end\n", batches: []int{3},
		},
		{
			name: "beside one that is busy", tools: tools("ask"),
			code: `
				while :; do :; done &
				ask
				kill $!
			`,
			stdout: "{}\n", batches: []int{1},
		},
		{
			name: "beside one that sleeps", tools: tools("ask"),
			code: `
				sleep 0.3 &
				ask
				wait
				ask
			`,
			stdout: "{}\n{}\n", batches: []int{1, 1},
		},
		{name: "no call", code: "echo é; echo no >&2", stdout: "é\n", stderr: []string{"no"}},
		{name: "no call, with tools", code: "echo 1", tools: tools("ask"), stdout: "1\n", batches: []int{}},
		{name: "names", code: "get_weather; _1_x; for_tool; tool; echo", tools: tools("get.weather", "1-x", "for", "名前", "echo"), stdout: "{}\n{}\n{}\n{}\n{}\n"},
		{name: "locale", code: `x=é; echo "${#x} $LC_ALL"`, stdout: "1 C.UTF-8\n"},
		{name: "no white space in results", code: "ask", tools: tools("ask"), answer: value(`{ "a" : [ 1 , "x  y" ] }`), stdout: "{\"a\":[1,\"x  y\"]}\n"},
		{
			name: "strings are quoted", code: `x=$(ask); echo "$x"; jq -r . <<<"$x"`, tools: tools("ask"),
			answer: value(`"a\"b"`), stdout: "\"a\\\"b\"\na\"b\n",
		},
		{
			name: "numbers keep their digits", tools: tools("ask"),
			code:   `ask '{"a":12345678901234567890,"b":1.10,"c":1E400}'`,
			stdout: `{"a":12345678901234567890,"b":1.10,"c":1E400}` + "\n",
		},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		runScripts(t, serve(t, s, s.libraries()).alice(), cases)
	})
}

func TestBashErrors(t *testing.T) {
	const exit1 = "Sandbox exited with code 1"
	cases := []programCase{
		{
			name: "caught", code: "ask || echo caught", tools: tools("ask"), answer: failure("no such\ncity"),
			stdout: `{"error":"no such\ncity"}` + "\ncaught\n", stderr: []string{"no such\ncity\n"},
		},
		{
			name: "in a variable", code: `x=$(ask 2>/dev/null) || echo "$x" | jq -r .error`, tools: tools("ask"), answer: failure("'$(exit)\""),
			stdout: "'$(exit)\"\n",
		},
		{name: "not caught", code: "set -e\nask >/dev/null\necho no", tools: tools("ask"), answer: failure("no"), error: exit1, stderr: []string{"no\n"}},
		{name: "without a message", code: "ask || true", tools: tools("ask"), answer: failure(""), stdout: `{"error":"tool execution failed"}` + "\n", stderr: []string{"tool execution failed"}},
		{
			name: "one of several", tools: tools("ask", "fail"),
			code: `ask >a & fail >b 2>/dev/null & wait; cat a b`,
			answer: func(c call) result {
				if c.Name == "fail" {
					return failure("no")(c)
				}
				return echo(c)
			},
			stdout: "{}\n{\"error\":\"no\"}\n", batches: []int{2},
		},
		{
			name: "input is no object", code: "ask text || echo $?", tools: tools("ask"), batches: []int{},
			stdout: "1\n", stderr: []string{"tool input for ask must be a JSON object, got: text\n"},
		},
		{name: "exit", code: "echo 1; exit 3", stdout: "1\n", error: "Sandbox exited with code 3"},
		{name: "exit of a child", code: "bash -c 'kill -9 $$'", error: "Sandbox exited with code 137", stderr: []string{"Killed"}},
		{name: "exit by a signal", code: "kill -TERM $$", error: "Sandbox exited with code -15"},
		{name: "no such command", code: "nosuch", error: "Sandbox exited with code 127", stderr: []string{"line 1: nosuch: command not found"}},
		{name: "no such file", code: "cat nosuch", error: exit1, stderr: []string{"cat: nosuch: No such file or directory"}},
		{name: "syntax", code: "echo 1\nif", stdout: "1\n", error: "Sandbox exited with code 2", stderr: []string{"line 3: syntax error"}},
		{name: "too many rounds", code: "while :; do ask; done >/dev/null", tools: tools("ask"), error: "Exceeded maximum round trips (20)"},
		{name: "too much output", code: "yes", error: "stdout length exceeded", stdout: strings.Repeat("y\n", 1<<19)},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		runScripts(t, serve(t, s, with(settings{"ERROR_STYLE": "inline"}, s.libraries())).alice(), cases)
	})
}

// TestBashPartialResults checks that a call without a result is asked for again, as
// often as it takes.
func TestBashPartialResults(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		a := c.pause(t, program{Lang: "bash", Tools: tools("ask"), Code: `
			for n in 1 2 3; do ask "{\"n\":$n}" >$n & done; wait; cat 1 2 3`})
		inputs := map[string]string{}
		for _, call := range a.Calls {
			inputs[call.ID] = call.input()
		}
		for left := len(a.Calls); left > 1; left-- {
			next := a.answers(echo)
			next.Results = next.Results[left-1:]
			a = c.pause(t, next)
			if len(a.Calls) != left-1 {
				t.Fatalf("%d calls are pending, want %d", len(a.Calls), left-1)
			}
			for _, call := range a.Calls {
				if got := call.input(); inputs[call.ID] != got {
					t.Errorf("%s has the input %s now, want %s", call.ID, got, inputs[call.ID])
				}
			}
		}
		c.post(t, a.answers(echo)).completes(t, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n")
	})
}

// TestBashEnds checks that nothing of a script outlives it, and that a pause stops all
// of it.
func TestBashEnds(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		t.Run("timeout", func(t *testing.T) {
			t.Parallel()
			server := serveAlone(t, s, settings{"POOL_SIZE": "1"})
			idle := resting(server.processes)
			for _, code := range []string{
				"echo begun; sleep 100",
				"echo begun; while :; do :; done",
				"echo begun; trap '' TERM INT; (setsid sleep 100 & ); sleep 100 & wait",
			} {
				began := time.Now()
				a := server.alice().post(t, program{Lang: "bash", Code: code, Timeout: 1000})
				a.fails(t, http.StatusRequestTimeout, "Execution timeout")
				if a.Stdout != "begun\n" {
					t.Errorf("%s: stdout = %q, want what was printed", code, a.Stdout)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%s: the answer came after %v, want it after a second", code, took)
				}
			}
			err := within(5*time.Second, func() error { return atMost("processes", server.processes(), idle) })
			if err != nil {
				t.Error(err)
			}
		})
		t.Run("what is left in the background", func(t *testing.T) {
			t.Parallel()
			c := serve(t, s, nil).alice()
			began := time.Now()
			// The call may go out before the script ends, which is soon.
			a, _ := c.run(t, program{Lang: "bash", Code: "(sleep 30; echo late) &\nask >/dev/null &\necho end", Tools: tools("ask")}, echo)
			a.completes(t, "end\n")
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("the answer came after %v, want it when the script ends", took)
			}
		})
		t.Run("nothing goes on in a pause", func(t *testing.T) {
			t.Parallel()
			c := serve(t, s, nil).alice()
			a := c.pause(t, program{Lang: "bash", Tools: tools("ask"), Code: `
				(while :; do echo >>ticks; sleep 0.01; done) &
				ask >/dev/null
				before=$(wc -l <ticks)
				ask >/dev/null
				after=$(wc -l <ticks)
				kill $!
				echo $((after - before < 100))`})
			a = c.pause(t, a.answers(echo))
			// In this time it would tick 200 times.
			time.Sleep(2 * time.Second)
			c.post(t, a.answers(echo)).completes(t, "1\n")
		})
	})
}

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
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				c.post(t, tc.body).fails(t, http.StatusBadRequest, tc.text)
			})
		}
	})
}

// TestBashHostile sends tools, inputs and results that would do harm where they are
// taken for anything but text.
func TestBashHostile(t *testing.T) {
	texts := []string{
		"'", `"`, "$(touch /tmp/harm)", "`touch /tmp/harm`", "; touch /tmp/harm #", "\n touch /tmp/harm\n", `\`, `\n`, "%s%n", "-n", "-e",
		"*", "~", "!!", "${x}", "\u2028", "\x01\x1b[31m", "\\u0000", "a\x00b", strings.Repeat("x", 300_000),
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		quoted := func(text string) string {
			raw, err := marshal(text)
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
			a, _ := c.run(t, program{Lang: "bash", Code: "ask" + harm + "; true", Tools: tools("ask")}, value(result))
			a.completes(t, result+"\n")
		})
		t.Run("messages", func(t *testing.T) {
			t.Parallel()
			message := strings.Join(texts, "|")
			a, _ := c.run(t, program{Lang: "bash", Code: "ask" + harm + "; true", Tools: tools("ask")}, failure(message))
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
				a := c.pause(t, program{Lang: "bash", Code: script, Tools: tools("ask")})
				if got := a.Calls[0].input(); got != input {
					t.Errorf("input = %.200s, want %.200s", got, input)
				}
				c.post(t, a.answers(echo)).completes(t, "")
			}
		})
		t.Run("names", func(t *testing.T) {
			t.Parallel()
			for _, text := range texts {
				name := "x" + strings.ReplaceAll(text, strings.Repeat("x", 300_000), "y")
				a, _ := c.run(t, program{Lang: "bash", Code: "declare -F | grep -v fermata | wc -l" + harm + "; true", Tools: tools(name)}, echo)
				a.completes(t, "1\n")
			}
		})
	})
}

// TestBashForgery has a script say things to the desk of its tools that no function says.
func TestBashForgery(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		for i, said := range []string{`''`, `'7\0{}\0'`, `'-1\0{}\0'`, `'x\0{}\0'`, `'0\0'`, `'\0\0\0\0'`, `'99999999999999999999\0{}\0'`} {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				// What is cut short is given up when the script goes on.
				a, batches := c.run(t, program{Lang: "bash", Tools: tools("ask"), Code: `
					exec {fd}<>/dev/tcp/127.0.0.1/$__FERMATA_PORT
					printf ` + said + ` >&$fd
					exec {fd}>&-
					ask`}, echo)
				a.completes(t, "{}\n")
				// -1 is a tool, though by another number: a program may call what it was granted.
				if slices.Max(batches) > 2 || len(batches) > 2 {
					t.Errorf("calls by round = %v, want one call, or two", batches)
				}
			})
		}
	})
}

// TestBashSurvives checks that a script goes on where it was when the server is killed.
func TestBashSurvives(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, quick(t))
		a := server.alice().pause(t, program{Lang: "bash", Code: "x=$RANDOM; echo $x; ask >/dev/null & ask >/dev/null & wait; echo $x", Tools: tools("ask")})
		if err := server.kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		a = server.alice().post(t, a.answers(echo))
		before, after, _ := strings.Cut(strings.TrimSpace(a.Stdout), "\n")
		if a.Status != "completed" || before == "" || before != after {
			t.Errorf("got %v, want it completed with the same number twice", a)
		}
	})
}

// TestBashTools checks that the programs which scripts use are within reach.
func TestBashTools(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, s.libraries()).alice()
		for _, name := range []string{"bash", "cat", "sed", "awk", "grep", "sort", "find", "xargs", "tar", "jq", "python3"} {
			if _, err := exec.LookPath(name); err != nil && !inCI {
				t.Logf("left out: %s is not installed", name)
				continue
			}
			c.post(t, program{Lang: "bash", Code: "command -v " + name + " >/dev/null && echo yes"}).completes(t, "yes\n")
		}
	})
}
