package isolation

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/tests/harness"
)

// forge is the beginning of programs that send frames in the place of their runner, on every
// descriptor.
const forge = `
	import json, struct, time
	def send(kind, payload):
	    frame = struct.pack(">IB", len(payload), ord(kind)) + payload
	    for name in os.listdir("/proc/self/fd"):
	        if int(name) > 2:
	            write(int(name), frame)
	def write(fd, frame):
	    view = memoryview(frame)
	    try:
	        os.set_blocking(fd, True)
	        while view:
	            view = view[os.write(fd, view):]
	    except OSError:
	        pass
	def calls(*inputs):
	    send("C", b"[" + b",".join(b'{"n":%d,"tool":"ask","input":%s}' % (n, i) for n, i in enumerate(inputs)) + b"]")
	    time.sleep(60)
	print("so far")
`

// broken is the error of a program that has broken the protocol.
const broken = "The program broke the connection to its sandbox's runner"

// TestForgedFramesCostLittle sends huge forged frames: they must cost neither much memory of the
// server nor the time of other programs.
func TestForgedFramesCostLittle(t *testing.T) {
	const together, most = 8, 150 << 20
	frames := []struct{ name, code string }{
		{"940,000 calls", `send("C", b"[" + b",".join(b'{"n":%d,"tool":"ask","input":{}}' % n for n in range(940000))[:(32 << 20) - 2] + b"]")`},
		{"as many calls as a frame holds", `send("C", b"[" + b",".join(b'{"n":%d,"tool":"ask","input":{}}' % n for n in range(500000)) + b"]")`},
		{"an input of 31 MB", `calls(b'{"x":"' + b"x" * 31_000_000 + b'"}')`},
		{"32 MB of spaces", `send("C", b" " * (32 << 20))`},
		{"32 MB of every kind", `
			for kind in "DXMBNHY":
			    send(kind, b" " * (32 << 20))
		`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		alice, bob := server.Alice(), server.Bob()
		frames := frames
		if s.Docker() {
			frames = frames[3:] // The server reads all frames with the same code.
		}
		for _, f := range frames {
			t.Run(f.name, func(t *testing.T) {
				bob.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
				before := memoryFromNow(t, server)
				var attacks sync.WaitGroup
				for range together {
					attacks.Go(func() {
						a, err := alice.Send(t.Context(), harness.Program{Code: harness.Py(forge) + harness.Py(f.code), Tools: harness.Tools("ask"), Timeout: 20_000})
						if err != nil || a.HTTPStatus >= 500 || a.Status != "error" {
							t.Errorf("got %v, %v, want an error of the program's own", a, err)
						}
					})
				}
				done := make(chan struct{})
				go func() { attacks.Wait(); close(done) }()
				for busy := true; busy; {
					began := time.Now()
					bob.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
					if took := time.Since(began); took > 15*time.Second {
						t.Errorf("another key's program took %v", took)
					}
					select {
					case <-done:
						busy = false
					default:
					}
				}
				if grown := server.PeakMemory(t) - before; grown > most {
					t.Errorf("the server took %d MiB, want at most %d", grown>>20, most>>20)
				}
			})
		}
	})
}

// memoryFromNow resets the peak of the server's memory and returns the memory that it has now.
func memoryFromNow(t *testing.T, s *harness.Server) int {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return s.PeakMemory(t)
}

// TestForgedToolInputs forges calls whose inputs the runner would refuse: the server checks the
// same limits again.
func TestForgedToolInputs(t *testing.T) {
	cases := []struct{ name, code, text string }{
		{"5 MB and a byte", `calls(b'{"x":"' + b"x" * 4_999_993 + b'"}')`, ": it sent a tool input of more than 5000000 bytes"},
		{"more than 16 MiB at once", `calls(*[b'{"x":"' + b"x" * 4_300_000 + b'"}'] * 4)`, ": it sent tool inputs of more than 16777216 bytes at once"},
		{"nested too deep", `calls(b'{"x":' + b"[" * 500 + b"]" * 500 + b"}")`, ": it sent a tool input that is nested deeper than 500 levels"},
		{"nested 9,000 deep", `calls(b'{"x":' + b"[" * 9000 + b"]" * 9000 + b"}")`, ": it sent a tool input that is nested deeper than 500 levels"},
		{"a name twice", `calls(b'{"x":[{"a":1,"a":2}]}')`, ": it sent a tool input with an object that has a name twice"},
		{"two names that become one", `calls(b'{"\\ud800":1,"\\ud801":2}')`, ": it sent a tool input with an object that has a name twice"},
		{"no list", `send("C", b"{}"); time.sleep(60)`, ""},
		{"32 MB", `send("C", b" " * (32 << 20)); time.sleep(60)`, ""},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a := c.Post(t, harness.Program{Code: harness.Py(forge) + tc.code, Tools: harness.Tools("ask"), Timeout: 20_000})
				a.Fails(t, 200, broken+tc.text)
				if a.Stdout != "so far\n" {
					t.Errorf("stdout = %q, want what was printed", a.Stdout)
				}
			})
		}
		t.Run("exactly the limit", func(t *testing.T) {
			t.Parallel()
			p := harness.Program{Code: "x = await asyncio.gather(*[ask(x='x' * 4_999_992) for _ in range(3)])\nprint(x)", Tools: harness.Tools("ask")}
			a, batches := c.Run(t, p, harness.Value("1"))
			a.Completes(t, "[1, 1, 1]\n")
			if len(batches) != 1 {
				t.Errorf("calls by round = %v, want one round", batches)
			}
		})
	})
}

