package tests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// weather is the contract's example: the text of a template literal, indented by
// six spaces, that uses names without importing them.
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

func TestExample(t *testing.T) {
	overSetups(t, eachEngine|onGVisor, func(t *testing.T, s setup) {
		c := serve(t, s, s.libraries()).alice()
		pause := c.pause(t, program{Code: weather, Tools: []tool{{
			Name: "get_weather", Description: "Get current weather for a city",
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}}})
		inputs := map[string]string{}
		for _, call := range pause.Calls {
			inputs[call.ID] = call.input()
		}
		for id, want := range map[string]string{"call_001": `{"city":"New York"}`, "call_002": `{"city":"London"}`, "call_003": `{"city":"Tokyo"}`} {
			if inputs[id] != want {
				t.Errorf("input of %s = %s, want %s", id, inputs[id], want)
			}
		}
		temperature := map[string]string{"call_001": "20", "call_002": "15.5", "call_003": "27"}
		a := c.post(t, pause.answers(func(c call) result {
			return result{Result: json.RawMessage(`{"temperature":` + temperature[c.ID] + `}`)}
		}))
		a.completes(t, "New York:\n      20°\nLondon:\n      15.5°\nTokyo:\n      27°\n20.833333333333332\n")
	})
}

func TestRounds(t *testing.T) {
	repeat := func(n int) []int { return slices.Repeat([]int{1}, n) }
	cases := []programCase{
		{
			name: "one call", code: `print(await ask(n=1))`, tools: tools("ask"),
			stdout: "{'n': 1}\n", batches: []int{1},
		},
		{
			name: "100 at once", tools: tools("ask"),
			code: `
				results = await asyncio.gather(*[ask(n=n) for n in range(100)])
				print(results == [{"n": n} for n in range(100)])
			`,
			stdout: "True\n", batches: []int{100},
		},
		{
			name: "20 rounds", tools: tools("ask"),
			code: `
				for n in range(20):
				    assert await ask(n=n) == {"n": n}
				print(n)
			`,
			stdout: "19\n", batches: repeat(20),
		},
		{
			name: "nested tasks", tools: tools("ask"),
			code: `
				async def leaf(n):
				    return (await ask(n=n))["n"]
				async def branch(n):
				    return sum(await asyncio.gather(leaf(n), asyncio.create_task(leaf(n + 1))))
				print(await asyncio.gather(branch(1), branch(10)))
			`,
			stdout: "[3, 21]\n", batches: []int{4},
		},
		{
			name: "a task group", tools: tools("ask"),
			code: `
				async with asyncio.TaskGroup() as group:
				    tasks = [group.create_task(ask(n=n)) for n in range(3)]
				print([task.result()["n"] for task in tasks])
			`,
			stdout: "[0, 1, 2]\n", batches: []int{3},
		},
		{
			name: "as completed", tools: tools("ask"),
			code: `
				print(sorted([(await done)["n"] for done in asyncio.as_completed([ask(n=n) for n in range(3)])]))
			`,
			stdout: "[0, 1, 2]\n", batches: []int{3},
		},
		{
			name: "chains side by side", tools: tools("ask"),
			code: `
				async def chain(n):
				    for step in range(3):
				        n = (await ask(n=n + 1))["n"]
				    return n
				print(await asyncio.gather(chain(0), chain(10)))
			`,
			stdout: "[3, 13]\n", batches: []int{2, 2, 2},
		},
		{
			name: "an async generator", tools: tools("ask"),
			code: `
				async def pages():
				    for n in range(3):
				        yield (await ask(n=n))["n"]
				print([n async for n in pages()])
			`,
			stdout: "[0, 1, 2]\n", batches: repeat(3),
		},
		{
			name: "an async context manager", tools: tools("ask"),
			code: `
				from contextlib import asynccontextmanager
				@asynccontextmanager
				async def session():
				    yield await ask(n="in")
				    print(await ask(n="out"))
				async with session() as s:
				    print(s)
			`,
			stdout: "{'n': 'in'}\n{'n': 'out'}\n", batches: repeat(2),
		},
		{
			name: "asyncio.run in a program without await", tools: tools("ask"),
			code: `
				import asyncio
				async def main():
				    print(await ask(n=1))
				    print(await asyncio.gather(ask(n=2), ask(n=3)))
				if __name__ == "__main__":
				    asyncio.run(main())
			`,
			stdout: "{'n': 1}\n[{'n': 2}, {'n': 3}]\n", batches: []int{1, 2},
		},
		{
			name: "asyncio.run twice", tools: tools("ask"),
			code: `
				async def main(n):
				    return (await ask(n=n))["n"]
				print(asyncio.run(main(1)), asyncio.run(main(2)))
			`,
			stdout: "1 2\n", batches: repeat(2),
		},
		{
			name: "asyncio.run of a stub", tools: tools("ask"),
			code:   `print(asyncio.run(ask(n=1)))`,
			stdout: "{'n': 1}\n",
		},
		{
			name: "a loop made by hand", tools: tools("ask"),
			code: `
				loop = asyncio.new_event_loop()
				print(loop.run_until_complete(ask(n=1)))
				loop.close()
			`,
			stdout: "{'n': 1}\n",
		},
		{
			name: "asyncio.run in threads of an async program", tools: tools("ask"),
			code: `
				def work(n):
				    return asyncio.run(ask(n=n))["n"]
				print(await asyncio.gather(*[asyncio.to_thread(work, n) for n in range(3)]))
			`,
			stdout: "[0, 1, 2]\n", batches: []int{3},
		},
		{
			name: "a thread pool in a program without await", tools: tools("ask"),
			code: `
				from concurrent.futures import ThreadPoolExecutor
				def work(n):
				    return asyncio.run(ask(n=n))["n"]
				with ThreadPoolExecutor(4) as executor:
				    print(list(executor.map(work, range(4))))
			`,
			stdout: "[0, 1, 2, 3]\n", batches: []int{4},
		},
		{
			name: "run_coroutine_threadsafe", tools: tools("ask"),
			code: `
				loop = asyncio.get_running_loop()
				def work(n):
				    return asyncio.run_coroutine_threadsafe(ask(n=n), loop).result()["n"]
				print(await asyncio.gather(*[asyncio.to_thread(work, n) for n in range(2)]))
			`,
			stdout: "[0, 1]\n",
		},
		{
			name: "a thread that still runs", tools: tools("ask"),
			code: `
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
			stdout: "{'n': 1}\n", batches: []int{1},
		},
		{
			name: "a call does not wait for a sibling that sleeps", tools: tools("ask"), timeout: 3000,
			code: `
				sleeper = asyncio.create_task(asyncio.sleep(60))
				print(await ask(n=1))
				sleeper.cancel()
			`,
			stdout: "{'n': 1}\n", batches: []int{1},
		},
		{
			name: "a call that is cancelled before it goes out", tools: tools("ask"),
			code: `
				task = asyncio.create_task(ask(n=1))
				await asyncio.sleep(0)
				task.cancel()
				try:
				    await task
				except asyncio.CancelledError:
				    print("cancelled")
				print(await ask(n=2))
			`,
			stdout: "cancelled\n{'n': 2}\n", batches: []int{1},
		},
		{
			name: "a task that is left behind", tools: tools("ask"),
			code: `
				left = asyncio.create_task(ask(n=1))
				await asyncio.sleep(0)
				print("end")
			`,
			stdout: "end\n", batches: []int{},
		},
		{
			name: "values stay as they were", tools: tools("ask"),
			code: `
				import io
				buffer, numbers, text = io.StringIO(), iter(range(10)), "x" * 1000
				buffer.write("before "); next(numbers)
				await ask()
				buffer.write("after")
				print(buffer.getvalue(), next(numbers), len(text))
			`,
			stdout: "before after 1 1000\n",
		},
	}
	overSetups(t, eachEngine|onGVisor, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		runCases(t, c, cases)
		t.Run("a 21st pause", func(t *testing.T) {
			t.Parallel()
			a, batches := c.run(t, program{Code: "while True:\n    await ask()\n", Tools: tools("ask")}, echo)
			a.fails(t, 400, "Exceeded maximum round trips (20)")
			if len(batches) != 20 {
				t.Errorf("%d rounds, want 20", len(batches))
			}
		})
	})
}

func TestToolErrors(t *testing.T) {
	runFailing := func(message string) handler {
		return func(c call) result {
			if c.Name == "bad" {
				return failure(message)(c)
			}
			return echo(c)
		}
	}
	both := tools("bad", "good")
	cases := []programCase{
		{
			name: "caught", tools: both, answer: runFailing("no such city"),
			code: `
				try:
				    await bad(n=1)
				except ToolExecutionError as error:
				    print(str(error), isinstance(error, RuntimeError), type(error).__name__)
				print(await good(n=2))
			`,
			stdout: "no such city True ToolExecutionError\n{'n': 2}\n",
		},
		{
			name: "caught as RuntimeError", tools: both, answer: runFailing("no"),
			code: `
				try:
				    await bad()
				except RuntimeError as error:
				    print(error)
			`,
			stdout: "no\n",
		},
		{
			name: "exactly the message", tools: both, answer: runFailing(" \"'\\ <b>&\n\u2028é😀\t "),
			code: `
				try:
				    await bad()
				except ToolExecutionError as error:
				    print(ascii(str(error)))
			`,
			stdout: `' "\'\\ <b>&\n\u2028\xe9\U0001f600\t '` + "\n",
		},
		{
			name: "without a message", tools: both, answer: runFailing(""),
			code: `
				try:
				    await bad()
				except ToolExecutionError as error:
				    print(error)
			`,
			stdout: "tool execution failed\n",
		},
		{
			name: "not caught", tools: both, answer: runFailing("no such city"),
			code: `
				print("before")
				await bad()
				print("after")
			`,
			stdout: "before\n", error: "ToolExecutionError: no such city",
			stderr: []string{"Traceback (most recent call last):\n", `line 2`, "await bad()", "ToolExecutionError: no such city\n"},
		},
		{
			name: "in a gather", tools: both, answer: runFailing("no"),
			code: `
				results = await asyncio.gather(good(n=1), bad(), good(n=2), return_exceptions=True)
				print([repr(result) for result in results])
			`,
			stdout: `["{'n': 1}", "ToolExecutionError('no')", "{'n': 2}"]` + "\n", batches: []int{3},
		},
		{
			name: "in a gather that raises", tools: both, answer: runFailing("no"),
			code: `
				try:
				    await asyncio.gather(good(n=1), bad(), good(n=2))
				except ToolExecutionError as error:
				    print(error)
				print(await good(n=3))
			`,
			stdout: "no\n{'n': 3}\n", batches: []int{3, 1},
		},
		{
			name: "in a task group", tools: both, answer: runFailing("no"),
			code: `
				try:
				    async with asyncio.TaskGroup() as group:
				        group.create_task(bad())
				        group.create_task(good())
				except* ToolExecutionError as errors:
				    print(errors.exceptions)
			`,
			stdout: "(ToolExecutionError('no'),)\n",
		},
		{
			name: "tried again", tools: both,
			answer: func(c call) result {
				if c.ID == "call_001" {
					return failure("busy")(c)
				}
				return echo(c)
			},
			code: `
				for attempt in range(3):
				    try:
				        print(await good(attempt=attempt))
				        break
				    except ToolExecutionError:
				        print("again")
			`,
			stdout: "again\n{'attempt': 1}\n", batches: []int{1, 1},
		},
	}
	overSetups(t, eachEngine|onGVisor, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		runCases(t, c, cases)
		t.Run("a result beside the error is ignored", func(t *testing.T) {
			pause := c.pause(t, paused)
			a := c.post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","result":1,"is_error":true,"error_message":null}]}`)
			a.fails(t, 200, "ToolExecutionError: tool execution failed")
		})
	})
}

