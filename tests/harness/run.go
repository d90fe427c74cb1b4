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

func TestMain(m *testing.M) { runTests(m) }

// runTests is the TestMain of every folder of tests. It runs the tests, then stops the
// servers that they shared and fails if one of them has left anything behind.
func runTests(m *testing.M) {
	flag.Parse()
	// Tests wait for the server most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "--- FAIL: shared servers:", err)
		code = max(code, 1)
	}
	commonRedis.kill()
	if dir, err := scratch(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// scratch returns the directory in which servers live. It is made for the first of them.
var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "fermata-tests-") })

// binary returns the server's program, which is built for the first server that starts.
// FERMATA_TEST_RACE=1 builds it with the race detector.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fermata")
	args := []string{"build", "-o", path}
	if os.Getenv("FERMATA_TEST_RACE") == "1" {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "fermata/cmd/fermata")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return path, nil
})

// shared are the servers that the tests of one folder use together.
var shared pool

// A pool has one server for each combination of settings.
type pool struct {
	mu      sync.Mutex
	servers map[string]*server
}

// serve returns a server with the changed settings. Other tests use it at the same time, so
// a test must neither stop it nor count what it has.
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

// startServer starts a server and returns it when it serves.
func startServer(all settings) (*server, error) {
	s, err := newServer(all)
	if err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.removeGroups())
	}
	return s, nil
}

// serveAlone returns a server of the test's own with the changed settings.
func serveAlone(t *testing.T, s setup, changes settings) *server {
	t.Helper()
	started, err := startServer(with(s.settings, changes))
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, started)
	return started
}

// launchAlone returns a server of the test's own that listens, but need not be healthy.
func launchAlone(t *testing.T, s setup) *server {
	t.Helper()
	launched, err := newServer(s.settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := launched.launch(); err != nil {
		t.Fatal(errors.Join(err, launched.removeGroups()))
	}
	stopAfter(t, launched)
	if err := launched.await(); err != nil {
		t.Fatal(err)
	}
	return launched
}

// stopAfter stops a server when the test has ended, and fails the test if the server leaves
// anything behind.
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
