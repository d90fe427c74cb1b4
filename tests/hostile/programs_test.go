package tests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

const (
	// hostileTimeout is how long a hostile program may run if it does not say so.
	hostileTimeout = 2 * time.Second
	// hostileSlack is how much later than that an answer may come, on a machine that
	// others keep busy with their attacks.
	hostileSlack = 20 * time.Second
	// hostileRest is how long the server may take to be as it was before a program.
	hostileRest = 20 * time.Second
)

// A hostile is one program of the corpus in tests/hostile. Its first line says what it
// tries. Lines like "# timeout: 3000" behind it are for the driver.
type hostile struct {
	name, lang, code string
	// tool is the tool that it calls, if it is one that calls tools.
	tool string
	// timeout is its own, pause is how long its first calls wait for their answers.
	timeout, pause time.Duration
	// result is how many bytes of text each call is answered with.
	result int
	// sandbox is the only kind that it runs in, if there is one.
	sandbox string
}

// hostileLine is a line for the driver.
var hostileLine = regexp.MustCompile(`^# (\w+): (\w+)$`)

// readHostile reads one program.
func readHostile(path string) (hostile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return hostile{}, err
	}
	extension := filepath.Ext(path)
	lang, ok := map[string]string{".py": "py", ".sh": "bash"}[extension]
	if !ok {
		return hostile{}, fmt.Errorf("%s: neither .py nor .sh", path)
	}
	prelude, err := os.ReadFile(filepath.Join("hostile", "prelude"+extension))
	if err != nil {
		return hostile{}, err
	}
	p := hostile{
		name: filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path), lang: lang,
		code: string(prelude) + "\n" + string(text), timeout: hostileTimeout,
	}
	lines := strings.Split(string(text), "\n")
	if !strings.HasPrefix(lines[0], "# ") || hostileLine.MatchString(lines[0]) {
		return p, fmt.Errorf("%s: the first line does not say what the program tries", path)
	}
	for _, line := range lines[1:] {
		m := hostileLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		number, err := strconv.Atoi(m[2])
		switch m[1] {
		case "tools":
			p.tool, err = m[2], nil
		case "sandbox":
			p.sandbox, err = m[2], nil
		case "timeout":
			p.timeout = time.Duration(number) * time.Millisecond
		case "pause":
			p.pause = time.Duration(number) * time.Millisecond
		case "result":
			p.result = number
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return p, fmt.Errorf("%s: line %q: %w", path, line, err)
		}
	}
	return p, nil
}

// hostiles returns the programs for a kind of sandbox. FERMATA_HOSTILE_ONLY is a pattern
// of the names of some of them.
func hostiles(t *testing.T, docker bool) []hostile {
	t.Helper()
	paths, err := filepath.Glob("hostile/*/*")
	if err != nil {
		t.Fatal(err)
	}
	only, err := regexp.Compile(os.Getenv("FERMATA_HOSTILE_ONLY"))
	if err != nil {
		t.Fatal(err)
	}
	var programs []hostile
	for _, path := range paths {
		if filepath.Base(filepath.Dir(path)) == "fuzz" {
			continue
		}
		p, err := readHostile(path)
		if err != nil {
			t.Fatal(err)
		}
		if (p.sandbox == "" || (p.sandbox == "docker") == docker) && only.MatchString(p.name) {
			programs = append(programs, p)
		}
	}
	return programs
}

// hostileTime is how long the tests of hostile programs go on; at 0 each does its work once.
func hostileTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FERMATA_HOSTILE_TIME")
	if text == "" || text == "0" {
		return 0
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FERMATA_HOSTILE_TIME: %v", err)
	}
	return limit
}

// hostileRounds calls round once, or again and again for as long as FERMATA_HOSTILE_TIME
// says, with a fresh seed each time, which it prints. FERMATA_HOSTILE_SEED is the first one.
func hostileRounds(t *testing.T, round func(t *testing.T, seed uint64)) {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("FERMATA_HOSTILE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FERMATA_HOSTILE_SEED: %v", err)
		}
	}
	for end := time.Now().Add(hostileTime(t)); ; seed = rand.Uint64() {
		t.Logf("FERMATA_HOSTILE_SEED=%d", seed)
		round(t, seed)
		if t.Failed() || !time.Now().Before(end) {
			return
		}
	}
}

