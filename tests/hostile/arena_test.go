//go:build linux

package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"fermata/tests/harness"
)

// hostileSettings are the settings of a server under attack: small limits, which programs reach
// soon, and many sandboxes, so that no program has to wait for one.
var hostileSettings = harness.Settings{
	"MEMORY": "192MiB", "DISK": "32MiB", "PIDS": "32", "OUTPUT": "64KiB", "MAX_SANDBOXES": "24", "KEEP": "1s",
}

// A besieged is one way to run a server under attack.
type besieged struct {
	name   string
	docker bool
	// sharesUser says that all sandboxes run as the same user of the host.
	sharesUser bool
	settings   harness.Settings
	// atOnce is how many hostile programs run at the same time: several where each takes a
	// second to start.
	atOnce int
}

// overBesieged runs test with each way to run a server: as root, as an ordinary user and with
// Docker. If FERMATA_HOSTILE_TIME leaves time, it adds a user with a range of users, and gVisor.
func overBesieged(t *testing.T, test func(t *testing.T, b besieged)) {
	t.Parallel()
	process := harness.With(harness.Common, harness.ProcessSetup().Libraries(), hostileSettings)
	docker := harness.With(process, harness.DockerSettings, harness.Settings{"POOL_SIZE": "4"})
	long := hostileTime(t) > 0
	ways := []besieged{{name: "process", settings: process, atOnce: 1}}
	if os.Geteuid() == 0 {
		ways = append(ways, besieged{name: "user", settings: harness.With(process, harness.Settings{harness.RunAs: harness.Nobody}), sharesUser: true, atOnce: 1})
	}
	if os.Geteuid() == 0 && long {
		ways = append(ways, besieged{name: "user with a range", settings: harness.With(process, harness.Settings{harness.RunAs: harness.NobodyWithRange}), atOnce: 1})
	}
	if harness.HasDocker() {
		ways = append(ways, besieged{name: "docker", docker: true, settings: docker, sharesUser: true, atOnce: 4})
	}
	if harness.HasGVisor() && long {
		ways = append(ways, besieged{name: "gvisor", docker: true, settings: harness.With(docker, harness.GVisorSettings), atOnce: 2})
	}
	for _, b := range ways {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// An arena is a server on which hostile programs run.
type arena struct {
	besieged

	server *harness.Server
	// victim is a paused program of another client, rounds is how many rounds it has had.
	victim harness.Answer
	rounds int
	// probed and hostProbed are what probe and hostProbe find when nobody attacks.
	probed, hostProbed string
	before             condition
	// pages is the size of all TCP buffers of the machine before the attacks.
	pages int
	// watch measures the peak of the server's memory.
	watch *memoryWatch
}

// besiege starts a server to attack.
func besiege(t *testing.T, b besieged) *arena {
	t.Helper()
	a := &arena{besieged: b, pages: pagesOfTCP()}
	a.begin(t)
	return a
}

// begin starts a server and notes its condition.
func (a *arena) begin(t *testing.T) {
	t.Helper()
	var err error
	if a.server, err = harness.StartServer(a.settings); err != nil {
		t.Fatal(err)
	}
	a.probed, a.hostProbed, a.victim, a.rounds = "", hostProbe(), harness.Answer{}, 0
	a.watch = watchMemory(a.server.Cmd.Process.Pid)
	for range 3 { // This makes what rightly stays: threads and buffers.
		if err := a.serves(t.Context()); err != nil {
			t.Fatal(errors.Join(err, a.stop()))
		}
	}
	if a.docker {
		// Docker makes one container after the other: those of the pool and the victim's.
		size, _ := strconv.Atoi(a.server.Settings["POOL_SIZE"]) // It is a number.
		if err := harness.Within(harness.StartTimeout, func() error {
			if list, err := a.server.Containers(t.Context()); err != nil || len(list) != size+1 {
				return fmt.Errorf("%d containers (%w), want %d", len(list), err, size+1)
			}
			return nil
		}); err != nil {
			t.Fatal(errors.Join(err, a.stop()))
		}
	}
	// On a busy machine processes that have ended take a while to vanish.
	for first := -1; first != harness.Resting(a.server.Processes); {
		first = harness.Resting(a.server.Processes)
	}
	a.before = conditionOf(a.server)
}

// end stops the server and checks what it leaves behind.
func (a *arena) end(t *testing.T) {
	t.Helper()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if err := harness.Within(hostileRest, func() error { return harness.AtMost("pages of TCP buffers", pagesOfTCP(), a.pages+tcpGrowth) }); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("log of the server:\n%s", a.server.Log.Tail())
	}
}

func (a *arena) stop() error {
	a.watch.stop()
	return a.server.Stop()
}

// again replaces a server that an attack has harmed, so that the next attack is not blamed for it.
func (a *arena) again(t *testing.T) {
	t.Helper()
	t.Logf("log of the server:\n%s", a.server.Log.Tail())
	a.watch.stop()
	if err := ruin(a.server); err != nil {
		t.Log(err)
	}
	a.begin(t)
}

// ruin kills a server in whatever state it is, with all its processes and containers.
func ruin(s *harness.Server) error {
	family := s.Family()
	_ = s.Kill()
	for _, p := range family {
		if now, ok := harness.AllProcesses()[p.PID]; ok && now.Start == p.Start {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // The process may have ended.
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := s.Containers(ctx)
	for _, one := range list {
		if c, failed := harness.DockerClient(); failed == nil {
			_ = c.ContainerRemove(ctx, one.ID, container.RemoveOptions{Force: true})
		}
	}
	return errors.Join(err, harness.Within(hostileRest, func() error {
		for _, group := range harness.SandboxGroups(s.Groups) {
			_ = syscall.Rmdir(group)
		}
		return s.RemoveGroups()
	}))
}

// attack runs programs at the same time and returns their last answers. It checks the answers, the
// server and the machine.
func (a *arena) attack(t *testing.T, programs []hostile) []harness.Answer {
	t.Helper()
	var names []string
	answers := make([]harness.Answer, len(programs))
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	begin := time.Now()
	for i, p := range programs {
		names = append(names, p.name)
		wg.Go(func() {
			var err error
			if answers[i], err = a.run(t.Context(), p); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			}
		})
	}
	wg.Wait()
	ran := time.Since(begin)
	name := strings.Join(names, ", ")
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	harm := errors.Join(a.unharmed(t.Context()), harness.Within(hostileRest, a.hostFree))
	if testing.Verbose() {
		t.Logf("%s: ran %v, checked %v", name, ran.Round(time.Millisecond), (time.Since(begin) - ran).Round(time.Millisecond))
		for i, got := range answers {
			t.Logf("%s: %d %s %.200q, stdout %.200q, stderr ends with %.200q", programs[i].name, got.HTTPStatus, got.Status, got.Error, got.Stdout, got.Stderr[max(0, len(got.Stderr)-200):])
		}
	}
	if harm != nil {
		t.Errorf("after %s: %v", name, harm)
		a.again(t)
	}
	return answers
}

// run runs a program to its end and returns its last answer. The error says what the program did
// that it must not be able to do.
func (a *arena) run(ctx context.Context, p hostile) (harness.Answer, error) {
	alice := a.server.Alice()
	answered := func(path string, body any) (harness.Answer, error) {
		ctx, cancel := context.WithTimeout(ctx, p.timeout+hostileSlack)
		defer cancel()
		got, err := alice.Request(ctx, http.MethodPost, path, nil, body)
		if err != nil {
			return got, err
		}
		// Only a line of its own counts: a fuzzed system call may print the source of the prelude.
		if _, all, is := strings.Cut(got.Stdout, "\nBREACH: "); is {
			found := strings.Split(all, "\nBREACH: ")
			return got, fmt.Errorf("%d breaches, such as: %s", len(found), strings.TrimSpace(found[0]))
		}
		return got, proper(got, path, p)
	}
	if p.tool == "" {
		return answered(harness.ExecPath, harness.ExecRequest{Lang: p.lang, Code: p.code, Timeout: int(p.timeout.Milliseconds())})
	}
	request := harness.Program{Code: p.code, Tools: harness.Tools(p.tool), Timeout: int(p.timeout.Milliseconds())}
	if p.lang == "bash" {
		request.Lang = p.lang
	}
	var harm error
	got, err := answered(harness.Programmatic, request)
	for round := 0; err == nil && got.Status == "tool_call_required"; round++ {
		if round == 0 {
			if harm = errors.Join(a.bystanders(ctx), a.hostFree()); harm != nil {
				harm = fmt.Errorf("in its pause: %w", harm)
			}
		}
		if round < 2 {
			time.Sleep(p.pause)
		}
		raw, failed := json.Marshal(strings.Repeat("r", p.result))
		if failed != nil {
			return got, failed
		}
		got, err = answered(harness.Programmatic, got.Continue(harness.Value(string(raw))))
	}
	return got, errors.Join(harm, err)
}

// callID is the form of the ids of calls.
var callID = regexp.MustCompile(`^call_\d{3,}$`)

// proper checks that an answer has a form that the contract allows.
func proper(a harness.Answer, path string, p hostile) error {
	bad := func(why string) error { return fmt.Errorf("%s: %v", why, a) }
	switch {
	case a.HTTPStatus >= 500 || a.HTTPStatus < 200:
		return bad("the status of an answer")
	case a.HTTPStatus != http.StatusOK && a.Error == "":
		return bad("an answer without an error")
	case path == harness.ExecPath:
		return nil
	case a.Status == "tool_call_required":
		if a.Token == "" || len(a.Calls) == 0 {
			return bad("a pause without calls")
		}
		for _, c := range a.Calls {
			if c.Name != p.tool || !callID.MatchString(c.ID) || !strings.HasPrefix(c.CompactInput(), "{") {
				return bad("a call that is none")
			}
		}
	case a.Status != "completed" && a.Status != "error":
		return bad("an answer of no kind")
	}
	return nil
}

// unharmed checks the server and the machine after an attack.
func (a *arena) unharmed(ctx context.Context) error {
	// Where all sandboxes run as one user, a program that has just ended may still count against
	// the user's limits.
	err := harness.Within(3*time.Second, func() error { return a.serves(ctx) })
	if err != nil {
		return err
	}
	most := a.watch.most()
	return harness.Within(hostileRest, func() error { return conditionOf(a.server).compare(a.before, most) })
}

// serves checks that the server answers, and that another client's programs run and can be
// continued.
func (a *arena) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hostileSlack+10*time.Second)
	defer cancel()
	if err := a.bystanders(ctx); err != nil {
		return err
	}
	bob := a.server.Bob()
	if a.victim.Token == "" {
		paused, err := bob.Send(ctx, harness.Program{Code: "kept = 41\nwhile True:\n    kept += 1\n    await ask(n=kept)", Tools: harness.Tools("ask")})
		if err != nil {
			return err
		}
		a.victim, a.rounds = paused, 1
	} else {
		next, err := bob.Send(ctx, a.victim.Continue(harness.Echo))
		if err != nil {
			return fmt.Errorf("another client's paused program: %w", err)
		}
		a.victim, a.rounds = next, a.rounds+1
	}
	if want := fmt.Sprintf(`{"n":%d}`, 41+a.rounds); len(a.victim.Calls) != 1 || a.victim.Calls[0].CompactInput() != want {
		return fmt.Errorf("another client's paused program did not go on to %s: %v", want, a.victim)
	}
	if a.rounds == 19 {
		// The victim has used up its rounds; another one takes its place.
		ended, err := bob.Send(ctx, harness.Continuation{Token: a.victim.Token, Results: []harness.Result{{CallID: a.victim.Calls[0].ID, IsError: true, Message: "end"}}})
		if err != nil || ended.Status != "error" {
			return fmt.Errorf("another client's paused program did not end: %v (%w)", ended, err)
		}
		a.victim = harness.Answer{}
		return a.serves(ctx)
	}
	return nil
}

