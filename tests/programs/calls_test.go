package programs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// weather is the example of the contract: the text of a template literal of JavaScript, indented by
// six spaces, which uses libraries without importing them.
const weather = `
      cities = ["New York", "London", "Tokyo"]
      results = await asyncio.gather(*[
          get_weather(city=city) for city in cities
      ])
      frame = pd.DataFrame(results)
      for city, result in zip(cities, results):
          print(f"""{city}:
      {result["temperature"]}°""")
      print(frame["temperature"].mean())
    `

// TestExample runs the example of the contract.
func TestExample(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		pause := c.Pause(t, harness.Program{Code: weather, Tools: []harness.Tool{{
			Name: "get_weather", Description: "Get current weather for a city",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}}})
		inputs := map[string]string{}
		for _, call := range pause.Calls {
			inputs[call.ID] = call.CompactInput()
		}
		for id, want := range map[string]string{"call_001": `{"city":"New York"}`, "call_002": `{"city":"London"}`, "call_003": `{"city":"Tokyo"}`} {
			if inputs[id] != want {
				t.Errorf("input of %s = %s, want %s", id, inputs[id], want)
			}
		}
		temperature := map[string]string{"call_001": "20", "call_002": "15.5", "call_003": "27"}
		a := c.Post(t, pause.Continue(func(c harness.Call) harness.Result {
			return harness.Result{Result: json.RawMessage(`{"temperature":` + temperature[c.ID] + `}`)}
		}))
		a.Completes(t, "New York:\n      20°\nLondon:\n      15.5°\nTokyo:\n      27°\n20.833333333333332\n")
	})
}