// hostileSettings are those of servers under attack: with small limits programs reach
// them soon, and with many sandboxes none has to wait for another one.
var hostileSettings = settings{
	"MEMORY": "192MiB", "DISK": "32MiB", "PIDS": "32", "OUTPUT": "64KiB", "MAX_SANDBOXES": "24", "KEEP": "1s",
}

// A besieged is a way to run a server under attack.
type besieged struct {
	name   string
	docker bool
	// sharesUser says that all sandboxes are of one user of the host.
	sharesUser bool
	settings   settings
	// atOnce is how many hostile programs run beside one another: where each takes a
	// second to start, several.
	atOnce int
}

// overBesieged runs test over the ways to run a server: as root, as an ordinary user, and
// with Docker; as a user who has a range of users, and with gVisor, only if there is time.
func overBesieged(t *testing.T, test func(t *testing.T, b besieged)) {
	t.Parallel()
	process := with(common, hostileSettings)
	docker := with(with(process, dockerSettings), settings{"POOL_SIZE": "4"})
	long := hostileTime(t) > 0
	ways := []besieged{{name: "process", settings: process, atOnce: 1}}
	if os.Geteuid() == 0 {
		ways = append(ways, besieged{name: "user", settings: with(process, settings{runAs: nobody}), sharesUser: true, atOnce: 1})
	}
	if os.Geteuid() == 0 && long {
		ways = append(ways, besieged{name: "user with a range", settings: with(process, settings{runAs: nobodyWithRange}), atOnce: 1})
	}
	if hasDocker() {
		ways = append(ways, besieged{name: "docker", docker: true, settings: docker, sharesUser: true, atOnce: 4})
	}
	if hasGVisor() && long {
		ways = append(ways, besieged{name: "gvisor", docker: true, settings: with(docker, gVisorSettings), atOnce: 2})
	}
	for _, b := range ways {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// TestHostile runs every program of tests/hostile, in an order of chance. After each one
// the server answers, another client's paused program goes on, nothing is left and
// nothing has changed.
func TestHostile(t *testing.T) {
	overBesieged(t, func(t *testing.T, b besieged) {
		programs := hostiles(t, b.docker)
		a := besiege(t, b)
		hostileRounds(t, func(t *testing.T, seed uint64) {
			order := rand.New(rand.NewPCG(seed, 0))
			order.Shuffle(len(programs), func(i, j int) { programs[i], programs[j] = programs[j], programs[i] })
			for several := range slices.Chunk(programs, b.atOnce) {
				a.attack(t, several)
			}
		})
		a.end(t)
	})
}

// An arena is a server on which hostile programs run.
type arena struct {
	besieged

	server *server
	// victim is the pause of a program of another client, rounds how many it has had.
	victim answer
	rounds int
	// probed and hostProbed are what a program of that client and the host find when nobody
	// attacks.
	probed, hostProbed string
	before             condition
	// pages is what the machine's connections had in their buffers.
	pages int
	// watch tells the most memory that the server has had.
	watch *memoryWatch
}

// besiege starts a server to attack.
func besiege(t *testing.T, b besieged) *arena {
	t.Helper()
	a := &arena{besieged: b, pages: pagesOfTCP()}
	a.begin(t)
	return a
}

// begin starts a server and notes what it is like.
func (a *arena) begin(t *testing.T) {
	t.Helper()
	var err error
	if a.server, err = startServer(a.settings); err != nil {
		t.Fatal(err)
	}
	a.probed, a.hostProbed, a.victim, a.rounds = "", hostProbe(), answer{}, 0
	a.watch = watchMemory(a.server.cmd.Process.Pid)
	for range 3 { // What stays is made: threads, buffers.
		if err := a.serves(t.Context()); err != nil {
			t.Fatal(errors.Join(err, a.stop()))
		}
	}
	if a.docker {
		// Containers come one after the other: those of the pool, and the victim's.
		size, _ := strconv.Atoi(a.server.settings["POOL_SIZE"]) // It is a number.
		if err := within(startTimeout, func() error {
			if list, err := a.server.containers(t.Context()); err != nil || len(list) != size+1 {
				return fmt.Errorf("%d containers (%w), want %d", len(list), err, size+1)
			}
			return nil
		}); err != nil {
			t.Fatal(errors.Join(err, a.stop()))
		}
	}
	// On a busy machine what has ended takes its time to go.
	for first := -1; first != resting(a.server.processes); {
		first = resting(a.server.processes)
	}
	a.before = a.server.condition()
}

// end stops the server, unless it is in ruins, and looks at what it leaves.
func (a *arena) end(t *testing.T) {
	t.Helper()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if err := within(hostileRest, func() error { return atMost("pages of TCP buffers", pagesOfTCP(), a.pages+tcpGrowth) }); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("log of the server:\n%s", a.server.log.tail())
	}
}

func (a *arena) stop() error {
	a.watch.stop()
	return a.server.stop()
}

// again replaces a server that an attack has harmed, so that what comes next is not
// blamed for it.
func (a *arena) again(t *testing.T) {
	t.Helper()
	t.Logf("log of the server:\n%s", a.server.log.tail())
	a.watch.stop()
	if err := a.server.ruin(); err != nil {
		t.Log(err)
	}
	a.begin(t)
}

// ruin ends everything that a server has left, whatever state it is in.
func (s *server) ruin() error {
	family := s.family()
	_ = s.kill()
	for _, p := range family {
		if now, ok := processes()[p.pid]; ok && now.start == p.start {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // It may have ended.
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := s.containers(ctx)
	for _, one := range list {
		if c, failed := dockerClient(); failed == nil {
			_ = c.ContainerRemove(ctx, one.ID, container.RemoveOptions{Force: true})
		}
	}
	return errors.Join(err, within(hostileRest, func() error {
		for _, group := range sandboxGroups(s.groups) {
			_ = syscall.Rmdir(group)
		}
		return s.removeGroups()
	}))
}

// attack runs programs beside one another, checks what each has got and that all is as
// before, and returns their last answers.
func (a *arena) attack(t *testing.T, programs []hostile) []answer {
	t.Helper()
	var names []string
	answers := make([]answer, len(programs))
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
	harm := errors.Join(a.unharmed(t.Context()), within(hostileRest, a.hostFree))
	if testing.Verbose() {
		t.Logf("%s: ran %v, checked %v", name, ran.Round(time.Millisecond), (time.Since(begin) - ran).Round(time.Millisecond))
		for i, got := range answers {
			t.Logf("%s: %d %s %.200q, stdout %.200q, stderr ends with %.200q", programs[i].name, got.code, got.Status, got.Error, got.Stdout, got.Stderr[max(0, len(got.Stderr)-200):])
		}
	}
	if harm != nil {
		t.Errorf("after %s: %v", name, harm)
		a.again(t)
	}
	return answers
}

// run runs a program until it has ended, and returns its last answer and what it did that
// it must not.
func (a *arena) run(ctx context.Context, p hostile) (answer, error) {
	alice := a.server.alice()
	answered := func(path string, body any) (answer, error) {
		ctx, cancel := context.WithTimeout(ctx, p.timeout+hostileSlack)
		defer cancel()
		got, err := alice.request(ctx, http.MethodPost, path, nil, body)
		if err != nil {
			return got, err
		}
		if i := strings.Index(got.Stdout, "BREACH: "); i >= 0 {
			found := strings.Split(got.Stdout[i:], "BREACH: ")[1:]
			return got, fmt.Errorf("%d breaches, such as: %s", len(found), strings.TrimSpace(found[0]))
		}
		return got, got.proper(path, p)
	}
	if p.tool == "" {
		return answered(execPath, plain{Lang: p.lang, Code: p.code, Timeout: int(p.timeout.Milliseconds())})
	}
	request := program{Code: p.code, Tools: tools(p.tool), Timeout: int(p.timeout.Milliseconds())}
	if p.lang == "bash" {
		request.Lang = p.lang
	}
	var harm error
	got, err := answered(programmatic, request)
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
		got, err = answered(programmatic, got.answers(value(string(raw))))
	}
	return got, errors.Join(harm, err)
}

// callID is what the server names calls.
var callID = regexp.MustCompile(`^call_\d{3,}$`)

// proper checks that an answer is one of the contract's.
func (a answer) proper(path string, p hostile) error {
	bad := func(why string) error { return fmt.Errorf("%s: %v", why, a) }
	switch {
	case a.code >= 500 || a.code < 200:
		return bad("the status of an answer")
	case a.code != http.StatusOK && a.Error == "":
		return bad("an answer without an error")
	case path == execPath:
		return nil
	case a.Status == "tool_call_required":
		if a.Token == "" || len(a.Calls) == 0 {
			return bad("a pause without calls")
		}
		for _, c := range a.Calls {
			if c.Name != p.tool || !callID.MatchString(c.ID) || !strings.HasPrefix(c.input(), "{") {
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
	// Where all sandboxes are one user's, what has ended a moment ago may still count.
	err := within(3*time.Second, func() error { return a.serves(ctx) })
	if err != nil {
		return err
	}
	most := a.watch.most()
	return within(hostileRest, func() error { return a.server.condition().compare(a.before, most) })
}

// serves checks that the server answers, and that another client's programs run and go on.
func (a *arena) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hostileSlack+10*time.Second)
	defer cancel()
	if err := a.bystanders(ctx); err != nil {
		return err
	}
	bob := a.server.bob()
	if a.victim.Token == "" {
		paused, err := bob.send(ctx, program{Code: "kept = 41\nwhile True:\n    kept += 1\n    await ask(n=kept)", Tools: tools("ask")})
		if err != nil {
			return err
		}
		a.victim, a.rounds = paused, 1
	} else {
		next, err := bob.send(ctx, a.victim.answers(echo))
		if err != nil {
			return fmt.Errorf("another client's paused program: %w", err)
		}
		a.victim, a.rounds = next, a.rounds+1
	}
	if want := fmt.Sprintf(`{"n":%d}`, 41+a.rounds); len(a.victim.Calls) != 1 || a.victim.Calls[0].input() != want {
		return fmt.Errorf("another client's paused program did not go on to %s: %v", want, a.victim)
	}
	if a.rounds == 19 {
		// Its rounds are over; another one takes its place.
		ended, err := bob.send(ctx, continuation{Token: a.victim.Token, Results: []result{{CallID: a.victim.Calls[0].ID, IsError: true, Message: "end"}}})
		if err != nil || ended.Status != "error" {
			return fmt.Errorf("another client's paused program did not end: %v (%w)", ended, err)
		}
		a.victim = answer{}
		return a.serves(ctx)
	}
	return nil
}

// bystanders checks that the server is healthy, and that a program of another client finds
// what it always does.
func (a *arena) bystanders(ctx context.Context) error {
	health, err := client{url: a.server.url}.request(ctx, http.MethodGet, "/health", nil, nil)
	var syntax *json.SyntaxError
	if err != nil && !errors.As(err, &syntax) || health.code != http.StatusOK {
		return fmt.Errorf("GET /health: %v (%w)", health, err)
	}
	begin := time.Now()
	code := probe
	if a.sharesUser {
		// So all sandboxes share that user's descriptors in flight.
		code = strings.Replace(code, "tell(\"descriptors\", descriptors)\n", "", 1)
	}
	got, err := a.server.bob().send(ctx, program{Code: code, Timeout: 10_000})
	if err != nil {
		return fmt.Errorf("another client's program: %w", err)
	}
	if got.Status != "completed" || a.probed != "" && got.Stdout != a.probed {
		return fmt.Errorf("another client's program got after %v: %v\nwant %q", time.Since(begin), got, a.probed)
	}
	a.probed = got.Stdout
	return nil
}

// probe does what a neighbour might take away, and prints how that goes.
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

// hostProbe does on the host what programs may have taken from it, and returns how that goes.
func hostProbe() string {
	found := []string{"inotify"}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err == nil {
		err = syscall.Close(fd)
	}
	return strings.Join(append(found, fmt.Sprint(err)), " ")
}

// hostFree checks that the host finds what it found before.
func (a *arena) hostFree() error {
	if now := hostProbe(); now != a.hostProbed {
		return fmt.Errorf("the host finds %s, before %s", now, a.hostProbed)
	}
	return nil
}

// A memoryWatch looks at the memory of one process all the time.
type memoryWatch struct {
	pid  int
	quit chan struct{}
	done chan struct{}

	mu  sync.Mutex
	max int
}

// watchMemory watches a process until stop is called.
func watchMemory(pid int) *memoryWatch {
	w := &memoryWatch{pid: pid, quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-tick.C:
				now := residentMemory(pid)
				w.mu.Lock()
				w.max = max(w.max, now)
				w.mu.Unlock()
			}
		}
	}()
	return w
}

func (w *memoryWatch) stop() {
	close(w.quit)
	<-w.done
}

// most returns the most bytes since it was asked last, or what there are now.
func (w *memoryWatch) most() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := max(w.max, residentMemory(w.pid))
	w.max = 0
	return found
}

