package survival

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// needFreezer skips a test if the machine cannot freeze single processes.
func needFreezer(t *testing.T) string {
	t.Helper()
	const mount = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil || os.Geteuid() != 0 {
		t.Skip("no freezer of cgroup version 1, or no root")
	}
	return mount
}

// freeze freezes processes with a cgroup of version 1: if they are killed, they do not die until
// they are thawed.
func freeze(t *testing.T, frozen []harness.Process) (thaw func()) {
	t.Helper()
	group := filepath.Join(needFreezer(t), "fermata-tests-"+strconv.Itoa(os.Getpid())+"-"+t.Name())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			t.Error(err)
		}
	}
	for _, p := range frozen {
		write("cgroup.procs", strconv.Itoa(p.PID))
	}
	write("freezer.state", "FROZEN")
	thaw = sync.OnceFunc(func() {
		write("freezer.state", "THAWED")
		if err := harness.Within(harness.ClearTimeout, func() error { return syscall.Rmdir(group) }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// workersOf returns the processes that run programs or wait for one. They are the children of the
// nursery, which is a child of the zygote, which is a child of the server.
func workersOf(s *harness.Server) (found []harness.Process) {
	family := s.Family()
	children := map[int][]harness.Process{}
	for _, p := range family {
		children[p.Parent] = append(children[p.Parent], p)
	}
	for _, zygote := range children[s.Cmd.Process.Pid] {
		for _, p := range children[zygote.PID] {
			found = append(found, children[p.PID]...)
		}
	}
	return found
}

// awaitStuck waits until the number of the server's stuck sandboxes is as wanted.
func awaitStuck(t *testing.T, s *harness.Server, want func(n float64) bool) {
	t.Helper()
	err := harness.Within(90*time.Second, func() error {
		if n := s.Metrics(t)["fermata_pool_stuck"]; !want(n) {
			return fmt.Errorf("fermata_pool_stuck = %v", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func some(n float64) bool { return n > 0 }

func none(n float64) bool { return n == 0 }

// TestStuckSandboxes kills a server whose sandboxes cannot end. The next server serves all the
// same, reports the stuck sandboxes, and removes them as soon as it can.
func TestStuckSandboxes(t *testing.T) {
	t.Parallel()
	needFreezer(t)
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"METRICS_ADDR": "127.0.0.1:0", "POOL_SIZE": "3", "MAX_SANDBOXES": "3"}))
	harness.Resting(server.Processes)
	frozen := workersOf(server)
	if len(frozen) < 3 {
		t.Fatalf("there are %d workers, want 3 that wait ready", len(frozen))
	}
	thaw := freeze(t, frozen)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	answersSoon(t, server)
	awaitStuck(t, server, some)
	err := harness.Within(10*time.Second, func() error {
		if text := server.Log.All(); !strings.Contains(text, "sandboxes cannot be destroyed and are tried again") {
			return fmt.Errorf("the log does not tell of stuck sandboxes:\n%s", text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// As many sandboxes are stuck as there may be in all, yet half of that number still serves.
	server.Alice().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	// The server after that finds them, too.
	endBySignal(t, server, syscall.SIGTERM)
	answersSoon(t, server)
	awaitStuck(t, server, some)
	thaw()
	awaitStuck(t, server, none)
	server.Alice().Post(t, harness.Program{Code: "print(2)"}).Completes(t, "2\n")
}

// TestStopWithAStuckSandbox stops a server whose sandboxes cannot end, while somebody keeps a
// connection to its metrics open.
func TestStopWithAStuckSandbox(t *testing.T) {
	t.Parallel()
	needFreezer(t)
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"METRICS_ADDR": "127.0.0.1:0"}))
	c := server.Alice()
	c.Pause(t, harness.AskOnce)
	addr := server.MetricsAddr(t)
	half, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = half.Close() }()
	if _, err := io.WriteString(half, "GET /metrics HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, workersOf(server))
	endBySignal(t, server, syscall.SIGTERM)
	// It must also stop while it is still starting.
	launchOnly(t, server)
	endBySignal(t, server, syscall.SIGTERM)
	thaw()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestZygoteStops suspends the zygote of a server. No request waits for longer than the queue
// allows, and another zygote takes the place of the suspended one.
func TestZygoteStops(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{"QUEUE_TIMEOUT": "2s"}))
	c := server.Alice()
	pause := c.Pause(t, harness.AskOnce)
	harness.Resting(server.Processes)
	var zygote int
	for _, p := range server.Family() {
		if p.Parent == server.Cmd.Process.Pid {
			zygote = p.PID
		}
	}
	if err := syscall.Kill(zygote, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := 0; ; {
		asked := time.Now()
		a := c.Post(t, harness.Program{Code: "print(1)"})
		if took := time.Since(asked); took > answerLimit {
			t.Errorf("a request was answered after %v, want at most %v", took, answerLimit)
		}
		if a.Status == "completed" {
			n++
		} else if a.HTTPStatus != http.StatusServiceUnavailable {
			t.Fatalf("got %v, want 503 until there is another zygote", a)
		}
		if n == 10 { // more than were idle in the pool
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("after %v there is no other zygote:\n%s", time.Since(began), server.Log.Tail())
		}
	}
	// The sandboxes of the old zygote live on.
	c.Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
}

// A dockerProxy stands between a server and its Docker daemon and holds back the removal of
// containers.
type dockerProxy struct {
	host string
	hold chan struct{} // closed to let removals pass
}

// proxyDocker starts a proxy in front of the Docker daemon of the tests.
func proxyDocker(t *testing.T) *dockerProxy {
	t.Helper()
	harness.NeedDocker(t)
	daemon := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if daemon == "" {
		daemon = "/var/run/docker.sock"
	}
	dir, err := os.MkdirTemp("", "proxy") //nolint:usetesting // the path would be too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &dockerProxy{host: "unix://" + l.Addr().String(), hold: make(chan struct{})}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c, daemon)
		}
	}()
	return p
}

// pass relays one connection. Docker's client makes a new connection for each removal, so to hold
// one back delays nothing else.
func (p *dockerProxy) pass(client net.Conn, daemon string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", daemon)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	for r := bufio.NewReader(client); ; {
		head, err := r.Peek(7)
		if string(head) == "DELETE " {
			<-p.hold
		}
		if err != nil && len(head) == 0 {
			return
		}
		// This client writes each request at once.
		if _, err := r.Peek(1); err != nil {
			return
		}
		buffered, _ := r.Peek(r.Buffered())
		if _, err := server.Write(buffered); err != nil {
			return
		}
		if _, err := r.Discard(len(buffered)); err != nil {
			return
		}
	}
}

// TestDockerRefusesRemovals kills a server and holds back every removal of a container. The next
// server serves all the same, reports the stuck sandboxes, and removes them when it can.
func TestDockerRefusesRemovals(t *testing.T) {
	t.Parallel()
	proxy := proxyDocker(t)
	server, err := harness.NewServer(harness.With(harness.Common, harness.DockerSettings, harness.Settings{"METRICS_ADDR": "127.0.0.1:0", "ADDR": harness.FreeAddr(t), "POOL_SIZE": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	server.DockerHost = proxy.host
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(proxy.hold) })
	harness.StopAfter(t, server)
	t.Cleanup(release)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	left, err := server.Containers(context.Background())
	if err := errors.Join(err, harness.AtMost("containers missing", 1-len(left), 0)); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStuck(t, server, some)
	server.Alice().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	release()
	awaitStuck(t, server, none)
}