// TestRounds runs programs that call tools in every way that asyncio and threads offer, and checks
// which calls come in one round.
func TestRounds(t *testing.T) {
	repeat := func(n int) []int { return slices.Repeat([]int{1}, n) }
	cases := []harness.Case{
		{
			Name: "one call", Code: `print(await ask(n=1))`, Tools: harness.Tools("ask"),
			Stdout: "{'n': 1}\n", Batches: []int{1},
		},
		{
			Name: "100 at once", Tools: harness.Tools("ask"),
			Code: `
				results = await asyncio.gather(*[ask(n=n) for n in range(100)])
				print(results == [{"n": n} for n in range(100)])
			`,
			Stdout: "True\n", Batches: []int{100},
		},
		{
			Name: "20 rounds", Tools: harness.Tools("ask"),
			Code: `
				for n in range(20):
				    assert await ask(n=n) == {"n": n}
				print(n)
			`,
			Stdout: "19\n", Batches: repeat(20),
		},
		{
			Name: "nested tasks", Tools: harness.Tools("ask"),
			Code: `
				async def leaf(n):
				    return (await ask(n=n))["n"]
				async def branch(n):
				    return sum(await asyncio.gather(leaf(n), asyncio.create_task(leaf(n + 1))))
				print(await asyncio.gather(branch(1), branch(10)))
			`,
			Stdout: "[3, 21]\n", Batches: []int{4},
		},
		{
			Name: "a task group", Tools: harness.Tools("ask"),
			Code: `
				async with asyncio.TaskGroup() as group:
				    tasks = [group.create_task(ask(n=n)) for n in range(3)]
				print([task.result()["n"] for task in tasks])
			`,
			Stdout: "[0, 1, 2]\n", Batches: []int{3},
		},
		{
			Name: "as completed", Tools: harness.Tools("ask"),
			Code: `
				print(sorted([(await done)["n"] for done in asyncio.as_completed([ask(n=n) for n in range(3)])]))
			`,
			Stdout: "[0, 1, 2]\n", Batches: []int{3},
		},
		{
			Name: "chains side by side", Tools: harness.Tools("ask"),
			Code: `
				async def chain(n):
				    for step in range(3):
				        n = (await ask(n=n + 1))["n"]
				    return n
				print(await asyncio.gather(chain(0), chain(10)))
			`,
			Stdout: "[3, 13]\n", Batches: []int{2, 2, 2},
		},
		{
			Name: "an async generator", Tools: harness.Tools("ask"),
			Code: `
				async def pages():
				    for n in range(3):
				        yield (await ask(n=n))["n"]
				print([n async for n in pages()])
			`,
			Stdout: "[0, 1, 2]\n", Batches: repeat(3),
		},
		{
			Name: "an async context manager", Tools: harness.Tools("ask"),
			Code: `
				from contextlib import asynccontextmanager
				@asynccontextmanager
				async def session():
				    yield await ask(n="in")
				    print(await ask(n="out"))
				async with session() as s:
				    print(s)
			`,
			Stdout: "{'n': 'in'}\n{'n': 'out'}\n", Batches: repeat(2),
		},
		{
			Name: "asyncio.run in a program without await", Tools: harness.Tools("ask"),
			Code: `
				import asyncio
				async def main():
				    print(await ask(n=1))
				    print(await asyncio.gather(ask(n=2), ask(n=3)))
				if __name__ == "__main__":
				    asyncio.run(main())
			`,
			Stdout: "{'n': 1}\n[{'n': 2}, {'n': 3}]\n", Batches: []int{1, 2},
		},
		{
			Name: "asyncio.run twice", Tools: harness.Tools("ask"),
			Code: `
				async def main(n):
				    return (await ask(n=n))["n"]
				print(asyncio.run(main(1)), asyncio.run(main(2)))
			`,
			Stdout: "1 2\n", Batches: repeat(2),
		},
		{
			Name: "asyncio.run of a stub", Tools: harness.Tools("ask"),
			Code:   `print(asyncio.run(ask(n=1)))`,
			Stdout: "{'n': 1}\n",
		},
		{
			Name: "a loop made by hand", Tools: harness.Tools("ask"),
			Code: `
				loop = asyncio.new_event_loop()
				print(loop.run_until_complete(ask(n=1)))
				loop.close()
			`,
			Stdout: "{'n': 1}\n",
		},
		{
			Name: "asyncio.run in threads of an async program", Tools: harness.Tools("ask"),
			Code: `
				def work(n):
				    return asyncio.run(ask(n=n))["n"]
				print(await asyncio.gather(*[asyncio.to_thread(work, n) for n in range(3)]))
			`,
			Stdout: "[0, 1, 2]\n", Batches: []int{3},
		},
		{
			Name: "a thread pool in a program without await", Tools: harness.Tools("ask"),
			Code: `
				from concurrent.futures import ThreadPoolExecutor
				def work(n):
				    return asyncio.run(ask(n=n))["n"]
				with ThreadPoolExecutor(4) as executor:
				    print(list(executor.map(work, range(4))))
			`,
			Stdout: "[0, 1, 2, 3]\n", Batches: []int{4},
		},
		{
			Name: "run_coroutine_threadsafe", Tools: harness.Tools("ask"),
			Code: `
				loop = asyncio.get_running_loop()
				def work(n):
				    return asyncio.run_coroutine_threadsafe(ask(n=n), loop).result()["n"]
				print(await asyncio.gather(*[asyncio.to_thread(work, n) for n in range(2)]))
			`,
			Stdout: "[0, 1]\n",
		},
		{
			Name: "a thread that still runs", Tools: harness.Tools("ask"),
			Code: `
				import threading, time
				stop = threading.Event()
				def spin():
				    while not stop.is_set():
				        pass
				thread = threading.Thread(target=spin)
				thread.start()
				print(await ask(n=1))
				stop.set()
				thread.join()
			`,
			Stdout: "{'n': 1}\n", Batches: []int{1},
		},
		{
			Name: "a call does not wait for a sibling that sleeps", Tools: harness.Tools("ask"), Timeout: 3000,
			Code: `
				sleeper = asyncio.create_task(asyncio.sleep(60))
				print(await ask(n=1))
				sleeper.cancel()
			`,
			Stdout: "{'n': 1}\n", Batches: []int{1},
		},
		{
			Name: "a call that is cancelled before it goes out", Tools: harness.Tools("ask"),
			Code: `
				task = asyncio.create_task(ask(n=1))
				await asyncio.sleep(0)
				task.cancel()
				try:
				    await task
				except asyncio.CancelledError:
				    print("cancelled")
				print(await ask(n=2))
			`,
			Stdout: "cancelled\n{'n': 2}\n", Batches: []int{1},
		},
		{
			Name: "a task that is left behind", Tools: harness.Tools("ask"),
			Code: `
				left = asyncio.create_task(ask(n=1))
				await asyncio.sleep(0)
				print("end")
			`,
			Stdout: "end\n", Batches: []int{}, Stderr: []string{"RuntimeWarning: the tool ask was not called"},
		},
		{
			Name: "values stay as they were", Tools: harness.Tools("ask"),
			Code: `
				import io
				buffer, numbers, text = io.StringIO(), iter(range(10)), "x" * 1000
				buffer.write("before "); next(numbers)
				await ask()
				buffer.write("after")
				print(buffer.getvalue(), next(numbers), len(text))
			`,
			Stdout: "before after 1 1000\n",
		},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		harness.RunCases(t, c, cases)
		t.Run("a 21st pause", func(t *testing.T) {
			t.Parallel()
			a, batches := c.Run(t, harness.Program{Code: "while True:\n    await ask()\n", Tools: harness.Tools("ask")}, harness.Echo)
			a.Fails(t, 400, "Exceeded maximum round trips (20)")
			if len(batches) != 20 {
				t.Errorf("%d rounds, want 20", len(batches))
			}
		})
	})
}

