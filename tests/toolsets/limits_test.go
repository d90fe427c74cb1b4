package toolsets

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// calls is a program that makes COUNT calls of a tool at once, and tells how many came back, and what
// the others were told.
const calls = `
	got = await asyncio.gather(*[TOOL(n=n, key=KEY) for n in range(COUNT)], return_exceptions=True)
	print(sum(isinstance(g, dict) for g in got), sorted({str(g) for g in got if not isinstance(g, dict)}))
`

// makes returns the program that makes so many calls of a tool.
func makes(n int, tool, key string) harness.Program {
	p := program(key, strings.NewReplacer("TOOL", tool, "COUNT", strconv.Itoa(n)).Replace(calls))
	p.Timeout = 300_000
	return p
}

// patient are toolsets whose calls may be held for long.
var patient = strings.ReplaceAll(harness.StandardToolsets, "timeout: 20s", "timeout: 120s")

// several sends programs of clients at the same time, and returns a function that waits until all have
// printed the same.
func several(t *testing.T, programs map[harness.Client][]harness.Program) (print func(want string)) {
	t.Helper()
	n, ended := 0, make(chan harness.Answer)
	for c, list := range programs {
		for _, p := range list {
			n++
			go func() {
				a, err := c.Send(t.Context(), p)
				if err != nil {
					a.Error = err.Error()
				}
				ended <- a
			}()
		}
	}
	return func(want string) {
		t.Helper()
		for range n {
			(<-ended).Completes(t, want)
		}
	}
}

// TestCallsAtATime checks how many calls the server runs at the same time if no setting says otherwise:
// 16 of an execution, 64 of a principal, and 256 in all.
func TestCallsAtATime(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		u := harness.NewUpstream(t)
		var names, keys []string
		for i := range 5 {
			names = append(names, fmt.Sprintf("user%d:key-of-user-%d", i, i))
			keys = append(keys, harness.NewKey())
		}
		settings := harness.With(harness.Quick(t), harness.Settings{
			"TOOLSETS": harness.WriteToolsets(t, u, patient), "API_KEYS": strings.Join(names, ","), "ADDR": "127.0.0.1:0",
		})
		sent := func(most int) {
			t.Helper()
			err := harness.Within(harness.StartTimeout, func() error {
				n := 0
				for _, key := range keys {
					n += len(u.Requests(key))
				}
				if n < most {
					return fmt.Errorf("%d requests have come, want %d", n, most)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // If one more is sent, it most likely comes now.
		}

		one := harness.ServeAlone(t, s, settings)
		client := func(server *harness.Server, i int) harness.Client {
			return harness.Client{URL: server.URL, Key: fmt.Sprintf("key-of-user-%d", i)}
		}
		print := several(t, map[harness.Client][]harness.Program{client(one, 0): {makes(20, "HelpDesk.aio.hold", keys[0])}})
		sent(16)
		if n := u.Together(keys[0]); n != 16 {
			t.Errorf("%d calls of an execution ran at the same time, want 16", n)
		}
		u.Release(keys[0])
		print("20 []\n")

		// Each of five principals makes 80 calls, with two programs.
		settings["TOOL_CONCURRENCY"] = "40"
		all := harness.ServeAlone(t, s, settings)
		programs := map[harness.Client][]harness.Program{}
		for i := range keys {
			keys[i] = harness.NewKey()
			programs[client(all, i)] = []harness.Program{makes(40, "HelpDesk.aio.hold", keys[i]), makes(40, "HelpDesk.aio.hold", keys[i])}
		}
		print = several(t, programs)
		sent(256)
		for _, key := range keys {
			if n := u.Together(key); n > 64 {
				t.Errorf("%d calls of a principal ran at the same time, want at most 64", n)
			}
		}
		if n := u.Together(keys...); n != 256 {
			t.Errorf("%d calls ran at the same time, want 256", n)
		}
		for _, key := range keys {
			u.Release(key)
		}
		print("40 []\n")
	})
}

// TestWaitingCalls checks that a thousand calls of an execution wait beside those that run, and that the
// others fail at once.
func TestWaitingCalls(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		a := d.Post(t, makes(1100, "HelpDesk.aio.book", key))
		a.Completes(t, "1016 ['the call is not made: 1000 calls of the program wait already; let it make fewer at the same time']\n")
		d.upstream.Sent(t, key, 1016)
	})
}

// TestOpenApprovals checks that a hundred calls of an execution, and a thousand of a principal, wait for
// approval at the same time.
func TestOpenApprovals(t *testing.T) {
	const refusal = "this tool needs approval, and 1000 calls of this principal wait for approval already"
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d, key := alone(t, s, harness.Quick(t)), harness.NewKey()
		asks := func(n int) harness.Program {
			p := makes(n, "HelpDesk.aio.pay", key)
			p.Approvals = true
			return p
		}
		pays := func(p harness.Program, want int) harness.Answer {
			t.Helper()
			a := d.Pause(t, p)
			if len(a.Calls) != want || a.Calls[0].Approval != "required" {
				t.Fatalf("%d calls wait for approval, want %d", len(a.Calls), want)
			}
			return a
		}
		// Those beyond a hundred are asked for in the next round.
		next := d.Pause(t, pays(asks(120), 100).Continue(harness.Decision(true, "")))
		if len(next.Calls) != 20 {
			t.Errorf("%d calls wait for approval, want the other 20", len(next.Calls))
		}
		d.upstream.Sent(t, key, 100)
		d.Post(t, next.Continue(harness.Decision(true, ""))).Completes(t, "120 []\n")
		d.upstream.Sent(t, key, 120)

		var open []harness.Answer
		for range 10 {
			open = append(open, pays(asks(100), 100))
		}
		d.Post(t, asks(3)).Completes(t, "0 ['"+refusal+"']\n")
		hostile := forgesMany(key, "pay", 1, 3)
		hostile.Approvals = true
		if a := d.Post(t, hostile); a.Status == "tool_call_required" || d.failures(t, a, refusal) != 3 {
			t.Errorf("calls that no runner has made: got %v, want them to fail", a)
		}
		other := desk{d.server.Bob(), d.server, d.upstream}
		p := asks(1)
		if a := other.Pause(t, p); len(a.Calls) != 1 {
			t.Errorf("got %v, want that another principal is asked", a)
		}
		// The server that has taken them over has counted them, too.
		d.restart(t)
		d.Post(t, asks(1)).Completes(t, "0 ['"+refusal+"']\n")
		d.Post(t, open[0].Continue(harness.Decision(false, "no"))).Completes(t, "0 ['refused: no']\n")
		pays(asks(2), 2)
	})
}
