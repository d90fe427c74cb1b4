package survival

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

const (
	// answerLimit is how long a server may take to answer, whatever hangs.
	answerLimit = 10 * time.Second
	// closeLimit is how long a server may take to end after its programs have ended.
	closeLimit = 16 * time.Second
)

// answersSoon launches a server and checks that it answers in time, and that it says for which
// reasons it is not ready. A server that waits too long for what hangs does so at each start, while
// a busy machine makes only some starts slow. So it fails if each of a few starts takes too long.
func answersSoon(t *testing.T, s *harness.Server, reasons ...string) {
	t.Helper()
	const starts = 3
	for n := 1; ; n++ {
		began := time.Now()
		if err := s.Launch(); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(); err != nil {
			t.Fatal(err)
		}
		if err := readyFor(health(t, s.Alice(), "/ready"), reasons); err != nil {
			t.Errorf("GET /ready: %v", err)
		}
		took := time.Since(began)
		if took <= answerLimit {
			return
		}
		t.Logf("the server answered after %v, want at most %v", took, answerLimit)
		if n == starts {
			t.Errorf("the server answered too late at each of %d starts\n%s", starts, s.Log.Tail())
			return
		}
		endBySignal(t, s, syscall.SIGTERM)
	}
}

// hole returns an address that accepts connections and never answers.
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

// swallow accepts connections and never answers.
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
	server, err := harness.NewServer(harness.With(harness.Common, harness.Quick(t), harness.Settings{"REDIS_URL": "redis://" + hole(t)}))
	if err != nil {
		t.Fatal(err)
	}
	answersSoon(t, server, "store")
	harness.StopAfter(t, server)
	isUnavailable(t, server.Alice(), harness.Program{Code: "print(1)"})
	endBySignal(t, server, syscall.SIGTERM)
	launchOnly(t, server)
}

// launchOnly launches a server and returns while it is still starting.
func launchOnly(t *testing.T, s *harness.Server) {
	t.Helper()
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	err := harness.Within(answerLimit, func() error {
		if !catches(s.Cmd.Process.Pid, syscall.SIGTERM) {
			return errors.New("the server has not begun")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// No event tells when the server has reached the thing that hangs; a second is plenty.
	time.Sleep(time.Second)
}

// TestStartsAndStopsWhileTheBucketHangs starts a server whose bucket never answers, and stops it.
// Meanwhile programs without files run, and the server says that it is not ready.
func TestStartsAndStopsWhileTheBucketHangs(t *testing.T) {
	t.Parallel()
	parameters := url.Values{"endpoint": {"http://" + hole(t)}, "region": {"us-east-1"}, "use_path_style": {"true"}, "anonymous": {"true"}}
	server, err := harness.NewServer(harness.With(harness.Common, harness.Quick(t), harness.Settings{"FILES_URL": "s3://files?" + parameters.Encode()}))
	if err != nil {
		t.Fatal(err)
	}
	answersSoon(t, server, "files")
	harness.StopAfter(t, server)
	server.Alice().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	if !strings.Contains(server.Log.All(), "there are no files until the bucket answers") {
		t.Errorf("the log does not say what is wrong:\n%s", server.Log.Tail())
	}
	endBySignal(t, server, syscall.SIGTERM)
	launchOnly(t, server)
}

// TestDockerHangsAtStart starts a server whose Docker daemon never answers: it ends and says why.
func TestDockerHangsAtStart(t *testing.T) {
	t.Parallel()
	server, err := harness.NewServer(harness.With(harness.Common, harness.Quick(t), harness.Settings{"SANDBOX": "docker"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.RemoveGroups() })
	server.DockerHost = "tcp://" + hole(t)
	for _, interrupted := range []bool{false, true} {
		began := time.Now()
		launchOnly(t, server)
		if interrupted {
			if err := server.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-server.Exited:
		case <-time.After(harness.StartTimeout):
			_ = server.Kill()
			t.Fatalf("the server runs %v without a Docker daemon", harness.StartTimeout)
		}
		if took := time.Since(began); took > answerLimit+time.Second {
			t.Errorf("the server ended after %v, want at most %v", took, answerLimit)
		}
		if text := server.Log.All(); !interrupted && !strings.Contains(text, "daemon does not answer") {
			t.Errorf("the server does not say what is wrong:\n%s", text)
		}
	}
}