// bystanders checks that the server is healthy, and that probe, run by another client, finds what
// it found before the attacks.
func (a *arena) bystanders(ctx context.Context) error {
	health, err := harness.Client{URL: a.server.URL}.Request(ctx, http.MethodGet, "/health", nil, nil)
	var syntax *json.SyntaxError
	if err != nil && !errors.As(err, &syntax) || health.HTTPStatus != http.StatusOK {
		return fmt.Errorf("GET /health: %v (%w)", health, err)
	}
	begin := time.Now()
	code := probe
	if a.sharesUser {
		// All sandboxes then share that user's limit on descriptors in flight.
		code = strings.Replace(code, "tell(\"descriptors\", descriptors)\n", "", 1)
	}
	got, err := a.server.Bob().Send(ctx, harness.Program{Code: code, Timeout: 10_000})
	if err != nil {
		return fmt.Errorf("another client's program: %w", err)
	}
	if got.Status != "completed" || a.probed != "" && got.Stdout != a.probed {
		return fmt.Errorf("another client's program got after %v: %v\nwant %q", time.Since(begin), got, a.probed)
	}
	if a.probed == "" {
		a.probed = got.Stdout // The first look, before the attacks.
	}
	return nil
}

// probe is a program that uses everything that a neighbour might use up, and prints the outcome.
const probe = `
import ctypes, select, socket, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
def tell(name, function):
    try:
        function()
        print(name, "done")
    except (OSError, RuntimeError) as error:
        print(name, error)
def number(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def thread():
    t = threading.Thread(target=int)
    t.start()
    t.join()
def descriptors():
    a, b = socket.socketpair()
    socket.send_fds(a, [b"x"], [0])
tell("child", lambda: subprocess.run(["true"]))
tell("thread", thread)
tell("pipe", os.pipe)
tell("descriptors", descriptors)
tell("epoll", lambda: select.epoll().register(os.eventfd(0)))
tell("inotify", lambda: number(294, 0))
tell("timer", lambda: number(222, 1, 0, ctypes.byref(ctypes.c_int())))
tell("queue", lambda: number(240, b"probe", 0o102, 0o600, 0))
listener = socket.create_server(("127.0.0.1", 0))
tell("connection", lambda: socket.create_connection(listener.getsockname()))
print(os.nice(0), len(os.sched_getaffinity(0)))
`

// hostProbe uses what programs might have used up on the host, and returns the outcome.
func hostProbe() string {
	found := []string{"inotify"}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err == nil {
		err = syscall.Close(fd)
	}
	return strings.Join(append(found, fmt.Sprint(err)), " ")
}

// hostFree checks that hostProbe finds what it found before the attacks.
func (a *arena) hostFree() error {
	if now := hostProbe(); now != a.hostProbed {
		return fmt.Errorf("the host finds %s, before %s", now, a.hostProbed)
	}
	return nil
}
