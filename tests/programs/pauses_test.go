package programs

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// watch is the beginning of programs that measure for how long each of their processes and threads
// did not run.
const watch = `
import ctypes, mmap, os, signal, socket, struct, threading, time
slots, shared = 0, mmap.mmap(-1, 4096)
def slot():
    global slots
    slots += 1
    return slots - 1
def run(slot, work=lambda: None):
    last, worst = time.monotonic(), 0.0
    while True:
        work()
        now = time.monotonic()
        if now - last > worst:
            worst = now - last
            struct.pack_into("d", shared, 8 * slot, worst)
        last = now
def fork(function, *args):
    if os.fork() == 0:
        function(*args)
def least():
    return min(struct.unpack_from("d", shared, 8 * n)[0] for n in range(slots))
def all_run():
    while not least(): time.sleep(0.01)
def stillness(enough=3):
    # On a busy machine it takes a while until all have seen that they run again.
    end = time.monotonic() + 3
    while least() < enough and time.monotonic() < end: time.sleep(0.01)
    return least()
`

// A restless program goes on working in a pause unless it is stopped. A hostile one wakes itself
// when signals stop it.
type restless struct {
	name, work string
	hostile    bool
}

var restlessPrograms = []restless{
	{"threads", `
		for _ in range(3): threading.Thread(target=run, args=[slot()], daemon=True).start()
	`, false},
	{"processes", `
		for _ in range(3): fork(run, slot())
	`, false},
	{"a first thread that has ended", `
		def leave(slot):
		    threading.Thread(target=run, args=[slot]).start()
		    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
		fork(leave, slot())
	`, false},
	{"timers that send SIGCONT", `
		def wake():
		    libc = ctypes.CDLL(None)
		    signal.signal(signal.SIGCONT, lambda number, frame: os.kill(-1, signal.SIGCONT))
		    # struct sigevent: a value, a signal, SIGEV_SIGNAL; struct itimerspec: interval and first time.
		    event = struct.pack("Qii48x", 0, signal.SIGCONT, 0)
		    for n in range(20):
		        timer = ctypes.c_void_p()
		        if libc.timer_create(1, event, ctypes.byref(timer)) == 0:
		            libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 100_000_000, 0, 1 + n * 5_000_000), None)
		    while True: signal.pause()
		fork(wake)
		fork(run, slot())
	`, true},
	{"processes that wake each other", `
		for _ in range(6): fork(run, slot(), lambda: os.kill(-1, signal.SIGCONT))
	`, true},
}

// program returns a program that works, pauses, and then prints for how long all of it stood still.
// It may run for timeout milliseconds.
func (r restless) program(timeout int) harness.Program {
	code := watch + harness.Py(r.work) + "all_run()\nawait ask(n=1)\nprint(stillness(), flush=True)\nos._exit(0)\n"
	return harness.Program{Code: code, Tools: harness.Tools("ask"), Timeout: timeout}
}

// stoodStill checks that a program has printed that all of it stood still for at least that long.
func stoodStill(t *testing.T, a harness.Answer, name string, atLeast time.Duration) {
	t.Helper()
	got, err := strconv.ParseFloat(strings.TrimSpace(a.Stdout), 64)
	switch {
	case err != nil || a.Status != "completed":
		t.Errorf("%s: got %v, want it completed with a number", name, a)
	case got < atLeast.Seconds():
		t.Errorf("%s: the program stood still for %.2fs, want %v", name, got, atLeast)
	}
}

// TestNothingRunsInAPause checks that restless programs are stopped in a pause, and hostile ones
// where the machine has a freezer.
func TestNothingRunsInAPause(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, r := range restlessPrograms {
			if r.hostile && !strings.HasPrefix(s.Name, "process") {
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				pause := c.Pause(t, r.program(20_000)) // A machine may be busy.
				time.Sleep(4 * time.Second)            // A pause.
				stoodStill(t, c.Post(t, pause.Continue(harness.Echo)), r.name, 3*time.Second)
			})
		}
	})
}

// TestWhatRunsInAPauseIsCounted runs programs that wake themselves in a pause. Without a freezer
// they can, and then the execution ends as soon as they have used up their time.
func TestWhatRunsInAPauseIsCounted(t *testing.T) {
	harness.OverSetups(t, harness.Docker, func(t *testing.T, s harness.Setup) { // Process sandboxes have the freezer.
		server := harness.ServeAlone(t, s, harness.Settings{"METRICS_ADDR": "127.0.0.1:0"})
		c := server.Alice()
		ended := 0.0
		for _, r := range restlessPrograms {
			if !r.hostile {
				continue
			}
			pause := c.Pause(t, r.program(6000))
			want := map[string]float64{`fermata_executions_total{state="timed_out"}`: ended + 1}
			if err := harness.Within(30*time.Second, func() error { return harness.CompareMetrics(server.Metrics(t), want) }); err != nil {
				// By chance the program may have stayed stopped.
				stoodStill(t, c.Post(t, pause.Continue(harness.Echo)), r.name, 15*time.Second)
				continue
			}
			ended++
			c.Post(t, pause.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
		}
	})
}

// TestPauseIsNotRunTime checks that a pause does not count as run time, however many processes
// want to run, and that the program does not get more time either.
func TestPauseIsNotRunTime(t *testing.T) {
	const code = watch + `
for _ in range(2): fork(run, slot())
all_run()
await ask(n=1)
time.sleep(%v)
print("done")
`
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		for _, c := range []struct {
			name string
			rest float64
			want string
		}{{"within its time", 0.5, "completed"}, {"beyond its time", 60, "error"}} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				client := harness.Serve(t, s, nil).Alice()
				pause := client.Pause(t, harness.Program{Code: fmt.Sprintf(code, c.rest), Tools: harness.Tools("ask"), Timeout: 4000})
				time.Sleep(6 * time.Second) // A pause.
				began := time.Now()
				a := client.Post(t, pause.Continue(harness.Echo))
				if a.Status != c.want {
					t.Errorf("got %v, want status %s", a, c.want)
				}
				if took := time.Since(began); c.want == "error" && took > 10*time.Second {
					t.Errorf("the program ran for %v after its pause, and has 4s in all", took)
				}
			})
		}
	})
}

