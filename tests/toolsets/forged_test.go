package toolsets

import (
	"strconv"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// forge is the beginning of programs that send frames in the place of their runner, on every
// descriptor.
const forge = `
	import json, os, struct, time
	def send(kind, payload):
	    frame = struct.pack(">IB", len(payload), ord(kind)) + payload
	    for name in os.listdir("/proc/self/fd"):
	        if int(name) > 2:
	            try:
	                os.write(int(name), frame)
	            except OSError:
	                pass
	def calls(*list):
	    send("C", json.dumps([dict({"n": n, "input": {"key": KEY}}, **c) for n, c in enumerate(list)]).encode())
	    time.sleep(1.5)
	print("so far", flush=True)
`

// forged returns a program that sends frames itself.
func forged(key, code string) harness.Program {
	return program(key, forge+"\t"+strings.TrimLeft(code, "\n\t"))
}

// TestForgedCalls forges calls that the runner would not make: the server keeps every rule itself.
func TestForgedCalls(t *testing.T) {
	cases := []struct {
		name, code string
		sent       int
		// ends is true if the execution must end because of it.
		ends bool
	}{
		{"a toolset that is not granted", `calls({"toolset": "trouble", "tool": "get"})`, 0, true},
		{"a tool that programs may not call", `calls({"toolset": "desk", "tool": "direct"})`, 0, true},
		{"a tool of no toolset", `calls({"tool": "book"})`, 0, true},
		{"another case", `calls({"toolset": "desk", "tool": "Book"})`, 0, true},
		{"a blank", `calls({"toolset": "desk ", "tool": "book"})`, 0, true},
		{"a toolset that is a number", `calls({"toolset": 7, "tool": "book"})`, 0, true},
		{"without approval", `calls({"toolset": "desk", "tool": "pay", "approval": "never", "approve": True})`, 0, false},
		{"beyond the cost", `calls(*[{"toolset": "desk", "tool": "book", "cost": 0}] * 8)`, 2, false},
		{"an input that the schema refuses", `calls({"toolset": "desk", "tool": "book", "input": {"key": KEY, "n": "x"}})`, 0, false},
		{"an argument that is not declared", `calls({"toolset": "desk", "tool": "book", "input": {"key": KEY, "admin": True}})`, 0, false},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				key := harness.NewKey()
				p := forged(key, tc.code)
				p.MaxCost = new(6)
				a := d.Post(t, p)
				if !strings.HasPrefix(a.Stdout, "so far\n") || tc.ends && (a.HTTPStatus != 200 || a.Status != "error") {
					t.Errorf("got %v, want it ended: %v", a, tc.ends)
				}
				j := &harness.Journal{ID: a.Execution()}
				if err := j.Read(t.Context(), d.Client); err != nil || !tc.ends && len(j.Calls) == 0 {
					t.Errorf("%v: calls = %v, want those that were forged", err, j.Calls)
				}
				d.upstream.Sent(t, key, tc.sent)
			})
		}
		t.Run("sequential", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			p := forged(key, `calls(*[{"toolset": "weather", "tool": "slow", "input": {"key": KEY, "ms": 50}}] * 8)`)
			p.Sequential = true
			d.Post(t, p)
			if n := d.upstream.Together(key); n > 1 {
				t.Errorf("%d calls ran at once, want 1", n)
			}
		})
		t.Run("lane", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			d.Post(t, forged(key, `calls(*[{"toolset": "desk", "tool": "queue", "input": {"key": KEY, "ms": 50}}] * 8)`))
			if n := d.upstream.Together(key); n > 1 {
				t.Errorf("%d calls ran at once, want 1", n)
			}
		})
	})
}

// TestForgedRepetitions makes calls of the client's tools, and then, under the number of one that waits, another call:
// what the client has been asked for, and what the journal says, cannot become something else.
func TestForgedRepetitions(t *testing.T) {
	const first = `{"tool": "read", "input": {"path": "a.txt"}}, {"tool": "read", "input": {"path": "b.txt"}}`
	cases := []struct{ name, second string }{
		{"another tool", `{"tool": "delete", "input": {"path": "a.txt"}}`},
		{"another input", `{"tool": "read", "input": {"path": "/everything"}}`},
		{"a tool of the server", `{"toolset": "desk", "tool": "book"}`},
		{"the same", `{"tool": "read", "input": {"path": "a.txt"}}`},
		{"a tool that needs approval", `{"tool": "shred", "input": {"path": "a.txt"}}`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		for _, tc := range cases {
			for _, toolsets := range [][]string{nil, {"desk"}} {
				if toolsets == nil && strings.Contains(tc.second, "desk") {
					continue
				}
				t.Run(tc.name+" with "+strconv.Itoa(len(toolsets))+" toolsets", func(t *testing.T) {
					t.Parallel()
					key := harness.NewKey()
					p := forged(key, "calls("+first+")\n\tcalls("+tc.second+")")
					p.Toolsets, p.Tools = toolsets, harness.Tools("read", "delete", "shred")
					p.Code = strings.ReplaceAll(p.Code, imports, "")
					if tc.name == "a tool that needs approval" {
						p.Tools[2].Approval = "always"
						p.Approvals = true
					}
					a := d.Pause(t, p)
					next := a.Continue(harness.Value(`"ok"`))
					next.Results = next.Results[1:]
					a = d.Post(t, next)
					if tc.name == "the same" {
						if len(a.Calls) != 1 || a.Calls[0].ID != "call_001" || a.Calls[0].Name != "read" {
							t.Errorf("got %v, want the first call again", a)
						}
						return
					}
					if a.HTTPStatus != 200 || a.Status != "error" || len(a.Calls) > 0 {
						t.Errorf("got %v, want an error", a)
					}
					j := &harness.Journal{ID: a.Execution()}
					if err := j.Read(t.Context(), d.Client); err != nil || len(j.Calls) != 2 {
						t.Errorf("calls = %v (%v), want two", j.Calls, err)
					}
					ended := j.Events[len(j.Events)-1]
					if !strings.Contains(ended.Raw, "it sent another input for a call that it had made before") {
						t.Errorf("the end is %s", ended.Raw)
					}
					d.upstream.Sent(t, key, 0)
				})
			}
		}
	})
}

