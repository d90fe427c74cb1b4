package tests

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	cases := []struct{ name, code string }{
		{"at once", "x = bytearray(1 << 30)"},
		{"page by page", "x = []\nwhile True: x.append(bytearray(1 << 20))"},
		{"many objects", "x = []\nwhile True: x.append([x])"},
		{"in C", "x = np.ones(1 << 28)"},
		{"in a file of memory", "with open('/dev/shm/a', 'wb') as f:\n    x = []\n    while True: x.append(bytearray(1 << 20)); f.seek(0); f.write(x[-1])"},
		{"caught, and on", "x = []\nwhile True:\n    try:\n        x.append(bytearray(1 << 20))\n    except MemoryError:\n        pass"},
		{"after a call", "await ask()\nx = []\nwhile True: x.append(bytearray(1 << 20))"},
	}
	overSetups(t, eachEngine|ordinaryUser, func(t *testing.T, s setup) {
		c := serve(t, s, with(small, s.libraries())).alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				a, _ := c.run(t, program{Code: "print('so far')\n" + tc.code, Tools: tools("ask"), Timeout: 20_000}, echo)
				a.fails(t, 200, "Out of memory")
				if a.Stdout != "so far\n" {
					t.Errorf("stdout = %q, want what was printed", a.Stdout)
				}
				limit := 15 * time.Second
				if s.docker() {
					limit += 30 * time.Second // All of them wait for containers first.
				}
				if took := time.Since(began); took > limit {
					t.Errorf("the answer came after %v, want it when the memory is spent", took)
				}
			})
		}
		t.Run("in a child", func(t *testing.T) {
			t.Parallel()
			a := c.post(t, program{Code: py(`
				import subprocess
				code = "x = []\nwhile True: x.append(bytearray(1 << 20))"
				print(subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode != 0)
			`)})
			if a.Status == "completed" {
				a.completes(t, "True\n")
			} else {
				a.fails(t, 200, "Out of memory")
			}
		})
	})
}

// TestForkBomb checks that a program that makes processes without end is held, and
// that others do not notice.
func TestForkBomb(t *testing.T) {
	overSetups(t, eachEngine|ordinaryUser|ordinaryUserWithRange, func(t *testing.T, s setup) {
		server := serve(t, s, small)
		c := server.alice()
		var wg sync.WaitGroup
		for _, bomb := range []string{
			"while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
			"import threading\nwhile True:\n    try:\n        threading.Thread(target=threading.Event().wait).start()\n    except RuntimeError:\n        pass",
			"os.system('f() { f | f & }; f')\nwhile True: pass",
			"import subprocess\nwhile True:\n    try:\n        subprocess.Popen(['setsid', 'sleep', '100'])\n    except OSError:\n        pass",
		} {
			wg.Go(func() {
				a, err := c.send(t.Context(), program{Code: "print('so far')\n" + bomb, Timeout: 3000})
				if err != nil {
					t.Error(err)
					return
				}
				if a.Status != "error" || a.code >= 500 || a.Stdout != "so far\n" {
					t.Errorf("%q: got %v, want an error and what was printed", bomb, a)
				}
			})
		}
		for range 10 {
			if got := server.processes(); got > 400 {
				t.Errorf("%d processes, want each bomb held at 32", got)
			}
			a, _ := c.run(t, program{Code: "print(await ask(n=1))", Tools: tools("ask")}, echo)
			a.completes(t, "{'n': 1}\n")
		}
		wg.Wait()
		c.post(t, program{Code: py(`
			import threading
			threads, failed = [], ""
			try:
			    for _ in range(1000):
			        threads.append(threading.Thread(target=threading.Event().wait, args=(0.5,)))
			        threads[-1].start()
			except RuntimeError as error:
			    failed = type(error).__name__
			print(failed)
		`)}).completes(t, "RuntimeError\n")
	})
}

