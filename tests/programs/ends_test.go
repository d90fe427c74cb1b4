package programs

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestEnds checks what still runs when the main part of a program has ended, and what stderr says
// about calls that the program has forgotten to await.
func TestEnds(t *testing.T) {
	const waited = "RuntimeWarning: the tool send was not called: a task that calls it was still waiting when the program ended; await it\n"
	cases := []struct {
		name, code, stdout, stderr string
		rounds                     int
	}{
		{"a thread", "import threading, time\ndef work():\n    time.sleep(0.02)\n    print('thread', asyncio.run(send(x=7)))\nthreading.Thread(target=work).start()\nprint('end')", "end\nthread {'x': 7}\n", "", 1},
		{"a task that cleans up", "async def work():\n    try: await asyncio.sleep(10)\n    finally: print('clean', await send(x=1))\ntask = asyncio.create_task(work())\nawait asyncio.sleep(0)\nprint('end')", "end\nclean {'x': 1}\n", "", 1},
		{"the same in asyncio.run", "async def work():\n    try: await asyncio.sleep(10)\n    finally: print('clean', await send(x=1))\nasync def main():\n    task = asyncio.create_task(work())\n    await asyncio.sleep(0)\n    print('end')\nasyncio.run(main())", "end\nclean {'x': 1}\n", "", 1},
		{"a generator", "async def numbers():\n    try: yield 1\n    finally: print('clean', await send(x=1))\nkept = numbers()\nasync for x in kept: break\nprint('end')", "end\nclean {'x': 1}\n", "", 1},
		{"atexit", "import atexit\natexit.register(lambda: print('clean', asyncio.run(send(x=1))))\nprint('end')", "end\nclean {'x': 1}\n", "", 1},
		{"tasks", "async def main():\n    for x in range(2): asyncio.create_task(send(x=x))\n    print('end')\nawait main()", "end\n", waited, 0},
		{"tasks in asyncio.run", "async def main():\n    for x in range(2): asyncio.create_task(send(x=x))\n    print('end')\nasyncio.run(main())", "end\n", waited, 0},
		{"gather", "x = asyncio.gather(send(x=1), send(x=2))\nprint('end')", "end\n", waited, 0},
		{"no task", "send(x=1); send(x=2)\nprint('end')", "end\n", "RuntimeWarning: the tool send was not called: write `await send(...)`\n", 0},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a, calls := c.Run(t, harness.Program{Code: tc.code, Tools: harness.Tools("send")}, harness.Echo)
				a.Completes(t, tc.stdout)
				if a.Stderr != tc.stderr || len(calls) != tc.rounds {
					t.Errorf("stderr = %q after %d rounds, want %q after %d", a.Stderr, len(calls), tc.stderr, tc.rounds)
				}
			})
		}
		t.Run("an error while threads call tools", func(t *testing.T) {
			t.Parallel()
			a, calls := c.Run(t, harness.Program{Code: harness.Py(`
				from concurrent.futures import ThreadPoolExecutor
				pool = ThreadPoolExecutor(2)
				futures = [pool.submit(lambda i=i: asyncio.run(send(x=i))) for i in range(4)]
				for future in futures:
				    print(future.result()["name"])
			`), Tools: harness.Tools("send"), Timeout: 5000}, harness.Echo)
			a.Fails(t, 200, "KeyError: 'name'")
			total := 0
			for _, batch := range calls {
				total += batch
			}
			if total != 4 {
				t.Errorf("%d calls were made, want those of all threads", total)
			}
		})
		t.Run("what a program shows of its errors", func(t *testing.T) {
			t.Parallel()
			a, _ := c.Run(t, harness.Program{Code: harness.Py(`
				import logging, traceback
				async def show(call):
				    try:
				        await call()
				    except Exception as error:
				        traceback.print_exc()
				        print(traceback.format_exc())
				        logging.exception("failed")
				        print(traceback.extract_tb(error.__traceback__)[-1].filename)
				await show(lambda: send(x=1))
				await show(lambda: send(x={1}))
				for error in await asyncio.gather(send(x=1), send(x=2), return_exceptions=True):
				    traceback.print_exception(error)
				task = asyncio.create_task(send(x=1))
				await asyncio.sleep(0.01)
				del task
			`), Tools: harness.Tools("send")}, harness.Failure("boom"))
			if a.Status != "completed" {
				t.Fatalf("got %v, want it completed", a)
			}
			harness.Contains(t, "stderr", a.Stderr, "ToolExecutionError: boom\n", "Task exception was never retrieved\n")
			if all := a.Stdout + a.Stderr; strings.Contains(all, "fermata/") {
				t.Errorf("the program shows the runner:\n%s", all)
			}
		})
	})
}