// residentMemory is what a process has in memory, in bytes.
func residentMemory(pid int) int {
	kilobytes, _ := strconv.Atoi(strings.TrimSuffix(procStatus(pid)["VmRSS"], " kB")) // 0 when it has ended.
	return kilobytes << 10
}

// procStatus is what the kernel says of a process.
func procStatus(pid int) map[string]string {
	found := map[string]string{}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // It may have ended.
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		found[name] = strings.TrimSpace(value)
	}
	return found
}

// A condition is what an attack must not change of a server and its machine.
type condition struct {
	// counts must not grow by more than they may.
	counts map[string]int
	// facts must be the same.
	facts map[string]string
}

// growth is how much each count may grow: connections of ours, threads of the runtime,
// timers of others.
var growth = map[string]int{
	"descriptors of the server": 12, "threads of the server": 24, "queued signals of the server's user": 64,
	"memory of the cgroup beside the server's": 128 << 20,
}

// tcpGrowth is by how many pages the buffers of all connections of the machine may grow in
// the course of a test.
const tcpGrowth = 64 << 8

// serverMemory is by how many bytes the server's memory may grow for one program.
const serverMemory = 256 << 20

func (s *server) condition() condition {
	c := condition{map[string]int{}, map[string]string{}}
	pid := s.cmd.Process.Pid
	family := s.family()
	// For each kind of process what does not change while it lives.
	for _, p := range family {
		if p.dead {
			c.counts["zombies"]++
		}
		c.facts[fmt.Sprintf("process %d %s", p.pid, p.start)] = scheduling(p.pid)
	}
	c.counts["processes"] = len(family)
	c.counts["cgroups"] = len(sandboxGroups(s.groups))
	c.counts["memory of the cgroup beside the server's"] = max(0, groupMemory(s.groups)-residentMemory(pid))
	status := procStatus(pid)
	c.counts["memory of the server"] = residentMemory(pid)
	c.counts["threads of the server"], _ = strconv.Atoi(status["Threads"])
	queued, _, _ := strings.Cut(status["SigQ"], "/")
	c.counts["queued signals of the server's user"], _ = strconv.Atoi(queued)
	for name, p := range keepers(pid, family) {
		c.counts["descriptors of the "+name] = entries(fmt.Sprintf("/proc/%d/fd", p))
		if name != "server" {
			c.counts["mounts of the "+name] = lines(fmt.Sprintf("/proc/%d/mountinfo", p))
			c.facts["rights of the "+name] = rights(p)
		}
	}
	for _, kind := range []string{"shm", "sem", "msg"} {
		c.counts["System V "+kind] = lines("/proc/sysvipc/" + kind)
	}
	if list, err := s.containers(context.Background()); err == nil {
		c.counts["containers"] = len(list)
	}
	maps.Copy(c.facts, hostFacts())
	return c
}

