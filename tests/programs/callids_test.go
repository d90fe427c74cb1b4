package programs

import (
	"fmt"
	"testing"

	"fermata/tests/harness"
)

// TestCallIDs checks that the ids of calls count on through all rounds of an execution.
func TestCallIDs(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		a := c.Pause(t, harness.Program{Code: harness.Py(`
			await asyncio.gather(*[ask(n=n) for n in range(3)])
			await asyncio.gather(*[ask(n=n) for n in range(997)])
			await ask()
		`), Tools: harness.Tools("ask")})
		next := 1
		for ; a.Status == "tool_call_required"; a = c.Post(t, a.Continue(harness.Echo)) {
			for _, call := range a.Calls {
				if want := fmt.Sprintf("call_%03d", next); call.ID != want {
					t.Fatalf("id of call %d = %s, want %s", next, call.ID, want)
				}
				next++
			}
		}
		if a.Error != "Execution exceeded maximum tool calls (1000)" && next != 1002 {
			t.Errorf("got %v after %d calls, want 1001 calls, or the limit of 1000 named", a, next-1)
		}
	})
}

// TestManyCalls makes more and larger calls than the server allows at once.
func TestManyCalls(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.Settings{"MAX_CALLS": "500"}).Alice()
		a, _ := c.Run(t, harness.Program{Code: "await asyncio.gather(*[ask(n=n) for n in range(501)])", Tools: harness.Tools("ask")}, harness.Echo)
		a.Fails(t, 400, "Execution exceeded maximum tool calls (500)")
		a, _ = c.Run(t, harness.Program{Code: "for _ in range(3): await asyncio.gather(*[ask(n=n) for n in range(200)])", Tools: harness.Tools("ask")}, harness.Echo)
		a.Fails(t, 400, "Execution exceeded maximum tool calls (500)")
		a, batches := c.Run(t, harness.Program{Code: "x = await asyncio.gather(*[ask(x='x' * 4_000_000) for n in range(8)])\nprint(len(x))", Tools: harness.Tools("ask")}, harness.Value("1"))
		a.Completes(t, "8\n")
		if len(batches) < 2 {
			t.Errorf("calls by round = %v, want 32 MB in more than one", batches)
		}
	})
}
