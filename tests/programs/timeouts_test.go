package programs

import (
	"fmt"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestTimeouts runs programs that would run for ever, in every way.
func TestTimeouts(t *testing.T) {
	cases := []struct{ name, code string }{
		{"a loop", `
			while True:
			    pass
		`},
		{"a sleep", `
			import time
			time.sleep(60)
		`},
		{"an asyncio sleep", `
			await asyncio.sleep(60)
		`},
		{"signals blocked", `
			import signal
			signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
			for number in signal.valid_signals():
			    try:
			        signal.signal(number, signal.SIG_IGN)
			    except OSError:
			        pass
			while True: pass
		`},
		{"errors swallowed", `
			while True:
			    try:
			        while True: pass
			    except BaseException:
			        pass
		`},
		{"a child with stdout open", `
			import time
			if os.fork() == 0:
			    os.setsid()
			    os.fork()
			    time.sleep(60)
			time.sleep(60)
		`},
		{"only a child is left", `
			import subprocess, threading
			threading.Thread(target=subprocess.run, args=(["sleep", "60"],)).start()
		`},
		{"all descriptors closed", `
			os.closerange(0, 1024)
			while True: pass
		`},
		{"stopped", `
			import signal
			os.kill(os.getpid(), signal.SIGSTOP)
		`},
		{"everything stopped", `
			import signal
			if os.fork() == 0:
			    os.kill(-1, signal.SIGSTOP)
			while True: pass
		`},
		{"not flushed", `
			import ctypes
			ctypes.CDLL(None).sleep(60)
		`},
		{"C code that keeps the lock", `
			import re
			re.match("(a*)*b", "a" * 60)
		`},
		{"a thread that never ends", `
			import threading
			threading.Thread(target=threading.Event().wait).start()
		`},
		{"atexit", `
			import atexit, time
			atexit.register(time.sleep, 60)
		`},
		{"a large number", `
			9 ** 9 ** 9
		`},
		{"after a cancel that is ignored", `
			async def stubborn():
			    while True:
			        try:
			            await asyncio.sleep(60)
			        except asyncio.CancelledError:
			            pass
			asyncio.create_task(stubborn())
			await asyncio.sleep(0)
		`},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				limit := 3 * time.Second
				if s.Docker() {
					limit += 20 * time.Second // All of them wait for containers first.
				}
				// A busy machine may delay one answer, but hardly three in a row.
				for try := 1; ; try++ {
					began := time.Now()
					a := c.Post(t, harness.Program{Code: "print('so far')\nsys.stdout.write('no line end')\nprint('oops', file=sys.stderr)\n" + harness.Py(tc.code), Timeout: 1000})
					took := time.Since(began)
					a.Fails(t, 408, "Execution timeout")
					if want := "so far\nno line end"; a.Stdout != want {
						t.Errorf("stdout = %q, want %q", a.Stdout, want)
					}
					harness.Contains(t, "stderr", a.Stderr, "oops\n")
					if took >= 900*time.Millisecond && took <= limit {
						break
					}
					if took < limit || try == 3 {
						t.Errorf("the answer came after %v, want about 1 s, at most %v", took, limit)
						break
					}
				}
			})
		}
		t.Run("a program that ends in time", func(t *testing.T) {
			t.Parallel()
			c.Post(t, harness.Program{Code: "print(1)", Timeout: 1000}).Completes(t, "1\n")
		})
		t.Run("the token of an execution that timed out", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, harness.Program{Code: "print('a')\nawait ask()\nprint('b')\nwhile True: pass", Tools: harness.Tools("ask"), Timeout: 1000})
			a := c.Post(t, pause.Continue(harness.Echo))
			a.Fails(t, 408, "Execution timeout")
			if a.Stdout != "a\nb\n" {
				t.Errorf("stdout = %q, want that of both rounds", a.Stdout)
			}
			c.Post(t, pause.Continue(harness.Value("2"))).Fails(t, 400, "Execution expired")
		})
	})
}

