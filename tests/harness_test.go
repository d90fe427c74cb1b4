// Package tests drives the server as its users do: the real binary, over HTTP. It
// holds what no package can test alone, and runs it over every engine and store.
package tests

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Settings are environment variables of the server, without the FERMATA_ in front.
type settings map[string]string

// A part is a choice of an engine or a store.
type part struct {
	name     string
	settings settings
}

// Tests run over the engines and stores that there are.
var (
	engines = []part{{name: "process"}, {name: "docker", settings: dockerSettings}}[:enginesHere()]
	stores  = []part{{name: "file"}, {name: "redis", settings: settings{"REDIS_URL": commonRedis.url()}}}[:storesHere()]
)

// survivors are the tests of what outlives a server: here it matters which store it is.
var survivors = []string{
	"TestKilledAtAnyInstant", "TestKilledWhilePaused", "TestKilledWhileRunning", "TestRetries", "TestDrainKeeps",
	"TestFilesAndKilledServers",
}

// gVisor is a container with a kernel of its own. The contract's core runs over it:
// what programs, calls and continuations do.
var (
	gVisor = part{"gvisor", with(dockerSettings, settings{"DOCKER_RUNTIME": "runsc"})}
	core   = []string{
		"TestExample", "TestRounds", "TestResults", "TestToolErrors", "TestPartialResults", "TestExits", "TestTimeouts",
		"TestKilledWhilePaused", "TestKilledWhileRunning",
	}
)

// Tests of isolation, of hostile programs and of survival run with a server of an
// ordinary user, too: one without users for its sandboxes, and some with a range of them.
var (
	ordinary = []string{
		"TestPrivileges", "TestSystemCalls", "TestNetwork", "TestHostFiles", "TestEnvironmentAndMemory", "TestSharedMemory",
		"TestOtherExecutions", "TestSpecialFiles", "TestMemory", "TestForkBomb", "TestDisk", "TestSandboxesKilled", "TestKilledAtAnyInstant",
		"TestKilledWhilePaused", "TestKilledWhileRunning", "TestDrainEnds", "TestDrainKeeps", "TestInterrupted", "TestStop",
		"TestChannel", "TestDisturbance", "TestFilesAndKilledServers",
	}
	ordinaryWithRange = []string{
		"TestPrivileges", "TestHostFiles", "TestOtherExecutions", "TestForkBomb", "TestSandboxesKilled", "TestKilledAtAnyInstant",
		"TestKilledWhilePaused", "TestDrainKeeps",
	}
)

// common are the settings of every server here.
var common = settings{
	"ADDR":      "127.0.0.1:0",
	"API_KEYS":  "alice:key-a,bob:key-b",
	"SECRET":    secret,
	"PYTHON":    python(),
	"POOL_SIZE": "2",
	// Most tests are one client's; those of shares say what theirs are.
	"MAX_EXECUTIONS": "0",
}

const secret = "tests-0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// A setup is an engine and a store.
type setup struct {
	name     string
	settings settings
}

// overSetups runs test over every setup: processes with each store, and Docker, whose
// containers take their time, with the one that it is used with.
func overSetups(t *testing.T, test func(t *testing.T, s setup)) {
	t.Parallel()
	for i, e := range engines {
		for _, s := range stores {
			if i > 0 && s.name != "redis" && len(stores) > 1 && !slices.Contains(survivors, t.Name()) {
				continue
			}
			name := e.name + "+" + s.name
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, setup{name, with(with(common, e.settings), s.settings)})
			})
		}
	}
	for user, named := range map[string][]string{nobody: ordinary, nobodyWithRange: ordinaryWithRange} {
		if os.Geteuid() == 0 && slices.Contains(named, t.Name()) {
			t.Run("process as "+user, func(t *testing.T) {
				t.Parallel()
				test(t, setup{"process+file", with(common, settings{runAs: user})})
			})
		}
	}
	if slices.Contains(core, t.Name()) && hasGVisor() {
		t.Run(gVisor.name, func(t *testing.T) {
			t.Parallel()
			test(t, setup{gVisor.name, with(common, gVisor.settings)})
		})
	}
}

// with returns s with the changes.
func with(s, changes settings) settings {
	s = maps.Clone(s)
	maps.Copy(s, changes)
	return s
}

// binary is the server, built once; scratch is where it lies and where servers live.
var binary, scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait for the server most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "fermata-tests-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if len(stores) > 1 {
		if err := commonRedis.start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer commonRedis.kill()
	}
	if len(engines) > 1 {
		if err := buildPlainImage(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "--- FAIL: shared servers:", err)
		code = max(code, 1)
	}
	return code
}

func build() error {
	binary = filepath.Join(scratch, "fermata")
	args := []string{"build", "-o", binary}
	if os.Getenv("FERMATA_TEST_RACE") == "1" {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "fermata/cmd/fermata")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return nil
}

// shared are the servers that tests use together.
var shared pool

// A pool has one server for each combination of settings.
type pool struct {
	mu      sync.Mutex
	servers map[string]*server
}

// serve returns a server with the changed settings that other tests use, too.
func serve(t *testing.T, s setup, changes settings) *server {
	t.Helper()
	all := with(s.settings, changes)
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&key, "%s=%s\n", name, all[name])
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if running, ok := shared.servers[key.String()]; ok {
		return running
	}
	started, err := startServer(all)
	if err != nil {
		t.Fatal(err)
	}
	if shared.servers == nil {
		shared.servers = map[string]*server{}
	}
	shared.servers[key.String()] = started
	return started
}

// startServer returns a server that serves.
func startServer(all settings) (*server, error) {
	s, err := newServer(all)
	if err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, removeGroups(s.groups))
	}
	return s, nil
}

// serveAlone returns a server of the test's own.
func serveAlone(t *testing.T, s setup, changes settings) *server {
	t.Helper()
	started, err := startServer(with(s.settings, changes))
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, started)
	return started
}

// launchAlone is serveAlone for a server that may not be healthy yet.
func launchAlone(t *testing.T, s setup) *server {
	t.Helper()
	launched, err := newServer(s.settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := launched.launch(); err != nil {
		t.Fatal(errors.Join(err, removeGroups(launched.groups)))
	}
	stopAfter(t, launched)
	if err := launched.await(); err != nil {
		t.Fatal(err)
	}
	return launched
}

// stopAfter stops a server when the test has ended, and looks at what it leaves.
func stopAfter(t *testing.T, started *server) {
	t.Helper()
	t.Cleanup(func() {
		if err := started.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", started.log.tail())
		}
	})
}

// stop stops all servers and reports what they leave behind.
func (p *pool) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, s := range p.servers {
		wg.Go(func() {
			if err := s.stop(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%w\n%s", err, s.log.tail()))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
