package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// answerLimit is how long a server may take until it answers, whatever there is.
	answerLimit = 10 * time.Second
	// closeLimit is how long it may take to end once programs have been waited for.
	closeLimit = 16 * time.Second
)

// needFreezer skips a test where processes cannot be frozen one by one.
func needFreezer(t *testing.T) string {
	t.Helper()
	const mount = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil || os.Geteuid() != 0 {
		t.Skip("no freezer of cgroup version 1, or no root")
	}
	return mount
}

// freeze freezes processes. One of version 1 that is killed does not die until it is thawed.
func freeze(t *testing.T, frozen []process) (thaw func()) {
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
		write("cgroup.procs", strconv.Itoa(p.pid))
	}
	write("freezer.state", "FROZEN")
	thaw = sync.OnceFunc(func() {
		write("freezer.state", "THAWED")
		if err := within(clearTimeout, func() error { return syscall.Rmdir(group) }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// workers returns the processes of the server's zygote that run programs, or wait for one:
// the children of the nursery.
func (s *server) workers() (found []process) {
	family := s.family()
	children := map[int][]process{}
	for _, p := range family {
		children[p.parent] = append(children[p.parent], p)
	}
	for _, zygote := range children[s.cmd.Process.Pid] {
		for _, p := range children[zygote.pid] {
			found = append(found, children[p.pid]...)
		}
	}
	return found
}

// answersSoon launches a server and checks that it answers in time, and with this health.
func (s *server) answersSoon(t *testing.T, health int) {
	t.Helper()
	began := time.Now()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	if err := s.await(); err != nil {
		t.Fatal(err)
	}
	if a := s.alice().health(t, "/health"); a.code != health {
		t.Errorf("GET /health: got %v, want %d", a, health)
	}
	if took := time.Since(began); took > answerLimit {
		t.Errorf("the server answered after %v, want at most %v\n%s", took, answerLimit, s.log.tail())
	}
}

// stuck waits until so many of the server's sandboxes are stuck.
func (s *server) stuck(t *testing.T, want func(n float64) bool) {
	t.Helper()
	err := within(90*time.Second, func() error {
		if n := s.metrics(t)["fermata_pool_stuck"]; !want(n) {
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

// TestStuckSandboxes has a server leave sandboxes that cannot end. The next one answers all
// the same, tells, and clears them away when it can.
func TestStuckSandboxes(t *testing.T) {
	t.Parallel()
	needFreezer(t)
	server := serveAlone(t, processSetup(), with(quick(t), settings{"METRICS_ADDR": "127.0.0.1:0", "POOL_SIZE": "3", "MAX_SANDBOXES": "3"}))
	resting(server.processes)
	frozen := server.workers()
	if len(frozen) < 3 {
		t.Fatalf("there are %d workers, want 3 that wait ready", len(frozen))
	}
	thaw := freeze(t, frozen)
	if err := server.kill(); err != nil {
		t.Fatal(err)
	}
	server.answersSoon(t, http.StatusOK)
	server.stuck(t, some)
	err := within(10*time.Second, func() error {
		if text := server.log.all(); !strings.Contains(text, "sandboxes cannot be destroyed and are tried again") {
			return fmt.Errorf("the log does not tell of stuck sandboxes:\n%s", text)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// As many as the ceiling are stuck, and half of it serves.
	server.alice().post(t, program{Code: "print(1)"}).completes(t, "1\n")
	// One server after the other may find them.
	server.signalled(t, syscall.SIGTERM, closeLimit)
	server.answersSoon(t, http.StatusOK)
	server.stuck(t, some)
	thaw()
	server.stuck(t, none)
	server.alice().post(t, program{Code: "print(2)"}).completes(t, "2\n")
}

// TestStopWithAStuckSandbox stops a server whose sandboxes cannot end, while somebody keeps
// connections to its metrics.
func TestStopWithAStuckSandbox(t *testing.T) {
	t.Parallel()
	needFreezer(t)
	server := serveAlone(t, processSetup(), with(quick(t), settings{"METRICS_ADDR": "127.0.0.1:0"}))
	c := server.alice()
	c.pause(t, paused)
	addr := server.metricsAddr(t)
	half, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = half.Close() }()
	if _, err := io.WriteString(half, "GET /metrics HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	thaw := freeze(t, server.workers())
	server.signalled(t, syscall.SIGTERM, closeLimit)
	// Also while it starts.
	server.begins(t)
	server.signalled(t, syscall.SIGTERM, closeLimit)
	thaw()
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
}

// TestZygoteStops has the zygote of a server hang. Nobody waits for longer than the queue
// lasts, and another zygote takes its place.
func TestZygoteStops(t *testing.T) {
	t.Parallel()
	server := serveAlone(t, processSetup(), with(quick(t), settings{"QUEUE_TIMEOUT": "2s"}))
	c := server.alice()
	pause := c.pause(t, paused)
	resting(server.processes)
	var zygote int
	for _, p := range server.family() {
		if p.parent == server.cmd.Process.Pid {
			zygote = p.pid
		}
	}
	if err := syscall.Kill(zygote, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := 0; ; {
		asked := time.Now()
		a := c.post(t, program{Code: "print(1)"})
		if took := time.Since(asked); took > answerLimit {
			t.Errorf("a request was answered after %v, want at most %v", took, answerLimit)
		}
		if a.Status == "completed" {
			n++
		} else if a.code != http.StatusServiceUnavailable {
			t.Fatalf("got %v, want 503 until there is another zygote", a)
		}
		if n == 10 { // more than were ready
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("after %v there is no other zygote:\n%s", time.Since(began), server.log.tail())
		}
	}
	// What the old one has made lives on.
	c.post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
}

// hole is an address that takes connections and never answers.
func hole(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	swallow(t, l)
	return l.Addr().String()
}

// swallow takes connections and never answers.
func swallow(t *testing.T, l net.Listener) {
	t.Helper()
	var mu sync.Mutex
	var held []net.Conn
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range held {
			_ = c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			held = append(held, c)
			mu.Unlock()
		}
	}()
}

// TestStartsAndStopsWhileRedisHangs starts a server whose Redis never answers, and stops it.
func TestStartsAndStopsWhileRedisHangs(t *testing.T) {
	t.Parallel()
	server, err := newServer(with(with(common, quick(t)), settings{"REDIS_URL": "redis://" + hole(t)}))
	if err != nil {
		t.Fatal(err)
	}
	server.answersSoon(t, http.StatusServiceUnavailable)
	stopAfter(t, server)
	server.alice().unavailable(t, program{Code: "print(1)"})
	server.signalled(t, syscall.SIGTERM, closeLimit)
	server.begins(t)
}

// begins launches a server and returns while it starts.
func (s *server) begins(t *testing.T) {
	t.Helper()
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	err := within(answerLimit, func() error {
		if !catches(s.cmd.Process.Pid, syscall.SIGTERM) {
			return errors.New("the server has not begun")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// It comes to what hangs in no time; no event tells.
	time.Sleep(time.Second)
}

// TestStartsAndStopsWhileTheBucketHangs starts a server whose bucket does not answer, and
// stops it: programs without files run meanwhile, and health tells.
func TestStartsAndStopsWhileTheBucketHangs(t *testing.T) {
	t.Parallel()
	parameters := url.Values{"endpoint": {"http://" + hole(t)}, "region": {"us-east-1"}, "use_path_style": {"true"}, "anonymous": {"true"}}
	server, err := newServer(with(with(common, quick(t)), settings{"FILES_URL": "s3://files?" + parameters.Encode()}))
	if err != nil {
		t.Fatal(err)
	}
	server.answersSoon(t, http.StatusServiceUnavailable)
	stopAfter(t, server)
	server.alice().post(t, program{Code: "print(1)"}).completes(t, "1\n")
	if !strings.Contains(server.log.all(), "there are no files until the bucket answers") {
		t.Errorf("the log does not say what is wrong:\n%s", server.log.tail())
	}
	server.signalled(t, syscall.SIGTERM, closeLimit)
	server.begins(t)
}

// TestDockerHangsAtStart starts a server whose Docker daemon never answers: it ends, with a
// word that tells.
func TestDockerHangsAtStart(t *testing.T) {
	t.Parallel()
	server, err := newServer(with(with(common, quick(t)), settings{"SANDBOX": "docker"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.removeGroups() })
	server.dockerHost = "tcp://" + hole(t)
	for _, interrupted := range []bool{false, true} {
		began := time.Now()
		server.begins(t)
		if interrupted {
			if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-server.exited:
		case <-time.After(startTimeout):
			_ = server.kill()
			t.Fatalf("the server runs %v without a Docker daemon", startTimeout)
		}
		if took := time.Since(began); took > answerLimit+time.Second {
			t.Errorf("the server ended after %v, want at most %v", took, answerLimit)
		}
		if text := server.log.all(); !interrupted && !strings.Contains(text, "daemon does not answer") {
			t.Errorf("the server does not say what is wrong:\n%s", text)
		}
	}
}

// A dockerProxy stands between a server and its Docker daemon, and can hold removals back.
type dockerProxy struct {
	host string
	hold chan struct{} // closed when removals may pass
}

func proxyDocker(t *testing.T) *dockerProxy {
	t.Helper()
	needDocker(t)
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

// pass carries a connection. Every removal has a connection of its own: it waits in front.
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
		// A request of this client comes with one write.
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

// TestDockerRefusesRemovals has a daemon hold back every removal. The next server answers
// all the same, tells, and clears up when the daemon does what it is told.
func TestDockerRefusesRemovals(t *testing.T) {
	t.Parallel()
	proxy := proxyDocker(t)
	server, err := newServer(with(with(common, dockerSettings), settings{"METRICS_ADDR": "127.0.0.1:0", "ADDR": freeAddr(t), "POOL_SIZE": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	server.dockerHost = proxy.host
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { close(proxy.hold) })
	stopAfter(t, server)
	t.Cleanup(release)
	if err := server.kill(); err != nil {
		t.Fatal(err)
	}
	left, err := server.containers(context.Background())
	if err := errors.Join(err, atMost("containers missing", 1-len(left), 0)); err != nil {
		t.Fatal(err)
	}
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	server.stuck(t, some)
	server.alice().post(t, program{Code: "print(1)"}).completes(t, "1\n")
	release()
	server.stuck(t, none)
}