// TestBudget checks which time counts towards the limit: the program's own, and not its pauses.
func TestBudget(t *testing.T) {
	burn := func(seconds float64, rounds int) harness.Program {
		return harness.Program{Code: fmt.Sprintf(harness.Py(`
			import time
			for n in range(%d):
			    end = time.monotonic() + %g
			    while time.monotonic() < end: pass
			    await ask(n=n)
			print("end")
		`), rounds, seconds), Tools: harness.Tools("ask"), Timeout: 2000}
	}
	// The programs below tell a pause from the time that a busy machine takes for a round: one and a
	// half seconds lie between the two, or a hundred ticks of 10 ms.
	slowly := func(c harness.Call) harness.Result {
		time.Sleep(2 * time.Second)
		return harness.Echo(c)
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("takes its time")
		}
		t.Run("pauses are free", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a, _ := c.Run(t, burn(0.1, 3), slowly)
			a.Completes(t, "end\n")
		})
		t.Run("the rounds are summed", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a, batches := c.Run(t, burn(0.4, 20), harness.Echo)
			a.Fails(t, 408, "Execution timeout")
			if len(batches) > 4 {
				t.Errorf("%d rounds of 400 ms fit into 2 s", len(batches))
			}
		})
		t.Run("wall clock", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, harness.Settings{"TIMEOUT_CLOCK": "wall"}).Alice()
			a, _ := c.Run(t, burn(0.1, 3), slowly)
			if (a.HTTPStatus != 408 || a.Error != "Execution timeout") && (a.HTTPStatus != 400 || a.Error != "Execution expired") {
				t.Errorf("got %v, want the time to be over", a)
			}
		})
		t.Run("timers of the program stand still", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a, _ := c.Run(t, harness.Program{Code: harness.Py(`
				began = asyncio.get_running_loop().time()
				print(await asyncio.wait_for(ask(n=1), 1.5))
				async with asyncio.timeout(1.5):
				    print(await ask(n=2))
				print(asyncio.get_running_loop().time() - began < 1.5)
			`), Tools: harness.Tools("ask")}, slowly)
			a.Completes(t, "{'n': 1}\n{'n': 2}\nTrue\n")
		})
		t.Run("a timeout that comes while the program runs", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a, _ := c.Run(t, harness.Program{Code: harness.Py(`
				import time
				async def slow():
				    await ask(n=1)
				    await asyncio.sleep(30)
				try:
				    await asyncio.wait_for(slow(), 0.2)
				except TimeoutError:
				    print("in time")
			`), Tools: harness.Tools("ask")}, harness.Echo)
			a.Completes(t, "in time\n")
		})
		t.Run("threads stand still in a pause", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a, _ := c.Run(t, harness.Program{Code: harness.Py(`
				import threading, time
				count, stop = 0, False
				def tick():
				    global count
				    while not stop:
				        count += 1
				        time.sleep(0.01)
				thread = threading.Thread(target=tick)
				thread.start()
				await asyncio.sleep(0.05)
				before = count
				await ask()
				after = count
				stop = True
				thread.join()
				print(after - before < 100)
			`), Tools: harness.Tools("ask")}, slowly)
			a.Completes(t, "True\n")
		})
		t.Run("other processes stand still, too", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a, _ := c.Run(t, harness.Program{Code: harness.Py(`
				import mmap, time
				count = mmap.mmap(-1, 8)
				child = os.fork()
				while child == 0:
				    count[:] = (int.from_bytes(count[:]) + 1).to_bytes(8)
				    time.sleep(0.01)
				time.sleep(0.05)
				before = int.from_bytes(count[:])
				await ask()
				print(int.from_bytes(count[:]) - before < 100)
				os.kill(child, 9)
			`), Tools: harness.Tools("ask")}, slowly)
			a.Completes(t, "True\n")
		})
	})
}
