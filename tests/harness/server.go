package tests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout is how long a server may take to serve: it imports the libraries.
	startTimeout = 60 * time.Second
	// stopTimeout is how long it may take to end with nothing in flight.
	stopTimeout = 20 * time.Second
	// clearTimeout is how long what it had may take to go after it: a busy Docker
	// daemon removes one container after the other.
	clearTimeout = 20 * time.Second
)

// A server is a running server, or one that was killed and may be started again on
// the state that it left.
type server struct {
	settings settings
	dir      string
	groups   []string // cgroups that it runs in
	log      *serverLog
	url      string
	// attributes are those of its process, if it needs special ones, and become is the
	// command in front of its own that makes it another user, if it is to be one.
	attributes *syscall.SysProcAttr
	become     []string
	runsAs     string
	// command is the server's command, if it is not to serve.
	command string
	// dockerHost names its Docker daemon, if it is not that of the tests.
	dockerHost string

	cmd    *exec.Cmd
	exited chan struct{}
	// killed says that it was, heirs are the processes that it left then.
	killed bool
	heirs  []process
}

// newServer returns a server that does not run yet.
func newServer(all settings) (*server, error) {
	parent, err := scratch()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "server-")
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"state", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	s := &server{settings: with(all, settings{"STATE_DIR": filepath.Join(dir, "state")}), dir: dir}
	if s.settings["REDIS_URL"] == commonRedis.url() {
		if err := startCommonRedis(); err != nil {
			return nil, err
		}
		s.settings["REDIS_URL"] = commonRedis.database()
	}
	if s.settings["DOCKER_IMAGE"] == plainImage {
		if err := buildPlainImage(); err != nil {
			return nil, err
		}
	}
	s.groups = makeGroups(filepath.Base(dir))
	if user, ok := s.settings[runAs]; ok {
		delete(s.settings, runAs)
		s.runsAs = user
		if err := s.as(user); err != nil {
			return nil, errors.Join(err, s.removeGroups())
		}
	}
	return s, nil
}

// start starts the server and waits until it serves.
func (s *server) start() error {
	if err := s.launch(); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		return err
	}
	a, err := http.Get(s.url + "/health")
	if err != nil {
		return errors.Join(err, s.kill())
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("GET /health: %v", a.Status), err, s.kill())
	}
	return nil
}

// launch starts the server.
func (s *server) launch() error {
	program, err := binary()
	if err != nil {
		return err
	}
	s.log = &serverLog{serving: make(chan string, 1)}
	// The shell moves itself into the cgroups and then becomes the server. In version 2
	// it cannot go where a server has been, only where that has moved to.
	join := `for group in $GROUPS_TO_JOIN; do
	echo $$ >"$group/cgroup.procs" || echo $$ >"$group/fermata-server/cgroup.procs" || exit 1
done 2>/dev/null
unset GROUPS_TO_JOIN
exec "$@"`
	command := slices.Concat([]string{"-c", join, "sh"}, s.become, []string{program, cmp.Or(s.command, "serve")})
	s.cmd = exec.Command("/bin/sh", command...)
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + filepath.Join(s.dir, "tmp"), "DOCKER_HOST=" + cmp.Or(s.dockerHost, os.Getenv("DOCKER_HOST"))}
	s.cmd.Env = append(s.cmd.Env, "GROUPS_TO_JOIN="+strings.Join(s.groups, " "))
	for name, value := range s.settings {
		s.cmd.Env = append(s.cmd.Env, "FERMATA_"+name+"="+value)
	}
	s.cmd.SysProcAttr = s.attributes
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// A zygote that outlives the server may keep the ends of these pipes open.
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait() // The state tells.
	}()
	return nil
}

// await waits until the server serves.
func (s *server) await() error {
	select {
	case addr := <-s.log.serving:
		s.url = "http://" + addr
	case <-s.exited:
		return fmt.Errorf("the server ended at start: %v\n%s", s.cmd.ProcessState, s.log.tail())
	case <-time.After(startTimeout):
		return errors.Join(fmt.Errorf("the server does not serve after %v\n%s", startTimeout, s.log.tail()), s.kill())
	}
	return nil
}

// kill ends the server as a crash would. What it was in charge of stays.
func (s *server) kill() error {
	s.killed = true
	heirs := descendants(append([]process{{pid: s.cmd.Process.Pid}}, s.heirs...))[1:]
	err := s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.exited
	// To ask a Docker daemon may take longer than what is to be killed runs.
	s.heirs = slices.Concat(heirs, descendants(s.contained()))
	return err
}

// family returns the server's process and all processes below it, those that a
// killed one has left and those in containers included.
func (s *server) family() []process {
	return descendants(slices.Concat([]process{{pid: s.cmd.Process.Pid}}, s.heirs, s.contained()))
}

// resting waits until the number of processes does not change any more, and returns it: a
// server fills its pool, and prepares one more sandbox, while it has nothing else to do.
func resting(processes func() int) int {
	last := -1
	for n := processes(); n != last; n = processes() {
		last = n
		time.Sleep(500 * time.Millisecond)
	}
	return last
}

// processes counts the server's family.
func (s *server) processes() int { return len(s.family()) }

// stop ends the server as an operator would and tells what it has left behind.
func (s *server) stop() error {
	family := s.family()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server, which has ended already (%v): %w", s.cmd.ProcessState, err)
	}
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("the server runs %v after SIGTERM", stopTimeout), s.kill())
	}
	var errs []error
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		errs = append(errs, fmt.Errorf("the server ended with code %d after SIGTERM, want 0", code))
	}
	return errors.Join(append(errs, s.cleared(family), s.removeGroups())...)
}

// within returns nil as soon as check does, or its last error after limit.
func within(limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// A serverLog is what a server logs. It looks out for the address.
type serverLog struct {
	serving chan string

	mu    sync.Mutex
	text  bytes.Buffer
	found bool
}

var servingLine = regexp.MustCompile(`(?m)^.*msg"?[=:]"?serving\b.*?(\d+\.\d+\.\d+\.\d+:\d+).*$`)

// Write takes the next bytes of the log.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.found {
		return len(p), nil
	}
	if m := servingLine.FindSubmatch(l.text.Bytes()); m != nil {
		l.found = true
		l.serving <- string(m[1])
	}
	return len(p), nil
}

// all returns the whole log.
func (l *serverLog) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// tail returns the end of the log.
func (l *serverLog) tail() string {
	text := l.all()
	return text[max(0, len(text)-4000):]
}
