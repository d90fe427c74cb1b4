package programs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestFloodsInPauses lets a thread print without end while the program waits for a tool. The pause is answered before the
// flood is noticed, and the continuation is told of it, with the output.
func TestFloodsInPauses(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.SmallLimits).Alice()
		for _, delay := range []string{"0", "0.002", "0.01", "0.05"} {
			t.Run(delay, func(t *testing.T) {
				t.Parallel()
				a := c.Post(t, harness.Program{
					Code: fmt.Sprintf(`
import sys, threading, time
def flood():
    time.sleep(%s)
    while True:
        print("x" * 10_000)
threading.Thread(target=flood, daemon=True).start()
await ask()
time.sleep(5)
`, delay),
					Tools: harness.Tools("ask"),
				})
				if a.Status == "tool_call_required" {
					time.Sleep(300 * time.Millisecond)
					a = c.Post(t, a.Continue(harness.Value("null")))
				}
				if a.HTTPStatus != 200 || a.Status != "error" || !strings.Contains(a.Raw, "stdout length exceeded") || !strings.HasPrefix(a.Stdout, "xxx") {
					t.Errorf("got %d %s %.300s, want that stdout is too long, with the output", a.HTTPStatus, a.Status, a.Raw)
				}
			})
		}
	})
}
