// Package harness starts servers as their users do: the real binary, over HTTP, with every
// sandbox, store and user that the machine has. It also has a client of the wire contract, and
// checks that a server leaves nothing behind when it ends. The tests are in the folders beside
// this one.
package harness

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

// Main is the TestMain of every folder of tests. It runs the tests, then stops the
// servers that they shared and fails if one of them has left anything behind. It fails, too, if an
// answer in JSON was not as the reference says.
func Main(m *testing.M) {
	flag.Parse()
	// Tests wait for the server most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	python, err := BarePython()
	if err != nil {
		panic(err)
	}
	Common["PYTHON"] = python
	compared := compareAnswers()
	code := m.Run()
	if err := compared.mistakes(); err != nil {
		fmt.Fprintln(os.Stderr, "--- FAIL: answers that are not as the reference says:", err)
		code = max(code, 1)
	}
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "--- FAIL: shared servers:", err)
		code = max(code, 1)
	}
	commonRedis.Kill()
	if dir, err := Scratch(); err == nil {
		_ = os.RemoveAll(dir)
	}
	if barePythonDir != "" {
		_ = os.RemoveAll(barePythonDir)
	}
	os.Exit(code)
}

// Count returns how often a test repeats something: as usual, or more often in a soak.
func Count(usually, soaking int) int {
	if os.Getenv("FERMATA_SOAK") == "1" {
		return soaking
	}
	return usually
}

// Scratch returns the directory in which servers live. It is made for the first of them.
var Scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "fermata-tests-") })

// binary returns the server's program, which is built for the first server that starts.
// FERMATA_TEST_RACE=1 builds it with the race detector.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := Scratch()
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	// "go install" does not link again what another folder of tests has built.
	built := filepath.Join(strings.TrimSpace(string(root)), "bin", "tests")
	args := []string{"install"}
	if os.Getenv("FERMATA_TEST_RACE") == "1" {
		built += "-race"
		args = append(args, "-race")
	}
	install := exec.Command("go", append(args, "fermata/cmd/fermata")...)
	install.Env = append(os.Environ(), "GOBIN="+built)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	// Tests with other users cannot look into every folder of the module.
	content, err := os.ReadFile(filepath.Join(built, "fermata"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fermata")
	return path, os.WriteFile(path, content, 0o755)
})

// shared are the servers that the tests of one folder use together.
var shared pool

// A pool has one server for each combination of settings.
type pool struct {
	mu      sync.Mutex
	servers map[string]*sharedServer
}

// A sharedServer is started by the first test that needs it. The lock lets other tests wait for
// that, while servers with other settings start.
type sharedServer struct {
	mu     sync.Mutex
	server *Server
}

// Serve returns a server with the changed settings. Other tests use it at the same time, so
// a test must neither stop it nor count what it has.
func Serve(t *testing.T, s Setup, changes Settings) *Server {
	t.Helper()
	all := With(s.Settings, changes)
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&key, "%s=%s\n", name, all[name])
	}
	one := shared.get(key.String())
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.server == nil {
		started, err := StartServer(all)
		if err != nil {
			t.Fatal(err)
		}
		one.server = started
	}
	return one.server
}

// get returns the server of a key, which may not have been started.
func (p *pool) get(key string) *sharedServer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers == nil {
		p.servers = map[string]*sharedServer{}
	}
	if p.servers[key] == nil {
		p.servers[key] = &sharedServer{}
	}
	return p.servers[key]
}

// StartServer starts a server and returns it when it serves.
func StartServer(all Settings) (*Server, error) {
	s, err := NewServer(all)
	if err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.RemoveGroups())
	}
	return s, nil
}

// ServeAlone returns a server of the test's own with the changed settings.
func ServeAlone(t *testing.T, s Setup, changes Settings) *Server {
	t.Helper()
	started, err := StartServer(With(s.Settings, changes))
	if err != nil {
		t.Fatal(err)
	}
	StopAfter(t, started)
	return started
}

// LaunchAlone returns a server of the test's own that listens, but need not be healthy.
func LaunchAlone(t *testing.T, s Setup) *Server {
	t.Helper()
	launched, err := NewServer(s.Settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := launched.Launch(); err != nil {
		t.Fatal(errors.Join(err, launched.RemoveGroups()))
	}
	StopAfter(t, launched)
	if err := launched.Await(); err != nil {
		t.Fatal(err)
	}
	return launched
}

// StopAfter stops a server when the test has ended, and fails the test if the server leaves
// anything behind.
func StopAfter(t *testing.T, started *Server) {
	t.Helper()
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", started.Log.Tail())
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
	for _, one := range p.servers {
		if one.server == nil {
			continue // It did not start, and the test has failed.
		}
		wg.Go(func() {
			if err := one.server.Stop(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%w\n%s", err, one.server.Log.Tail()))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
