package toolsets

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestSequential checks that a sequential execution has one call at a time, in the order made, whoever
// runs it.
func TestSequential(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		p := program(key, `
			got = await asyncio.gather(*[Weather.aio.slow(ms=20, n=n, key=KEY) for n in range(3)], ask(n=3), ask(n=4), Weather.aio.slow(ms=20, n=5, key=KEY))
			print([g["n"] for g in got])
			with ThreadPoolExecutor(8) as pool:
			    print([g["n"] for g in pool.map(lambda n: Weather.slow(ms=20, n=n, key=KEY), range(8))])
		`)
		p.Tools, p.Sequential = harness.Tools("ask"), true
		a, rounds := d.Run(t, p, harness.Echo)
		a.Completes(t, "[0, 1, 2, 3, 4, 5]\n[0, 1, 2, 3, 4, 5, 6, 7]\n")
		if !slices.Equal(rounds, []int{1, 1}) {
			t.Errorf("calls by round = %v, want a round for each call of the client", rounds)
		}
		if n := d.upstream.Together(key); n != 1 {
			t.Errorf("%d calls ran at once, want 1", n)
		}
		var order []string
		for _, r := range d.upstream.Requests(key)[:4] {
			order = append(order, r.Query.Get("n"))
		}
		if !slices.Equal(order, []string{"0", "1", "2", "5"}) {
			t.Errorf("order = %v", order)
		}
		d.tells(t, a)
	})
}

// TestSequentialServer checks that a setting makes every execution sequential.
func TestSequentialServer(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, harness.Settings{"TOOLSETS_SEQUENTIAL": "true"}), harness.NewKey()
		p := program(key, `await asyncio.gather(*[Weather.aio.slow(ms=20, n=n, key=KEY) for n in range(4)], ask(n=1), ask(n=2))`)
		p.Tools = harness.Tools("ask")
		_, rounds := d.Run(t, p, harness.Echo)
		if !slices.Equal(rounds, []int{1, 1}) || d.upstream.Together(key) != 1 {
			t.Errorf("calls by round = %v, at once %d, want one at a time", rounds, d.upstream.Together(key))
		}
	})
}

// TestPlaces checks that as many calls of an execution run at once as the setting says.
func TestPlaces(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, harness.Settings{"TOOL_CONCURRENCY": "4"}), harness.NewKey()
		a := d.Post(t, program(key, `
			got = await asyncio.gather(*[Weather.aio.slow(ms=100, n=n, key=KEY) for n in range(12)])
			print([g["n"] for g in got])
		`))
		a.Completes(t, "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n")
		if n := d.upstream.Together(key); n != 4 {
			t.Errorf("%d calls ran at once, want 4", n)
		}
	})
}

// TestResultsAsTheyCome checks that a program goes on with each result while other calls run.
func TestResultsAsTheyCome(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key, next := standard(t, s, nil), harness.NewKey(), harness.NewKey()
		ended := make(chan harness.Answer, 1)
		go func() {
			a, err := d.Send(t.Context(), program(key, `
				async def quick():
				    await Weather.aio.current(city="Rome")
				    return (await HelpDesk.aio.book(n=2, key=`+fmt.Sprintf("%q", next)+`))["n"]
				held, n = await asyncio.gather(HelpDesk.aio.hold(n=1, key=KEY), quick())
				print(held["n"], n)
			`))
			if err != nil {
				t.Error(err)
			}
			ended <- a
		}()
		d.upstream.Await(t, key, 1)
		d.upstream.Await(t, next, 1) // The first call is still held.
		d.upstream.Release(key)
		(<-ended).Completes(t, "1 2\n")
	})
}

// TestLanes checks that calls of one lane never overlap, of many threads and two executions of one
// principal, and that each execution's calls come in the order made.
func TestLanes(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				a := d.Post(t, program(key, fmt.Sprintf(`
					got = await asyncio.gather(*[HelpDesk.aio.queue(ms=10, n=%d + n, key=KEY) for n in range(8)])
					with ThreadPoolExecutor(8) as pool:
					    got += pool.map(lambda n: HelpDesk.queue(ms=5, n=n, key=KEY), range(1000, 1008))
					print(len(got))
				`, 100*i)))
				a.Completes(t, "16\n")
			})
		}
		both.Wait()
		d.upstream.Sent(t, key, 32)
		if n := d.upstream.Together(key); n != 1 {
			t.Errorf("%d calls of the lane ran at once, want 1", n)
		}
		var order []int
		for _, r := range d.upstream.Requests(key) {
			var input struct {
				N int `json:"n"`
			}
			if err := json.Unmarshal([]byte(r.Body), &input); err != nil {
				t.Errorf("the endpoint got %q: %v", r.Body, err)
			}
			if input.N < 100 {
				order = append(order, input.N)
			}
		}
		if !slices.IsSorted(order) || len(order) != 8 {
			t.Errorf("order of one execution = %v, want 0 to 7", order)
		}
	})
}

// TestMaxCost checks that costs are reserved when calls begin, given back when they fail, and that a
// call beyond the bound is not made.
func TestMaxCost(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		p := program(key, `
			for _ in range(5):
			    try:
			        HelpDesk.lose(key="other")
			    except ToolExecutionError as e:
			        assert "404" in str(e), e
			got = await asyncio.gather(*[HelpDesk.aio.book(n=n, key=KEY) for n in range(50)], return_exceptions=True)
			print(sum(isinstance(g, dict) for g in got), {str(g) for g in got if not isinstance(g, dict)})
			print(Weather.current(city="Rome")["city"])
		`)
		p.MaxCost = new(10)
		a := d.Post(t, p)
		a.Completes(t, "3 {'the call costs 3 and is not made: the execution may spend 10 in all, and 9 are spent or reserved'}\nRome\n")
		d.upstream.Sent(t, key, 3)
		d.tells(t, a)
	})
}

