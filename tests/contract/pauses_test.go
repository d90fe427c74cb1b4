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
	t.Run("as many as are set", func(t *testing.T) {
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
	})
	t.Run("as many as there usually are", func(t *testing.T) {
		t.Parallel()
		c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
		if a := c.Pause(t, harness.AskOnce); a.RoundsLeft != 19 {
			t.Errorf("rounds_left = %d in the first of 20 pauses, want 19", a.RoundsLeft)
		}
	})
}
