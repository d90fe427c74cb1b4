package programs

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestPrintedOutput prints up to the limit of stdout and stderr, and beyond it.
func TestPrintedOutput(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.SmallLimits).Alice()
		for _, tc := range []struct{ name, code, text string }{
			{"stdout", "print('head')\nwhile True: print('x' * 1000)", "stdout length exceeded"},
			{"1 GB on stdout", "print('head', flush=True)\nfor _ in range(1024): os.write(1, bytes(1 << 20))", "stdout length exceeded"},
			{"stdout of a child", "print('head', flush=True)\nos.system('yes')", "stdout length exceeded"},
			{"one line", "print('head')\nprint('x' * (20 << 20))", "stdout length exceeded"},
			{"after a call", "print('head')\nawait ask()\nwhile True: print('x' * 1000)", "stdout length exceeded"},
			{"stderr", "print('head')\nwhile True: print('x' * 1000, file=sys.stderr)", "stderr length exceeded"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a, _ := c.Run(t, harness.Program{Code: tc.code, Tools: harness.Tools("ask"), Timeout: 20_000}, harness.Echo)
				a.Fails(t, 200, tc.text)
				if !strings.HasPrefix(a.Stdout, "head\n") {
					t.Errorf("got %v, want the head of stdout", a)
				}
				if got := max(len(a.Stdout), len(a.Stderr)); got > 64<<10 || got < 60<<10 {
					t.Errorf("%d bytes were kept, want about %d", got, 64<<10)
				}
			})
		}
		t.Run("exactly the limit", func(t *testing.T) {
			t.Parallel()
			want := strings.Repeat("x", 64<<10-1) + "\n"
			c.Post(t, harness.Program{Code: "print('x' * 65535)"}).Completes(t, want)
		})
		t.Run("in a pause", func(t *testing.T) {
			t.Parallel()
			a, _ := c.Run(t, harness.Program{Code: "print('x' * 40000)\nawait ask()\nprint('y' * 20000)\nawait ask()\nprint('z')", Tools: harness.Tools("ask")}, harness.Echo)
			a.Completes(t, strings.Repeat("x", 40000)+"\n"+strings.Repeat("y", 20000)+"\nz\n")
		})
	})
}