// TestDayCost checks that the costs of a principal on one day are bounded, over programs and calls without
// one, also if many calls race, and after a restart.
func TestDayCost(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d, key := alone(t, s, harness.Settings{"TOOLSETS_MAX_DAY_COST": "20"}), harness.NewKey()
		failing := program(key, `
			for _ in range(8):
			    try:
			        HelpDesk.lose(key="other")
			    except ToolExecutionError as e:
			        assert "404" in str(e), e
		`)
		d.Post(t, failing).Completes(t, "") // What fails is given back.
		p := program(key, `
			got = await asyncio.gather(*[HelpDesk.aio.book(n=n, key=KEY) for n in range(50)], return_exceptions=True)
			print(sum(isinstance(g, dict) for g in got), {str(g).split(" until ")[0] for g in got if not isinstance(g, dict)})
			print(Weather.current(city="Rome")["city"])
		`)
		const refusal = "the call costs 3 and is not made: FERMATA_TOOLSETS_MAX_DAY_COST lets the principal spend 20 on each day of UTC, and 18 are spent or reserved"
		a := d.Post(t, p)
		a.Completes(t, "6 {'"+refusal+"'}\nRome\n")
		d.upstream.Sent(t, key, 6)
		d.tells(t, a)

		d.restart(t)
		d.Post(t, p).Completes(t, "0 {'"+refusal+"'}\nRome\n")
		body := fmt.Sprintf(`{"toolset":"desk","tool":"book","input":{"key":%q}}`, key)
		_, refused := execute(t, d.Client, nil, body, http.StatusTooManyRequests)
		harness.Contains(t, "the answer", refused.Raw, "rate_limited", refusal, "Please retry in ")
		if seconds, err := strconv.Atoi(refused.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 24*60*60 {
			t.Errorf("Retry-After is %q, want the seconds until midnight", refused.Header.Get("Retry-After"))
		}
		d.upstream.Sent(t, key, 6)
		execute(t, d.Client, nil, `{"toolset":"weather","tool":"current","input":{"city":"Rome"}}`, http.StatusOK)
		execute(t, d.server.Bob(), nil, body, http.StatusOK)
	})
}

// TestTimersRunDuringCalls checks that timers of a program's event loop run while the server runs its
// calls: a limit on a slow call ends the wait in time, other tasks run, and the call is given up. While a
// call waits for the client as well, the timers stand still.
func TestTimersRunDuringCalls(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key, next := standard(t, s, nil), harness.NewKey(), harness.NewKey()
		a := d.Post(t, program(key, `
			import time
			ticks = 0
			async def ticker():
			    global ticks
			    while True:
			        await asyncio.sleep(0.05)
			        ticks += 1
			beside = asyncio.create_task(ticker())
			began = time.monotonic()
			try:
			    await asyncio.wait_for(Weather.aio.slow(ms=4000, n=1, key=KEY), 0.4)
			except asyncio.TimeoutError:
			    print("given up")
			took = time.monotonic() - began
			print(0.39 < took < 2, ticks > 1)
			in_time = await asyncio.wait_for(Weather.aio.slow(ms=200, n=2, key=KEY), 30)
			print(in_time["n"], time.monotonic() - began < 3.5)
		`))
		a.Completes(t, "given up\nTrue True\n2 True\n")
		j := d.tells(t, a)
		if len(j.Calls) != 2 || j.Calls[0].Status != "failed" || j.Calls[1].Status != "completed" {
			t.Errorf("calls of the journal = %v, want one that was given up and one with a result", j.Calls)
		}
		d.upstream.Sent(t, key, 2)

		p := program(next, `
			both = await asyncio.gather(asyncio.wait_for(ask(n=1), 0.1), Weather.aio.slow(ms=500, n=2, key=KEY))
			print([b["n"] for b in both])
		`)
		p.Tools = harness.Tools("ask")
		a, rounds := d.Run(t, p, harness.Echo)
		a.Completes(t, "[1, 2]\n")
		if !slices.Equal(rounds, []int{1}) {
			t.Errorf("calls by round = %v, want one of the client", rounds)
		}
	})
}

// TestTimeoutCountsCalls checks that the time of the server's calls counts against the timeout, and
// that a call of a program which has run out of time is ended.
func TestTimeoutCountsCalls(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		p := program(key, `HelpDesk.hold(key=KEY)`)
		p.Timeout = 1500
		began := time.Now()
		a := d.Post(t, p)
		if a.Status != "error" && a.Status != "timed_out" || time.Since(began) > 15*time.Second {
			t.Errorf("got %v after %v, want it to time out", a, time.Since(began))
		}
		d.upstream.Sent(t, key, 1)
		err := harness.Within(10*time.Second, func() error {
			if r := d.upstream.Requests(key); r[0].Ended.IsZero() {
				return errors.New("the endpoint still answers")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		j := &harness.Journal{ID: a.Execution()}
		if err := j.Read(t.Context(), d.Client); err != nil || len(j.Calls) != 1 || j.Calls[0].Status != "failed" {
			t.Errorf("%v: calls = %v, want one that has failed", err, j.Calls)
		}
	})
}
