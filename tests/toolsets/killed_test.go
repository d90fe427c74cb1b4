package toolsets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// unknown is what a program is told of a call that ran when its server was killed.
const unknown = "the server was restarted while this call ran; whether it took effect is unknown"

// TestKilledWhileACallRuns kills the server while it runs calls. Calls that may be repeated are; the
// others fail, and the endpoint sees them once.
func TestKilledWhileACallRuns(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		d, once, again := alone(t, s, nil), harness.NewKey(), harness.NewKey()
		p := program(once, `
			await ask(n=0)
			got = await asyncio.gather(HelpDesk.aio.hold(n=1, key=KEY), Weather.aio.wait(n=2, key=AGAIN), return_exceptions=True)
			print(got[0], got[1]["n"])
			print(HelpDesk.book(n=3, key=KEY)["n"])
		`)
		p.Code, p.Tools = strings.ReplaceAll(p.Code, "AGAIN", fmt.Sprintf("%q", again)), harness.Tools("ask")
		pause := d.Pause(t, p)
		go func() { _, _ = d.Send(t.Context(), pause.Continue(harness.Echo)) }() // The server is killed.
		d.upstream.Await(t, once, 1)
		d.upstream.Await(t, again, 1)
		d.restart(t)
		d.upstream.Await(t, again, 2)
		d.upstream.Release(again)
		a := d.Post(t, pause.Continue(harness.Echo))
		a.Completes(t, unknown+" 2\n3\n")
		d.upstream.Sent(t, once, 2)
		d.upstream.Sent(t, again, 2)
		j := d.tells(t, a)
		if len(j.Calls) != 4 {
			t.Errorf("calls = %v, want 4", j.Calls)
		}
	})
}

// TestAtMostOnce kills the server again and again while programs call a tool that must not be called
// twice: the endpoint's own log has each call at most once, and a program that was told of a result
// was told the truth.
func TestAtMostOnce(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		d := alone(t, s, harness.Quick(t))
		const programs, calls = 4, 30
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		keys, done := make([]string, programs), make(chan error, programs)
		for i := range programs {
			keys[i] = harness.NewKey()
			p := program(keys[i], fmt.Sprintf(`
				await ask(n=0)
				for n in range(%d):
				    try:
				        print(HelpDesk.queue(ms=20, n=n, key=KEY)["n"])
				    except ToolExecutionError as e:
				        print(n, "failed", e)
			`, calls))
			p.Tools = harness.Tools("ask")
			pause := d.Pause(t, p)
			go func() { done <- follow(ctx, d, pause) }()
		}
		for range 6 {
			time.Sleep(time.Duration(100+rand.N(400)) * time.Millisecond)
			if err := d.server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := d.server.Launch(); err != nil {
				t.Fatal(err)
			}
			if err := d.server.Await(); err != nil {
				t.Fatal(err)
			}
		}
		for range programs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for _, key := range keys {
			sent := map[string]int{}
			for _, r := range d.upstream.Requests(key) {
				sent[r.Body]++
				if sent[r.Body] > 1 {
					t.Errorf("the endpoint got %s twice", r.Body)
				}
			}
		}
	})
}

// follow continues a pause until there is an answer, however often the server is away.
func follow(ctx context.Context, d desk, pause harness.Answer) error {
	for {
		c := d.server.Alice()
		a, err := c.Send(ctx, pause.Continue(harness.Echo))
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("no answer but %v, %w", a, err)
		case err != nil, a.HTTPStatus == 503, a.HTTPStatus == 409:
			time.Sleep(20 * time.Millisecond)
		case a.Status == "completed":
			return nil
		default:
			return fmt.Errorf("got %v, want it completed", a)
		}
	}
}