func TestDisk(t *testing.T) {
	cases := []programCase{
		{name: "full", stdout: "OSError ENOSPC\nafter\n", code: `
			import errno
			for place in ("/mnt/data",):
			    try:
			        for n in range(100):
			            with open(f"{place}/{n}", "wb") as file:
			                file.write(bytes(1 << 20))
			    except OSError as error:
			        print("OSError", errno.errorcode[error.errno])
			for name in os.listdir():
			    os.remove(name)
			open("after", "w").write("after")
			print(open("after").read())
		`},
		{name: "every writable place", stdout: "['/mnt/data', '/tmp', '/dev/shm']\n", code: `
			full = []
			for place in ("/mnt/data", "/tmp", "/dev/shm"):
			    try:
			        for n in range(20):
			            with open(f"{place}/{n}", "wb") as file:
			                file.write(bytes(1 << 20))
			    except OSError:
			        full.append(place)
			    for n in range(20):
			        if os.path.exists(f"{place}/{n}"):
			            os.remove(f"{place}/{n}")
			print(full)
		`},
		{name: "one large file", stdout: "OSError\n", code: `
			import signal
			try:
			    with open("large", "wb") as file:
			        file.write(bytes(64 << 20))
			except OSError:
			    print("OSError")
		`},
		{name: "many files", stdout: "OSError\n", code: `
			try:
			    for n in range(200_000):
			        open(f"{n}", "w").close()
			except OSError:
			    print("OSError")
		`},
		{name: "descriptors", stdout: "OSError\n{}\n", tools: tools("ask"), code: `
			files = []
			try:
			    while True:
			        files.append(open("/dev/null"))
			except OSError:
			    print("OSError")
			files.clear()
			print(await ask())
		`},
		{name: "descriptors, and then a call", stdout: "{}\n", tools: tools("ask"), code: `
			files = []
			try:
			    while True:
			        files.append(os.open("/dev/null", os.O_RDONLY))
			except OSError:
			    print(await ask())
		`},
	}
	overSetups(t, eachEngine|ordinaryUser, func(t *testing.T, s setup) { runCases(t, serve(t, s, small).alice(), cases) })
}

func TestOutput(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, small).alice()
		for _, tc := range []struct{ name, code, text string }{
			{"stdout", "print('head')\nwhile True: print('x' * 1000)", "stdout length exceeded"},
			{"1 GB on stdout", "print('head', flush=True)\nfor _ in range(1024): os.write(1, bytes(1 << 20))", "stdout length exceeded"},
			{"stdout of a child", "print('head', flush=True)\nos.system('yes')", "stdout length exceeded"},
			{"one line", "print('head')\nprint('x' * (20 << 20))", "stdout length exceeded"},
			{"after a call", "print('head')\nawait ask()\nwhile True: print('x' * 1000)", "stdout length exceeded"},
			{"stderr", "print('head')\nwhile True: print('x' * 1000, file=sys.stderr)", "stderr length exceeded"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a, _ := c.run(t, program{Code: tc.code, Tools: tools("ask"), Timeout: 20_000}, echo)
				a.fails(t, 200, tc.text)
				if !strings.HasPrefix(a.Stdout, "head\n") {
					t.Errorf("got %v, want the head of stdout", a)
				}
				if got := max(len(a.Stdout), len(a.Stderr)); got > 64<<10 || got < 60<<10 {
					t.Errorf("%d bytes were kept, want about %d", got, 64<<10)
				}
			})
		}
		t.Run("just so much", func(t *testing.T) {
			t.Parallel()
			want := strings.Repeat("x", 64<<10-1) + "\n"
			c.post(t, program{Code: "print('x' * 65535)"}).completes(t, want)
		})
		t.Run("in a pause", func(t *testing.T) {
			t.Parallel()
			a, _ := c.run(t, program{Code: "print('x' * 40000)\nawait ask()\nprint('y' * 20000)\nawait ask()\nprint('z')", Tools: tools("ask")}, echo)
			a.completes(t, strings.Repeat("x", 40000)+"\n"+strings.Repeat("y", 20000)+"\nz\n")
		})
	})
}

// TestManyCalls checks that calls cannot flood the server.
func TestManyCalls(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, settings{"MAX_CALLS": "500"}).alice()
		a, _ := c.run(t, program{Code: "await asyncio.gather(*[ask(n=n) for n in range(501)])", Tools: tools("ask")}, echo)
		a.fails(t, 400, "Execution exceeded maximum tool calls (500)")
		a, _ = c.run(t, program{Code: "for _ in range(3): await asyncio.gather(*[ask(n=n) for n in range(200)])", Tools: tools("ask")}, echo)
		a.fails(t, 400, "Execution exceeded maximum tool calls (500)")
		a, batches := c.run(t, program{Code: "x = await asyncio.gather(*[ask(x='x' * 4_000_000) for n in range(8)])\nprint(len(x))", Tools: tools("ask")}, value("1"))
		a.completes(t, "8\n")
		if len(batches) < 2 {
			t.Errorf("calls by round = %v, want 32 MB in more than one", batches)
		}
	})
}