// compare tells what has changed since before, and whether the server had too much memory.
func (c condition) compare(before condition, most int) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		now, then := c.counts[name], before.counts[name]
		switch {
		case name == "memory of the server":
			if most > then+serverMemory {
				errs = append(errs, fmt.Errorf("the server had %d MiB of memory, %d before", most>>20, then>>20))
			}
		case now > then+growth[name]:
			errs = append(errs, fmt.Errorf("%s: %d, before %d", name, now, then))
		case name == "processes" && now < then:
			errs = append(errs, fmt.Errorf("the pool is not full again: %d processes, before %d", now, then))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.facts)) {
		if now, there := c.facts[name]; now != before.facts[name] && (there || !strings.HasPrefix(name, "process ")) {
			errs = append(errs, fmt.Errorf("%s was\n%s\nand is\n%s", name, before.facts[name], now))
		}
	}
	return errors.Join(errs...)
}

// keepers are the processes that make sandboxes: the server, and if there are any its
// zygote and nursery, which are the oldest ones below it.
func keepers(pid int, family []process) map[string]int {
	found := map[string]int{"server": pid}
	// Numbers of processes wrap around.
	all := slices.SortedFunc(slices.Values(family), func(a, b process) int {
		return cmp.Or(cmp.Compare(len(a.start), len(b.start)), cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
	})
	for _, name := range []string{"zygote", "nursery"} {
		for _, p := range all {
			if p.parent == pid && strings.HasPrefix(p.command, "python") {
				found[name], pid = p.pid, p.pid
				break
			}
		}
	}
	return found
}

// scheduling is how a process is scheduled, and its limits.
func scheduling(pid int) string {
	limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid)) // It may have ended.
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 39 {
		return ""
	}
	group, _ := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid)) // Not every kernel has it.
	return fmt.Sprintf("nice %s, policy %s, processors %s\n%s%s", fields[16], fields[38], procStatus(pid)["Cpus_allowed"], group, limits)
}

