package survival

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestPartialOutputSurvives kills the server of a paused program. The next server repeats the answer
// byte for byte, and the next pause tells what the program has printed since its beginning.
func TestPartialOutputSurvives(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		code := "print('x' * 70_000)\nawait ask(n=1)\nprint('two')\nos.write(2, b'err')\nawait ask(n=2)\nprint('three')\nawait ask(n=3)"
		request := c.Pause(t, harness.Program{Code: code, Tools: harness.Tools("ask")}).Continue(harness.Echo)
		pause := c.Pause(t, request)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		c = server.Alice()
		if again := c.Post(t, request); again.Raw != pause.Raw || !strings.HasSuffix(again.PartialStdout, "x\ntwo\n") {
			t.Errorf("got %v from the next server, want the answer again: %v", again, pause)
		}
		next := c.Pause(t, pause.Continue(harness.Echo))
		if want := "…" + strings.Repeat("x", 65_536-len("\ntwo\nthree\n")) + "\ntwo\nthree\n"; next.PartialStdout != want || next.PartialStderr != "err" {
			t.Errorf("got %v, want the end of all output", next)
		}
		c.Post(t, next.Continue(harness.Echo)).Completes(t, strings.Repeat("x", 70_000)+"\ntwo\nthree\n")
	})
}