// TestPartialResults checks that missing results are asked for again and that their
// order does not matter.
func TestPartialResults(t *testing.T) {
	gather := program{Code: "print(await asyncio.gather(*[ask(n=n) for n in range(4)]))", Tools: tools("ask")}
	const stdout = "[{'n': 0}, {'n': 1}, {'n': 2}, {'n': 3}]\n"
	only := func(a answer, ids ...string) continuation {
		next := a.answers(echo)
		next.Results = slices.DeleteFunc(next.Results, func(r result) bool { return !slices.Contains(ids, r.CallID) })
		return next
	}
	ids := func(a answer) string {
		var list []string
		for _, call := range a.Calls {
			list = append(list, call.ID+call.input())
		}
		return strings.Join(list, " ")
	}
	overSetups(t, eachEngine|onGVisor, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		t.Run("two and two", func(t *testing.T) {
			again := c.pause(t, only(c.pause(t, gather), "call_001", "call_003"))
			if got, want := ids(again), `call_002{"n":1} call_004{"n":3}`; got != want {
				t.Errorf("calls of the second pause = %s, want %s", got, want)
			}
			c.post(t, again.answers(echo)).completes(t, stdout)
		})
		t.Run("one by one, the last first", func(t *testing.T) {
			a := c.pause(t, gather)
			for _, id := range []string{"call_004", "call_003", "call_002"} {
				a = c.pause(t, only(a, id))
			}
			c.post(t, a.answers(echo)).completes(t, stdout)
		})
		t.Run("other order", func(t *testing.T) {
			a := c.pause(t, gather)
			next := a.answers(echo)
			slices.Reverse(next.Results)
			c.post(t, next).completes(t, stdout)
		})
		t.Run("an answered call is not pending", func(t *testing.T) {
			again := c.pause(t, only(c.pause(t, gather), "call_001"))
			next := again.answers(echo)
			next.Results = append(next.Results, result{CallID: "call_001"})
			c.post(t, next).fails(t, 400, "tool_results[call_001] was not issued by the sandbox for this execution")
			c.post(t, again.answers(echo)).completes(t, stdout)
		})
		t.Run("missing ones with new ones", func(t *testing.T) {
			a := c.pause(t, program{Code: py(`
				async def chain(n):
				    await ask(n=n)
				    return (await ask(n=n + 10))["n"]
				print(await asyncio.gather(chain(0), chain(1)))
			`), Tools: tools("ask")})
			a = c.pause(t, only(a, "call_001"))
			if got, want := ids(a), `call_002{"n":1} call_003{"n":10}`; got != want {
				t.Errorf("calls of the second pause = %s, want %s", got, want)
			}
			a = c.pause(t, a.answers(echo))
			c.post(t, a.answers(echo)).completes(t, "[10, 11]\n")
		})
		t.Run("a call given up on", func(t *testing.T) {
			a := c.pause(t, program{Code: py(`
				first = asyncio.create_task(ask(n=1))
				done, waiting = await asyncio.wait([first, asyncio.create_task(ask(n=2))], return_when="FIRST_COMPLETED")
				for task in waiting:
				    task.cancel()
				print(len(done), await ask(n=3))
			`), Tools: tools("ask")})
			a = c.pause(t, only(a, "call_001"))
			if got, want := ids(a), `call_003{"n":3}`; got != want {
				t.Errorf("calls of the second pause = %s, want %s", got, want)
			}
			c.post(t, a.answers(echo)).completes(t, "1 {'n': 3}\n")
		})
	})
}

// TestCallIDs checks that ids count over the whole execution.
func TestCallIDs(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		a := c.pause(t, program{Code: py(`
			await asyncio.gather(*[ask(n=n) for n in range(3)])
			await asyncio.gather(*[ask(n=n) for n in range(997)])
			await ask()
		`), Tools: tools("ask")})
		next := 1
		for ; a.Status == "tool_call_required"; a = c.post(t, a.answers(echo)) {
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