// rights is who a process is, and whether it runs.
func rights(pid int) string {
	status := procStatus(pid)
	adjustment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid)) // It may have ended.
	stopped := strings.HasPrefix(status["State"], "T")
	return fmt.Sprint(status["Uid"], status["Gid"], status["CapEff"], status["SigIgn"], stopped, string(adjustment))
}

// hostFacts are what the host shows of itself.
func hostFacts() map[string]string {
	facts := map[string]string{}
	library := libraryDir()
	for _, path := range []string{
		"/etc/passwd", "/etc/hosts", "/usr/bin", "/usr/bin/env", "/usr/bin/python3", "/bin/sh", library, filepath.Join(library, "os.py"),
		filepath.Join(library, "json", "__init__.py"), "/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random", "/tmp",
	} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		facts[path] = fmt.Sprint(info.Mode(), info.Sys().(*syscall.Stat_t).Uid, info.Sys().(*syscall.Stat_t).Nlink)
		if path != "/tmp" {
			facts[path] += fmt.Sprint(info.Size(), info.ModTime())
		}
		if path == "/tmp" {
			facts[path] = info.Mode().String()
		}
	}
	for _, name := range []string{
		"kernel/hostname", "kernel/domainname", "kernel/core_pattern", "kernel/pid_max", "kernel/threads-max", "kernel/sem", "kernel/shmall",
		"kernel/shmmax", "kernel/msgmni", "kernel/modprobe", "kernel/panic", "kernel/tainted", "kernel/random/boot_id", "fs/mqueue/queues_max",
		"fs/mqueue/msg_max", "fs/file-max", "fs/inotify/max_user_instances", "net/ipv4/tcp_mem", "net/ipv4/ip_forward", "vm/overcommit_memory",
	} {
		text, _ := os.ReadFile(filepath.Join("/proc/sys", name)) // Not every kernel has all.
		facts[name] = string(text)
	}
	facts["mounts of the host"] = strconv.Itoa(hostMounts())
	return facts
}