// forgesMany returns a program that makes several times so many new calls of a tool of the help desk at
// once. It waits until the server has answered, and does not heed the answer.
func forgesMany(key, tool string, rounds, count int) harness.Program {
	return forged(key, strings.NewReplacer("ROUNDS", strconv.Itoa(rounds), "COUNT", strconv.Itoa(count), "TOOL", tool).Replace(`
	import select
	def await_answer():
	    descriptors = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2 and os.path.exists("/proc/self/fd/" + name)]
	    for fd in select.select(descriptors, [], [], 60)[0]:
	        blocking = os.get_blocking(fd)
	        os.set_blocking(fd, False)
	        try:
	            os.read(fd, 1 << 20)
	        except OSError:
	            pass
	        os.set_blocking(fd, blocking)
	for i in range(ROUNDS):
	    list = [{"n": COUNT * i + n, "toolset": "desk", "tool": "TOOL", "input": {"key": KEY}} for n in range(COUNT)]
	    send("C", json.dumps(list).encode())
	    await_answer()
`))
}

// failures returns how often the journal of the execution of an answer says that a call has failed for
// this reason.
func (d desk) failures(t *testing.T, a harness.Answer, reason string) (n int) {
	t.Helper()
	j := &harness.Journal{ID: a.Execution()}
	if err := j.Read(t.Context(), d.Client); err != nil {
		t.Fatal(err)
	}
	for _, e := range j.Events {
		if e.Type == "call.failed" && strings.Contains(e.Raw, reason) {
			n++
		}
	}
	return n
}

// TestForgedCrowds forges more calls than may wait, and more that need approval than may be asked for, without
// a runner that heeds what it is told: the server counts them itself.
func TestForgedCrowds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		t.Run("calls that wait", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			a := d.Post(t, forgesMany(key, "hold", 2, 1100))
			// Of the first ones 16 run, and 84 are too many. Beside those that run, 1000 of the others wait.
			const refusal = "the call is not made: 1000 calls of the program wait already; let it make fewer at the same time"
			if n := d.failures(t, a, refusal); n != 84+100 {
				t.Errorf("%d calls have failed because too many wait, want 184: %v", n, a)
			}
			if n := len(d.upstream.Requests(key)); n > 16 {
				t.Errorf("%d calls were made, want at most 16", n)
			}
		})
		t.Run("calls that need approval", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			p := forgesMany(key, "pay", 2, 120)
			p.Approvals = true
			a := d.Pause(t, p)
			for range 2 {
				if len(a.Calls) != 100 {
					t.Fatalf("%d calls wait for approval, want 100", len(a.Calls))
				}
				a = d.Post(t, a.Continue(harness.Decision(false, "no")))
			}
			if a.Status == "tool_call_required" {
				t.Errorf("got %v, want the end", a)
			}
			d.upstream.Sent(t, key, 0)
		})
	})
}

// TestSwappedAfterApproval sends another input for a call after it was approved: the execution ends, and
// nothing is sent.
func TestSwappedAfterApproval(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		for name, second := range map[string]string{
			"another input":   `{"toolset": "desk", "tool": "pay", "input": {"key": KEY, "n": 1000}}`,
			"another tool":    `{"toolset": "desk", "tool": "book", "input": {"key": KEY, "n": 1}}`,
			"another toolset": `{"toolset": "weather", "tool": "wait", "input": {"key": KEY, "n": 1}}`,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				key := harness.NewKey()
				p := forged(key, strings.ReplaceAll(`
	def once(c):
	    send("C", json.dumps([dict({"n": 0}, **c)]).encode())
	    time.sleep(1)
	once({"toolset": "desk", "tool": "pay", "input": {"key": KEY, "n": 1}})
	once(SECOND)
	time.sleep(5)
`, "SECOND", second))
				p.Approvals = true
				pause := d.Pause(t, p)
				if len(pause.Calls) != 1 || pause.Calls[0].Approval != "required" {
					t.Fatalf("calls = %v, want one that needs approval", pause.Calls)
				}
				a := d.Post(t, pause.Continue(harness.Decision(true, "")))
				if a.Status != "error" || !strings.Contains(a.Error, "another input") {
					t.Errorf("got %v, want it ended", a)
				}
				d.upstream.Sent(t, key, 0)
			})
		}
	})
}
