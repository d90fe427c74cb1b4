package toolsets

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
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

// shop is a toolset whose tool must not be called twice, and may run many times at once.
const shop = `
toolsets:
  shop:
    title: Shop
    private: true
    http:
      base_url: URL
      timeout: 20s
      tools: [{name: buy, description: Takes its time., method: POST, path: /slow, parameters: INPUT}]
`

// buys is a program that buys for as long as its client wants, and tells its client what has come of it.
const buys = `
	import random
	from fermata_tools.shop import Shop
	n, told = FIRST, "nothing"
	while await ask(n=n, told=told):
	    n += 1
	    try:
	        told = "done" if Shop.buy(n=n, ms=random.randrange(80), key=KEY)["n"] == n else "the result of another call"
	    except ToolExecutionError as e:
	        told = str(e)
`

// A buyer is the client of a program that buys.
type buyer struct {
	harness.Client
	// over is closed when the program has bought enough.
	over <-chan struct{}
	// told is what the program was told, by the n of its calls.
	told map[int]string
}

// buy starts the program and answers it, however often the server is away, until it has ended.
func (b *buyer) buy(ctx context.Context, p harness.Program) error {
	body, err := harness.Marshal(p)
	for err == nil {
		var a harness.Answer
		a, err = b.Insist(ctx, http.MethodPost, harness.Programmatic, nil, body)
		switch {
		case err != nil:
		case a.HTTPStatus == http.StatusConflict: // The request that the server had got before goes on.
			time.Sleep(20 * time.Millisecond)
		case a.Status == "tool_call_required":
			body, err = harness.Marshal(a.Continue(b.answer))
		case a.Status == "completed":
			return nil
		default:
			return fmt.Errorf("got %v, want it completed", a)
		}
	}
	return err
}

// answer notes what the program was told, and says whether it goes on.
func (b *buyer) answer(c harness.Call) harness.Result {
	var asked struct {
		N    int    `json:"n"`
		Told string `json:"told"`
	}
	if err := json.Unmarshal(c.Input, &asked); err != nil {
		asked.Told = err.Error()
	}
	b.told[asked.N] = asked.Told
	select {
	case <-b.over:
		return harness.Value("false")(c)
	default:
		return harness.Value("true")(c)
	}
}

// TestAtMostOnce kills the server again and again, at any moment, while many programs call a tool that
// must not be called twice. The endpoint's own log has each call at most once, and what programs were
// told of their calls is true.
func TestAtMostOnce(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		programs, calls, kills := 40, 1000, harness.Count(8, 100)
		if s.Docker() {
			programs, calls, kills = 4, 40, harness.Count(3, 20) // The daemon makes one container after the other.
		}
		u, key := harness.NewUpstream(t), harness.NewKey()
		server := harness.ServeAlone(t, s, harness.With(harness.Quick(t), harness.Settings{
			"TOOLSETS": harness.WriteToolsets(t, u, shop), "MAX_ROUNDS": "10000",
		}))
		ctx, cancel := context.WithTimeout(t.Context(), harness.StartTimeout+time.Duration(kills)*20*time.Second)
		defer cancel()
		over, done := make(chan struct{}), make(chan error, programs)
		buyers := make([]*buyer, programs)
		for i := range buyers {
			b := &buyer{server.Alice(), over, map[int]string{}}
			buyers[i] = b
			code := strings.NewReplacer("FIRST", strconv.Itoa(1_000_000*i), "KEY", strconv.Quote(key)).Replace(harness.Py(buys))
			p := harness.Program{Code: code, Toolsets: []string{"shop"}, Tools: harness.Tools("ask"), Timeout: 300_000}
			go func() { done <- b.buy(ctx, p) }()
		}
		for range kills {
			// Each program has had the time for a call since the last kill.
			u.Await(t, key, len(u.Requests(key))+programs)
			time.Sleep(rand.N(100 * time.Millisecond))
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Launch(); err != nil {
				t.Fatal(err)
			}
			if err := server.Await(); err != nil {
				t.Fatal(err)
			}
		}
		u.Await(t, key, calls)
		close(over)
		for range programs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		sent := map[int]int{}
		for _, r := range u.Requests(key) {
			var input struct {
				N int `json:"n"`
			}
			if err := json.Unmarshal([]byte(r.Body), &input); err != nil {
				t.Errorf("the endpoint got %q: %v", r.Body, err)
			}
			if sent[input.N]++; sent[input.N] > 1 {
				t.Errorf("the endpoint got %s twice", r.Body)
			}
		}
		count := map[string]int{}
		for _, b := range buyers {
			for n, told := range b.told {
				switch {
				case told == "done" && sent[n] == 0:
					t.Errorf("a program was told of a result of call %d, which was not sent", n)
				case told == unknown && sent[n] == 1:
					count[told+" (it was sent)"]++
				default:
					count[told]++
				}
			}
		}
		// With few programs and few kills it may happen that each kill meets no call.
		if !s.Docker() && count[unknown]+count[unknown+" (it was sent)"] == 0 {
			t.Error("no call ran when the server was killed")
		}
		t.Logf("%d requests of %d programs, whose server was killed %d times; they were told: %v", len(sent), programs, kills, count)
	})
}
