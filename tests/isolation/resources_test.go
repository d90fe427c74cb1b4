package isolation

import (
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestMemoryLimit runs programs that use up their memory.
func TestMemoryLimit(t *testing.T) {
	cases := []struct{ name, code string }{
		{"at once", "x = bytearray(1 << 30)"},
		{"page by page", "x = []\nwhile True: x.append(bytearray(1 << 20))"},
		{"many objects", "x = []\nwhile True: x.append([x])"},
		{"in C", "x = np.ones(1 << 28)"},
		{"in a file of memory", "with open('/dev/shm/a', 'wb') as f:\n    x = []\n    while True: x.append(bytearray(1 << 20)); f.seek(0); f.write(x[-1])"},
		{"caught, and on", "x = []\nwhile True:\n    try:\n        x.append(bytearray(1 << 20))\n    except MemoryError:\n        pass"},
		{"after a call", "await ask()\nx = []\nwhile True: x.append(bytearray(1 << 20))"},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.With(harness.SmallLimits, s.Libraries())).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				a, _ := c.Run(t, harness.Program{Code: "print('so far')\n" + tc.code, Tools: harness.Tools("ask"), Timeout: 20_000}, harness.Echo)
				a.Fails(t, 200, "Out of memory")
				if a.Stdout != "so far\n" {
					t.Errorf("stdout = %q, want what was printed", a.Stdout)
				}
				limit := 15 * time.Second
				if s.Docker() {
					limit += 30 * time.Second // All of them wait for containers first.
				}
				if took := time.Since(began); took > limit {
					t.Errorf("the answer came after %v, want it when the memory is spent", took)
				}
			})
		}
		t.Run("in a child", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: harness.Py(`
				import subprocess
				code = "x = []\nwhile True: x.append(bytearray(1 << 20))"
				print(subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode != 0)
			`)})
			if a.Status == "completed" {
				a.Completes(t, "True\n")
			} else {
				a.Fails(t, 200, "Out of memory")
			}
		})
	})
}

// TestForkBomb runs programs that make processes without end: each stays within its limit, and
// other programs do not notice.
func TestForkBomb(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser|harness.OrdinaryUserWithRange, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, harness.SmallLimits)
		c := server.Alice()
		var wg sync.WaitGroup
		for _, bomb := range []string{
			"while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
			"import threading\nwhile True:\n    try:\n        threading.Thread(target=threading.Event().wait).start()\n    except RuntimeError:\n        pass",
			"os.system('f() { f | f & }; f')\nwhile True: pass",
			"import subprocess\nwhile True:\n    try:\n        subprocess.Popen(['setsid', 'sleep', '100'])\n    except OSError:\n        pass",
		} {
			wg.Go(func() {
				a, err := c.Send(t.Context(), harness.Program{Code: "print('so far')\n" + bomb, Timeout: 3000})
				if err != nil {
					t.Error(err)
					return
				}
				if a.Status != "error" || a.HTTPStatus >= 500 || a.Stdout != "so far\n" {
					t.Errorf("%q: got %v, want an error and what was printed", bomb, a)
				}
			})
		}
		for range 10 {
			if got := server.Processes(); got > 400 {
				t.Errorf("%d processes, want each bomb held at 32", got)
			}
			a, _ := c.Run(t, harness.Program{Code: "print(await ask(n=1))", Tools: harness.Tools("ask")}, harness.Echo)
			a.Completes(t, "{'n': 1}\n")
		}
		wg.Wait()
		c.Post(t, harness.Program{Code: harness.Py(`
			import threading
			threads, failed = [], ""
			try:
			    for _ in range(1000):
			        threads.append(threading.Thread(target=threading.Event().wait, args=(0.5,)))
			        threads[-1].start()
			except RuntimeError as error:
			    failed = type(error).__name__
			print(failed)
		`)}).Completes(t, "RuntimeError\n")
	})
}

// TestDiskLimit runs programs that use up their disk, files and descriptors.
func TestDiskLimit(t *testing.T) {
	cases := []harness.Case{
		{Name: "full", Stdout: "OSError ENOSPC\nafter\n", Code: `
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
		{Name: "every writable place", Stdout: "['/mnt/data', '/tmp', '/dev/shm']\n", Code: `
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
		{Name: "one large file", Stdout: "OSError\n", Code: `
			import signal
			try:
			    with open("large", "wb") as file:
			        file.write(bytes(64 << 20))
			except OSError:
			    print("OSError")
		`},
		{Name: "many files", Stdout: "OSError\n", Stderr: []string{"files are not kept: a program may leave at most"}, Code: `
			try:
			    for n in range(200_000):
			        open(f"{n}", "w").close()
			except OSError:
			    print("OSError")
		`},
		{Name: "descriptors", Stdout: "OSError\n{}\n", Tools: harness.Tools("ask"), Code: `
			files = []
			try:
			    while True:
			        files.append(open("/dev/null"))
			except OSError:
			    print("OSError")
			files.clear()
			print(await ask())
		`},
		{Name: "descriptors, and then a call", Stdout: "{}\n", Tools: harness.Tools("ask"), Code: `
			files = []
			try:
			    while True:
			        files.append(os.open("/dev/null", os.O_RDONLY))
			except OSError:
			    print(await ask())
		`},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		harness.RunCases(t, harness.Serve(t, s, harness.SmallLimits).Alice(), cases)
	})
}