// TestToolErrors answers calls with errors, which programs catch or do not catch.
func TestToolErrors(t *testing.T) {
	runFailing := func(message string) harness.Handler {
		return func(c harness.Call) harness.Result {
			if c.Name == "bad" {
				return harness.Failure(message)(c)
			}
			return harness.Echo(c)
		}
	}
	both := harness.Tools("bad", "good")
	cases := []harness.Case{
		{
			Name: "caught", Tools: both, Answer: runFailing("no such city"),
			Code: `
				try:
				    await bad(n=1)
				except ToolExecutionError as error:
				    print(str(error), isinstance(error, RuntimeError), type(error).__name__)
				print(await good(n=2))
			`,
			Stdout: "no such city True ToolExecutionError\n{'n': 2}\n",
		},
		{
			Name: "caught as RuntimeError", Tools: both, Answer: runFailing("no"),
			Code: `
				try:
				    await bad()
				except RuntimeError as error:
				    print(error)
			`,
			Stdout: "no\n",
		},
		{
			Name: "exactly the message", Tools: both, Answer: runFailing(" \"'\\ <b>&\n\u2028é😀\t "),
			Code: `
				try:
				    await bad()
				except ToolExecutionError as error:
				    print(ascii(str(error)))
			`,
			Stdout: `' "\'\\ <b>&\n\u2028\xe9\U0001f600\t '` + "\n",
		},
		{
			Name: "without a message", Tools: both, Answer: runFailing(""),
			Code: `
				try:
				    await bad()
				except ToolExecutionError as error:
				    print(error)
			`,
			Stdout: "tool execution failed\n",
		},
		{
			Name: "not caught", Tools: both, Answer: runFailing("no such city"),
			Code: `
				print("before")
				await bad()
				print("after")
			`,
			Stdout: "before\n", Error: "ToolExecutionError: no such city",
			Stderr: []string{"Traceback (most recent call last):\n", `line 2`, "await bad()", "ToolExecutionError: no such city\n"},
		},
		{
			Name: "in a gather", Tools: both, Answer: runFailing("no"),
			Code: `
				results = await asyncio.gather(good(n=1), bad(), good(n=2), return_exceptions=True)
				print([repr(result) for result in results])
			`,
			Stdout: `["{'n': 1}", "ToolExecutionError('no')", "{'n': 2}"]` + "\n", Batches: []int{3},
		},
		{
			Name: "in a gather that raises", Tools: both, Answer: runFailing("no"),
			Code: `
				try:
				    await asyncio.gather(good(n=1), bad(), good(n=2))
				except ToolExecutionError as error:
				    print(error)
				print(await good(n=3))
			`,
			Stdout: "no\n{'n': 3}\n", Batches: []int{3, 1},
		},
		{
			Name: "in a task group", Tools: both, Answer: runFailing("no"),
			Code: `
				try:
				    async with asyncio.TaskGroup() as group:
				        group.create_task(bad())
				        group.create_task(good())
				except* ToolExecutionError as errors:
				    print(errors.exceptions)
			`,
			Stdout: "(ToolExecutionError('no'),)\n",
		},
		{
			Name: "tried again", Tools: both,
			Answer: func(c harness.Call) harness.Result {
				if c.ID == "call_001" {
					return harness.Failure("busy")(c)
				}
				return harness.Echo(c)
			},
			Code: `
				for attempt in range(3):
				    try:
				        print(await good(attempt=attempt))
				        break
				    except ToolExecutionError:
				        print("again")
			`,
			Stdout: "again\n{'attempt': 1}\n", Batches: []int{1, 1},
		},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		harness.RunCases(t, c, cases)
		t.Run("a result beside the error is ignored", func(t *testing.T) {
			pause := c.Pause(t, harness.AskOnce)
			a := c.Post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","result":1,"is_error":true,"error_message":null}]}`)
			a.Fails(t, 200, "ToolExecutionError: tool execution failed")
		})
	})
}

