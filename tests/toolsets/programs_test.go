package toolsets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestCallsOfPrograms runs programs that call the server's tools in every way: none of them pauses.
func TestCallsOfPrograms(t *testing.T) {
	cases := []struct{ name, code, stdout string }{
		{"blocking", `print(Weather.current(city="Paris"))`, "{'celsius': 21, 'city': 'Paris'}\n"},
		{"one dict as the only argument", `print(Weather.current({"city": "Paris"})["city"])`, "Paris\n"},
		{"awaited", `
			both = await asyncio.gather(Weather.aio.current(city="Rome"), Weather.aio.current(city="Oslo"))
			print([b["city"] for b in both])
		`, "['Rome', 'Oslo']\n"},
		{"in threads", `
			with ThreadPoolExecutor() as pool:
			    print([w["city"] for w in pool.map(lambda c: Weather.current(city=c), ["Rome", "Oslo", "Bern"])])
		`, "['Rome', 'Oslo', 'Bern']\n"},
		{"without a loop of its own", `
			def plain(city):
			    return Weather.current(city=city)["city"]
			async def main():
			    return plain("Rome"), (await Weather.aio.current(city="Oslo"))["city"]
			print(await main())
		`, "('Rome', 'Oslo')\n"},
		{"a failed call", `
			try:
			    HelpDesk.lose(key=KEY)
			except ToolExecutionError as e:
			    print(type(e).__name__, "404" in str(e), "this is the endpoint's own text" in str(e))
		`, "ToolExecutionError True True\n"},
		{"an envelope", `
			print(HelpDesk.order(ok=True)["ok"])
			try:
			    HelpDesk.order(ok=False)
			except ToolExecutionError as e:
			    print(e, e.code, e.where, e.managed)
		`, "True\nno such order E404 None False\n"},
		{"an input that the schema refuses", `
			try:
			    Weather.current(city=7.5, key=KEY)
			except ToolExecutionError as e:
			    print(e)
		`, ""},
		{"signatures", `
			import inspect
			print(inspect.signature(Weather.current).parameters["city"].kind.name, "Weather now." in Weather.current.__doc__)
		`, ""},
		{"what is not granted cannot be imported", `
			try:
			    from fermata_tools.trouble import Trouble
			except ImportError as e:
			    print("weather" in str(e), "desk" in str(e))
		`, "True True\n"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a := d.Post(t, program(harness.NewKey(), tc.code))
				if tc.stdout == "" {
					tc.stdout = a.Stdout
				}
				a.Completes(t, tc.stdout)
				d.tells(t, a)
			})
		}
	})
}

// TestMixedWithTheClientsTools checks that a program which waits for tools of both sides pauses once,
// for the client's calls alone.
func TestMixedWithTheClientsTools(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		p := program(key, `
			rome, oslo, bern = await asyncio.gather(Weather.aio.slow(ms=50, n=1, key=KEY), ask(n=2), Weather.aio.slow(ms=10, n=3, key=KEY))
			print(rome["n"], oslo["n"], bern["n"])
			again = await asyncio.gather(ask(n=4), HelpDesk.aio.book(key=KEY, n=5))
			print([a["n"] for a in again])
		`)
		p.Tools = harness.Tools("ask")
		a := d.Pause(t, p)
		if len(a.Calls) != 1 || a.Calls[0].Name != "ask" || a.Calls[0].CompactInput() != `{"n":2}` {
			t.Errorf("calls = %v, want only that of the client", a.Calls)
		}
		d.upstream.Sent(t, key, 2)
		a, rounds := d.continued(t, a)
		a.Completes(t, "1 2 3\n[4, 5]\n")
		if !slices.Equal(rounds, []int{1, 1}) {
			t.Errorf("calls by round = %v, want one for each", rounds)
		}
		d.upstream.Sent(t, key, 3)
		j := d.tells(t, a)
		if len(j.Calls) != 5 {
			t.Errorf("calls of the journal = %v, want 5", j.Calls)
		}
	})
}

// continued answers calls with their inputs until the program ends. It returns the numbers of calls by
// round, with that of the first pause.
func (d desk) continued(t *testing.T, a harness.Answer) (harness.Answer, []int) {
	t.Helper()
	var rounds []int
	for a.Status == "tool_call_required" {
		rounds = append(rounds, len(a.Calls))
		a = d.Post(t, a.Continue(harness.Echo))
	}
	return a, rounds
}

// TestHundredCallsTakeNoRound makes 100 calls in a row: there is no pause.
func TestHundredCallsTakeNoRound(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		a := d.Post(t, program(key, `print(sum(HelpDesk.book(n=n, key=KEY)["n"] for n in range(100)))`))
		a.Completes(t, "4950\n")
		d.upstream.Sent(t, key, 100)
		if j := d.tells(t, a); j.Events[len(j.Events)-1].Rounds != 0 || len(j.Calls) != 100 {
			t.Errorf("rounds = %d, calls = %d, want 0 and 100", j.Events[len(j.Events)-1].Rounds, len(j.Calls))
		}
	})
}

// TestReflysPattern runs programs as Refly's models write them: the package has Refly's name.
func TestReflysPattern(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, harness.Settings{"TOOLS_PACKAGE": "refly_tools"})
		p := harness.Program{Code: harness.Py(`
			from refly_tools.weather import Weather
			from concurrent.futures import ThreadPoolExecutor
			result = Weather.current(city="Paris")
			print(type(result).__name__, result["city"])
			with ThreadPoolExecutor(max_workers=5) as pool:
			    print(list(pool.map(lambda c: Weather.current(city=c)["city"], ["a", "b", "c"])))
		`), Toolsets: []string{"weather"}}
		d.Post(t, p).Completes(t, "dict Paris\n['a', 'b', 'c']\n")
	})
}

// TestBashFunctions calls the server's tools from shell scripts, beside a tool of the client.
func TestBashFunctions(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		p := program(key, "")
		p.Lang, p.Tools = "bash", harness.Tools("ask")
		p.Code = fmt.Sprintf("weather_current '{\"city\": \"Paris\"}' | grep -o Paris\ndesk_book '{\"key\": %q, \"n\": 7}' | grep -o '.n.: *7'\nask '{\"n\": 1}'\ndesk_lose '{\"key\": %q}' >/dev/null || echo failed", key, key)
		a, rounds := d.Run(t, p, harness.Value("true"))
		if a.Status != "completed" || strings.ReplaceAll(a.Stdout, " ", "") != "Paris\n\"n\":7\ntrue\nfailed\n" {
			t.Errorf("got %v, want what the tools have answered", a)
		}
		if len(rounds) != 1 {
			t.Errorf("calls by round = %v, want one round", rounds)
		}
		d.upstream.Sent(t, key, 2)
	})
}

// TestClientsOwnToolset lets a program import tools of its client: they are asked of the client, with
// the name of their toolset.
func TestClientsOwnToolset(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		p := harness.Program{Code: harness.Py(`
			from fermata_tools.notes import Notebook
			print(Notebook.read(n=1), await Notebook.aio.read(n=2), await read(n=3))
		`), Tools: []harness.Tool{{Name: "read", Toolset: "notes", Class: "Notebook", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}}
		a := d.Pause(t, p)
		if a.Calls[0].Name != "read" || a.Calls[0].Toolset != "notes" {
			t.Errorf("calls = %v, want one of the toolset notes", a.Calls)
		}
		a, _ = d.continued(t, a)
		a.Completes(t, "{'n': 1} {'n': 2} {'n': 3}\n")

		p.Tools[0].Toolset = "weather"
		refused(t, d.Post(t, p), 400, "weather")
	})
}