// TestSupervisorIsNotHeldUp has a program send its supervisor a socket that takes a minute to
// close. If that held up the supervisor, the program could run on in its pause.
func TestSupervisorIsNotHeldUp(t *testing.T) {
	const code = watch + `
control = socket.socket(fileno=os.dup(3))
listener = socket.create_server(("127.0.0.1", 0))
def attack():
    slow = socket.create_connection(listener.getsockname())
    slow.setblocking(False)
    try:
        while True: slow.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    # While the supervisor reads these frames, which have no effect, this process may get to close
    # its copy.
    control.sendall(struct.pack(">IB", 0, ord("U")) * 2_000)
    try:
        socket.send_fds(control, [b"0"], [slow.fileno()])
    finally:
        os.close(slow.detach())
        time.sleep(3600)
for _ in range(20):
    fork(attack)
    time.sleep(0.05)
fork(run, slot())
all_run()
await ask(n=1)
await ask(still=stillness())
`
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		pause := c.Pause(t, harness.Program{Code: code, Tools: harness.Tools("ask"), Timeout: 10_000})
		time.Sleep(4 * time.Second) // A pause.
		a := c.Pause(t, pause.Continue(harness.Echo))
		var input struct{ Still float64 }
		if err := json.Unmarshal(a.Calls[0].Input, &input); err != nil || input.Still < 3 {
			t.Errorf("the program stood still for %.2fs of a pause of 4s (%v)", input.Still, err)
		}
	})
}

// TestKilledServerLeavesPausesFrozen kills the server of restless programs that are paused: they
// stand still until the next server continues them.
func TestKilledServerLeavesPausesFrozen(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		pauses := map[string]harness.Answer{}
		for _, r := range restlessPrograms {
			if !r.hostile || strings.HasPrefix(s.Name, "process") {
				pauses[r.name] = c.Pause(t, r.program(20_000))
			}
		}
		time.Sleep(500 * time.Millisecond)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		c = server.Alice()
		for name, pause := range pauses {
			stoodStill(t, c.Post(t, pause.Continue(harness.Echo)), name, 3*time.Second)
		}
	})
}

// TestNothingFrozenIsLeft kills, during a pause, the processes that would thaw the program or end
// it: no process of the program is left, and the next program runs.
func TestNothingFrozenIsLeft(t *testing.T) {
	const zygote, supervisor = 1, 2                                                // how many PID namespaces they are below the server's
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) { // A container dies with its first process.
		for _, c := range []struct {
			name   string
			server bool
			depth  int
		}{
			{"the supervisor", false, supervisor},
			{"the zygote", false, zygote},
			{"server and supervisor", true, supervisor},
			{"server and zygote", true, zygote},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				server := harness.ServeAlone(t, s, harness.Settings{"POOL_SIZE": "1"})
				client := server.Alice()
				pause := client.Pause(t, restlessPrograms[1].program(20_000))
				time.Sleep(300 * time.Millisecond) // By then it is frozen.
				own := len(namespaces(os.Getpid()))
				var victims, program []harness.Process
				for _, p := range server.Family() {
					switch ids := namespaces(p.PID); {
					case len(ids) == own+c.depth && ids[len(ids)-1] == "1":
						victims = append(victims, p)
					case len(ids) == own+supervisor:
						program = append(program, p)
					}
				}
				if len(victims) == 0 || len(program) < 2 {
					t.Fatalf("found %v to kill and the program %v", victims, program)
				}
				if c.server {
					if err := server.Kill(); err != nil {
						t.Fatal(err)
					}
				}
				for _, p := range victims {
					_ = syscall.Kill(p.PID, syscall.SIGKILL) // The victim may have ended together with the server.
				}
				if c.server {
					if err := server.Start(); err != nil {
						t.Fatal(err)
					}
					client = server.Alice()
				}
				if a := client.Post(t, pause.Continue(harness.Echo)); a.Status != "error" || a.HTTPStatus >= 500 {
					t.Errorf("got %v, want an error that is not the server's", a)
				}
				err := harness.Within(20*time.Second, func() error {
					all := harness.AllProcesses()
					for _, p := range program {
						if now, ok := all[p.PID]; ok && now.Start == p.Start && !now.Dead {
							return fmt.Errorf("process %d (%s) of the program is left", p.PID, p.Command)
						}
					}
					a, err := client.Send(t.Context(), printsOne)
					if err == nil && a.Stdout != "1\n" {
						err = fmt.Errorf("got %v, want it completed", a)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
}

var printsOne = harness.Program{Code: "print(1)"}

// namespaces returns the ids of a process, one in each PID namespace that it belongs to.
func namespaces(pid int) []string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil // The process has ended.
	}
	_, after, _ := strings.Cut(string(status), "\nNSpid:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Fields(line)
}