// hostMounts counts the mounts of the host, without those where Docker and other tests
// have theirs.
func hostMounts() int {
	text, _ := os.ReadFile("/proc/self/mountinfo") // Always there.
	count := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && !elsewhere.MatchString(fields[4]) {
			count++
		}
	}
	return count
}

var elsewhere = regexp.MustCompile(`^/(tmp|var/tmp|run|var/run|var/lib/docker|sys/fs/cgroup)/`)

// libraryDir is the directory of Python's library.
var libraryDir = sync.OnceValue(func() string {
	found, _ := filepath.Glob("/usr/lib/python3.[0-9]*/os.py") // The pattern is good.
	if len(found) == 0 {
		return "/usr/lib"
	}
	return filepath.Dir(found[len(found)-1])
})

// pagesOfTCP is what all connections of the machine have in their buffers.
func pagesOfTCP() int {
	text, _ := os.ReadFile("/proc/net/sockstat") // Always there.
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "TCP:" {
			pages, _ := strconv.Atoi(fields[len(fields)-1])
			return pages
		}
	}
	return 0
}

// groupMemory is the memory in a server's cgroups that is no cache of files on disk.
func groupMemory(groups []string) int {
	sum := 0
	for _, group := range groups {
		text, err := os.ReadFile(filepath.Join(group, "memory.stat"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) == 2 && slices.Contains([]string{"total_rss", "total_shmem", "anon", "shmem", "kernel"}, fields[0]) {
				bytes, _ := strconv.Atoi(fields[1])
				sum += bytes
			}
		}
	}
	return sum
}

func entries(dir string) int {
	found, _ := os.ReadDir(dir) // It may have ended.
	return len(found)
}

func lines(path string) int {
	text, _ := os.ReadFile(path) // It may have ended.
	return strings.Count(string(text), "\n")
}
