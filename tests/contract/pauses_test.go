package contract

import (
	"fmt"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestRoundsLeft follows a program through all rounds that it may have. Each pause tells how many
// more there may be.
func TestRoundsLeft(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, harness.Settings{"MAX_ROUNDS": "3"}).Alice()
		a := c.Post(t, harness.Program{Code: "for n in range(4): await ask(n=n)", Tools: harness.Tools("ask")})
		for left := 2; left >= 0; left-- {
			if want := fmt.Sprintf(`"rounds_left":%d`, left); a.Status != "tool_call_required" || !strings.Contains(a.Raw, want) {
				t.Fatalf("got %v, want a pause with %s", a, want)
			}
			request := a.Continue(harness.Echo)
			next := c.Post(t, request)
			if again := c.Post(t, request); again.Raw != next.Raw {
				t.Errorf("got %v for the same request, want %v", again, next)
			}
			a = next
		}
		a.Fails(t, 400, "Exceeded maximum round trips (3)")
	})
}

// TestUsualRounds looks at how many rounds there are if nobody has set it.
func TestUsualRounds(t *testing.T) {
	t.Parallel()
	c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	if a := c.Pause(t, harness.AskOnce); a.RoundsLeft != 19 {
		t.Errorf("rounds_left = %d in the first of 20 pauses, want 19", a.RoundsLeft)
	}
}

// TestPartialOutput looks at what pauses tell of what the program has printed so far.
func TestPartialOutput(t *testing.T) {
	for name, settings := range map[string]harness.Settings{"with journals": nil, "without journals": {"JOURNAL": "off"}} {
		t.Run(name, func(t *testing.T) {
			harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) { testPartialOutput(t, harness.Serve(t, s, settings)) })
		})
	}
}

func testPartialOutput(t *testing.T, s *harness.Server) {
	c := s.Alice()
	partial := func(t *testing.T, a harness.Answer, stdout, stderr string) {
		t.Helper()
		if a.Status != "tool_call_required" || a.PartialStdout != stdout || a.PartialStderr != stderr {
			t.Errorf("got %v, want a pause with partial_stdout %.80q and partial_stderr %.80q", a, stdout, stderr)
		}
		if strings.Contains(a.Raw, `"stdout"`) || strings.Contains(a.Raw, `"stderr"`) {
			t.Errorf("got %v, want stdout and stderr at the end only", a)
		}
		for member, text := range map[string]string{"partial_stdout": stdout, "partial_stderr": stderr} {
			if got, want := strings.Contains(a.Raw, member), text != ""; got != want {
				t.Errorf("got %v: it has %s: %t, want %t", a, member, got, want)
			}
		}
	}
	t.Run("both streams", func(t *testing.T) {
		t.Parallel()
		a := c.Post(t, harness.Program{Code: harness.Py(`
			await ask(n=0)
			print("é\x01<")
			await ask(n=1)
			os.write(2, b"w\xff\xc3")
			await ask(n=2)
			os.write(2, b"\xa9\n")
			await ask(n=3)
			print("end")
		`), Tools: harness.Tools("ask")})
		partial(t, a, "", "")
		for _, want := range [][2]string{{"é\x01<\n", ""}, {"é\x01<\n", "w\uFFFD"}, {"é\x01<\n", "w\uFFFDé\n"}} {
			request := a.Continue(harness.Echo)
			next := c.Post(t, request)
			partial(t, next, want[0], want[1])
			if again := c.Post(t, request); again.Raw != next.Raw {
				t.Errorf("got %v for the same request, want %v", again, next)
			}
			a = next
		}
		a = c.Post(t, a.Continue(harness.Echo))
		a.Completes(t, "é\x01<\nend\n")
		if a.Stderr != "w\uFFFDé\n" {
			t.Errorf("stderr = %q", a.Stderr)
		}
	})
	t.Run("much of it", func(t *testing.T) {
		t.Parallel()
		code := "for n in range(3):\n    print(str(n) * 99_999)\n    print('e' * 65_535, file=sys.stderr)\n    await ask(n=n)"
		a := c.Post(t, harness.Program{Code: code, Tools: harness.Tools("ask")})
		line := strings.Repeat("e", 65_535) + "\n"
		partial(t, a, "…"+strings.Repeat("0", 65_535)+"\n", line)
		a = c.Post(t, a.Continue(harness.Echo))
		partial(t, a, "…"+strings.Repeat("1", 65_535)+"\n", "…"+line)
	})
	t.Run("bash", func(t *testing.T) {
		t.Parallel()
		a := c.Post(t, harness.Program{Code: "echo out\necho err >&2\nask '{}' >/dev/null", Tools: harness.Tools("ask"), Lang: "bash"})
		partial(t, a, "out\n", "err\n")
	})
}

// TestPartialOutputBeyondTheQuota fills what a client may have stored. Then pauses tell nothing of
// what is printed, and programs go on.
func TestPartialOutputBeyondTheQuota(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, harness.Settings{"MAX_STORED": "100KiB"}).Alice()
		loud := harness.Program{Code: "print('\\x01' * 15_000)\nprint(await ask(n=1))", Tools: harness.Tools("ask")}
		first, second := c.Pause(t, loud), c.Pause(t, loud)
		if len(first.PartialStdout) != 15_001 || second.PartialStdout != "" {
			t.Errorf("two pauses tell %d and %d bytes, want 15001 and none", len(first.PartialStdout), len(second.PartialStdout))
		}
		c.Post(t, first.Continue(harness.Echo)).Completes(t, strings.Repeat("\x01", 15_000)+"\n{'n': 1}\n")
		c.Post(t, second.Continue(harness.Echo)).Completes(t, strings.Repeat("\x01", 15_000)+"\n{'n': 1}\n")
	})
}