// TestStrictAnswers checks that answers are valid JSON for strict parsers, whatever text a program
// passes to its tools.
func TestStrictAnswers(t *testing.T) {
	cases := []struct{ name, code, input string }{
		{"half a surrogate pair", `await ask(v="\udfff", w="a\ud800b")`, `{"v":"�","w":"a�b"}`},
		{"half a pair in a name", `await ask({"\ud800": 1})`, `{"�":1}`},
		{"a whole pair", `await ask(v="\U0001f600")`, `{"v":"😀"}`},
		{"text that looks like one", `await ask(v="\\ud800")`, `{"v":"\\ud800"}`},
		{"numbers", `await ask(v=["\ud800", 12345678901234567890, 1e-300])`, `{"v":["�",12345678901234567890,1e-300]}`},
		{"forged bytes", `calls(b'{"v":"\xff"}')`, `{"v":"�"}`},
		{"forged halves", `calls(b'{"v":"\\uDC00\\ud800\\ud83d\\ude00"}')`, `{"v":"��😀"}`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a := c.Pause(t, harness.Program{Code: harness.Py(forge) + tc.code, Tools: harness.Tools("ask"), Timeout: 20_000})
				if !jsontext.Value(a.Raw).IsValid() {
					t.Errorf("a strict reader does not take %v", a)
				}
				// Normalized as jq and others print it.
				plain := jsontext.Value(a.Calls[0].Input).Clone()
				if err := plain.Format(jsontext.PreserveRawStrings(false)); err != nil || string(plain) != tc.input {
					t.Errorf("input = %s, %v, want %s", plain, err, tc.input)
				}
			})
		}
		t.Run("of a shell script", func(t *testing.T) {
			t.Parallel()
			a := c.Pause(t, harness.Program{Code: `ask '{"v":"\udfff"}'`, Lang: "bash", Tools: harness.Tools("ask")})
			if !jsontext.Value(a.Raw).IsValid() || json.Valid([]byte(a.Raw)) && a.Calls[0].CompactInput() != `{"v":"�"}` {
				t.Errorf("got %v, want U+FFFD in the input", a)
			}
		})
	})
}

// TestForgedValues forges what programs return: the server takes what its runner could have sent, and
// nothing else.
func TestForgedValues(t *testing.T) {
	cases := []struct{ name, value, want string }{
		{"one that the runner could send", `b'{"v": 1.0}'`, `{"v":1.0}`},
		{"bytes that are not UTF-8", `b'"\xff"'`, `"�"`},
		{"null", `b'null'`, ``},
		{"a name twice", `b'{"v":1,"v":2}'`, ``},
		{"too deep", `b"[" * 501 + b"]" * 501`, ``},
		{"too large", `b'"' + b"x" * 64_001 + b'"'`, ``},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				code := harness.Py(forge) + `send("D", b'{"exit":0,"value":' + ` + tc.value + ` + b'}'); time.sleep(60)`
				a := c.Post(t, harness.Program{Code: code, Timeout: 10_000})
				a.Completes(t, "so far\n")
				if string(a.Value) != tc.want || !jsontext.Value(a.Raw).IsValid() {
					t.Errorf("value = %.100q in %v, want %q", a.Value, a, tc.want)
				}
				e := c.Exec(t, nil, harness.ExecRequest{Lang: "py", Code: code, Timeout: 10_000})
				if e.HTTPStatus != 200 || e.Value != nil {
					t.Errorf("got %v, want no value without tools", e.Answer)
				}
			})
		}
	})
}

// TestBrokenChannel runs programs that break their own channel: the answer says that the program
// did it, on both routes.
func TestBrokenChannel(t *testing.T) {
	cases := []struct{ name, code string }{
		{"garbage", `
			for fd in range(3, 10):
			    write(fd, bytes(range(256)) * 1000)
			time.sleep(60)
		`},
		{"a length of 4 GB", `
			for fd in range(3, 10):
			    write(fd, b"\xff" * 100)
			time.sleep(60)
		`},
		{"an exit of its own", `send("X", struct.pack(">I", 2) + b"{}"); time.sleep(60)`},
		{"a ready of its own", `send("Y", b"{}"); time.sleep(60)`},
		{"an end with wrong types", `send("D", b'{"exit":"x"}'); time.sleep(60)`},
		{"a value that is no JSON", `send("D", b'{"exit":0,"value":[}'); time.sleep(60)`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				code := harness.Py(forge) + harness.Py(tc.code)
				c.Post(t, harness.Program{Code: code, Tools: harness.Tools("ask"), Timeout: 10_000}).Fails(t, 200, broken)
				e := c.Exec(t, nil, harness.ExecRequest{Lang: "py", Code: code, Timeout: 10_000})
				if e.HTTPStatus != 200 || e.How() != "- SIGKILL XX "+broken || e.Stderr != "[sandbox] "+broken+"\n" {
					t.Errorf("got %v, want 200 and what the program did", e.Answer)
				}
				if e.Stdout != "so far\n" {
					t.Errorf("stdout = %q, want what was printed", e.Stdout)
				}
			})
		}
	})
}
