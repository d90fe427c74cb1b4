package programs

import (
	"fmt"
	"testing"

	"fermata/tests/harness"
)

// TestWhereTimeIsSpent checks at which line a program is said to stand when its time is over.
func TestWhereTimeIsSpent(t *testing.T) {
	cases := []struct {
		name, code string
		// line is 0 where it cannot be known, and -1 where the program may have any line told.
		line int
	}{
		{"a loop", "x = 1\nwhile True:\n    x += 1; x -= 1\n\n", 3},
		{"a sleep", "import time\ntime.sleep(60)", 2},
		{"C code that keeps the lock", "import re\nre.match('(a*)*b', 'a' * 60)", 2},
		{"an await", "await asyncio.sleep(0)\n\nawait asyncio.sleep(60)", 3},
		{"an event loop of its own", "async def main():\n    await asyncio.sleep(60)\nasyncio.run(main())", 2},
		{"after a call", "x = await ask(n=1)\nprint(x)\ntry:\n    import time; time.sleep(60)\nfinally: pass", 4},
		{"a thread that never ends", "import threading\nthreading.Thread(target=threading.Event().wait).start()", 0},
		{"all signals ignored", `
			import signal
			for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
			    signal.signal(number, signal.SIG_IGN)
			while True: pass
		`, 0},
		{"a forged answer", `
			os.write(3, b'  File "<program>", line 7 in f\n')
			while True: pass
		`, -1},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				want := "The program ran for its whole timeout of 1000 ms"
				if tc.line > 0 {
					want += fmt.Sprintf(" and was stopped at line %d", tc.line)
				}
				run := func() (harness.Answer, string) {
					a, _ := c.Run(t, harness.Program{Code: harness.Py(tc.code), Tools: harness.Tools("ask"), Timeout: 1000}, harness.Echo)
					return a, a.Detail
				}
				a := tells(t, run, want, tc.line < 0)
				if tc.line >= 0 {
					a.Fails(t, 408, "Execution timeout")
				} else if a.Status != "error" {
					t.Errorf("got %v, want an error", a)
				}
			})
		}
		t.Run("a script", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "sleep 60", Lang: "bash", Timeout: 1000})
			if want := "The program ran for its whole timeout of 1000 ms"; a.Detail != want {
				t.Errorf("detail = %q, want %q", a.Detail, want)
			}
		})
		t.Run("without tools", func(t *testing.T) {
			t.Parallel()
			tells(t, func() (harness.ExecAnswer, string) {
				a := c.Exec(t, nil, map[string]any{"lang": "python", "code": "\nwhile True: pass", "timeout": 1000})
				return a, a.Detail
			}, "The program ran for its whole timeout of 1000 ms and was stopped at line 2", false)
		})
	})
}

// tells runs a program until the detail of its answer is as wanted, unless any will do. A busy machine
// may keep a program from telling its line in time, but hardly three times in a row.
func tells[A any](t *testing.T, run func() (A, string), want string, whatever bool) A {
	t.Helper()
	for try := 1; ; try++ {
		a, got := run()
		if got == want || whatever {
			return a
		}
		if try == 3 {
			t.Errorf("detail = %q, want %q", got, want)
			return a
		}
	}
}