// TestPartialResults checks that calls without a result stay pending, and that the order of results
// does not matter.
func TestPartialResults(t *testing.T) {
	gather := harness.Program{Code: "print(await asyncio.gather(*[ask(n=n) for n in range(4)]))", Tools: harness.Tools("ask")}
	const stdout = "[{'n': 0}, {'n': 1}, {'n': 2}, {'n': 3}]\n"
	only := func(a harness.Answer, ids ...string) harness.Continuation {
		next := a.Continue(harness.Echo)
		next.Results = slices.DeleteFunc(next.Results, func(r harness.Result) bool { return !slices.Contains(ids, r.CallID) })
		return next
	}
	ids := func(a harness.Answer) string {
		var list []string
		for _, call := range a.Calls {
			list = append(list, call.ID+call.CompactInput())
		}
		return strings.Join(list, " ")
	}
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		t.Run("two and two", func(t *testing.T) {
			again := c.Pause(t, only(c.Pause(t, gather), "call_001", "call_003"))
			if got, want := ids(again), `call_002{"n":1} call_004{"n":3}`; got != want {
				t.Errorf("calls of the second pause = %s, want %s", got, want)
			}
			c.Post(t, again.Continue(harness.Echo)).Completes(t, stdout)
		})
		t.Run("one by one, the last first", func(t *testing.T) {
			a := c.Pause(t, gather)
			for _, id := range []string{"call_004", "call_003", "call_002"} {
				a = c.Pause(t, only(a, id))
			}
			c.Post(t, a.Continue(harness.Echo)).Completes(t, stdout)
		})
		t.Run("other order", func(t *testing.T) {
			a := c.Pause(t, gather)
			next := a.Continue(harness.Echo)
			slices.Reverse(next.Results)
			c.Post(t, next).Completes(t, stdout)
		})
		t.Run("an answered call is not pending", func(t *testing.T) {
			again := c.Pause(t, only(c.Pause(t, gather), "call_001"))
			next := again.Continue(harness.Echo)
			next.Results = append(next.Results, harness.Result{CallID: "call_001"})
			c.Post(t, next).Fails(t, 400, "tool_results[call_001] was not issued by the sandbox for this execution")
			c.Post(t, again.Continue(harness.Echo)).Completes(t, stdout)
		})
		t.Run("missing results and new calls", func(t *testing.T) {
			a := c.Pause(t, harness.Program{Code: harness.Py(`
				async def chain(n):
				    await ask(n=n)
				    return (await ask(n=n + 10))["n"]
				print(await asyncio.gather(chain(0), chain(1)))
			`), Tools: harness.Tools("ask")})
			a = c.Pause(t, only(a, "call_001"))
			if got, want := ids(a), `call_002{"n":1} call_003{"n":10}`; got != want {
				t.Errorf("calls of the second pause = %s, want %s", got, want)
			}
			a = c.Pause(t, a.Continue(harness.Echo))
			c.Post(t, a.Continue(harness.Echo)).Completes(t, "[10, 11]\n")
		})
		t.Run("a cancelled call", func(t *testing.T) {
			a := c.Pause(t, harness.Program{Code: harness.Py(`
				first = asyncio.create_task(ask(n=1))
				done, waiting = await asyncio.wait([first, asyncio.create_task(ask(n=2))], return_when="FIRST_COMPLETED")
				for task in waiting:
				    task.cancel()
				print(len(done), await ask(n=3))
			`), Tools: harness.Tools("ask")})
			a = c.Pause(t, only(a, "call_001"))
			if got, want := ids(a), `call_003{"n":3}`; got != want {
				t.Errorf("calls of the second pause = %s, want %s", got, want)
			}
			c.Post(t, a.Continue(harness.Echo)).Completes(t, "1 {'n': 3}\n")
		})
	})
}
