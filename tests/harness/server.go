package harness

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
	// StartTimeout is how long a server may take until it serves: Python imports the libraries.
	StartTimeout = 60 * time.Second
	// StopTimeout is how long a server may take to end when no request is in flight.
	StopTimeout = 20 * time.Second
	// ClearTimeout is how long its processes and containers may take to vanish after it: a busy
	// Docker daemon removes one container after the other.
	ClearTimeout = 20 * time.Second
	// restTime is how long the processes of a server that is at rest do not change. A busy machine
	// takes a while to make a sandbox.
	restTime = 2 * time.Second
)

// A Server is a server of the tests. It may run, or have ended; then it can be started again on
// the state that it left.
type Server struct {
	Settings Settings
	Dir      string
	Groups   []string // the cgroups that it runs in
	Log      *Log
	URL      string
	// Attributes are those of its process; they may be nil. Become is a command that runs the
	// server's own, as another user for instance. RunsAs is that user.
	Attributes *syscall.SysProcAttr
	Become     []string
	RunsAs     string
	// Command is the subcommand of fermata, "serve" if empty.
	Command string
	// DockerHost is its Docker daemon; if empty, it is that of the tests.
	DockerHost string

	Cmd    *exec.Cmd
	Exited chan struct{}
	// killed says that the server was killed. Heirs are the processes that it then left.
	killed bool
	Heirs  []Process
}

// NewServer returns a server with a directory and cgroups of its own, which does not run yet.
func NewServer(all Settings) (*Server, error) {
	parent, err := Scratch()
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
	if strings.HasPrefix(all["FILES_URL"], "s3://") {
		if err := giveBucketKeys(dir); err != nil {
			return nil, err
		}
	}
	s := &Server{Settings: With(all, Settings{"STATE_DIR": filepath.Join(dir, "state")}), Dir: dir}
	if s.Settings["REDIS_URL"] == commonRedis.URL() {
		if err := startCommonRedis(); err != nil {
			return nil, err
		}
		s.Settings["REDIS_URL"] = commonRedis.database()
	}
	if s.Settings["DOCKER_IMAGE"] == BareImage {
		if err := BuildBareImage(); err != nil {
			return nil, err
		}
	}
	s.Groups = makeGroups(filepath.Base(dir))
	if user, ok := s.Settings[RunAs]; ok {
		delete(s.Settings, RunAs)
		s.RunsAs = user
		if err := s.as(user); err != nil {
			return nil, errors.Join(err, s.RemoveGroups())
		}
	}
	return s, nil
}

// Start starts the server and checks that it is ready.
func (s *Server) Start() error {
	if err := s.Launch(); err != nil {
		return err
	}
	if err := s.Await(); err != nil {
		return err
	}
	a, err := http.Get(s.URL + "/ready")
	if err != nil {
		return errors.Join(err, s.Kill())
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("GET /ready: %v", a.Status), err, s.Kill())
	}
	return nil
}

// Binary returns the path of the command fermata.
func Binary() (string, error) { return binary() }

// Launch starts the server and returns at once.
func (s *Server) Launch() error {
	program, err := binary()
	if err != nil {
		return err
	}
	s.Log = &Log{serving: make(chan string, 1)}
	// The shell moves itself into the cgroups and then becomes the server. With cgroup version 2 a
	// group in which a server has already run takes no processes; the group below it, which that
	// server had moved to, does.
	join := `for group in $GROUPS_TO_JOIN; do
	echo $$ >"$group/cgroup.procs" || echo $$ >"$group/fermata-server/cgroup.procs" || exit 1
done 2>/dev/null
unset GROUPS_TO_JOIN
exec "$@"`
	command := slices.Concat([]string{"-c", join, "sh"}, s.Become, []string{program, cmp.Or(s.Command, "serve")})
	s.Cmd = exec.Command("/bin/sh", command...)
	s.Cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + filepath.Join(s.Dir, "tmp"), "DOCKER_HOST=" + cmp.Or(s.DockerHost, os.Getenv("DOCKER_HOST"))}
	s.Cmd.Env = append(s.Cmd.Env, "GROUPS_TO_JOIN="+strings.Join(s.Groups, " "))
	for name, value := range s.Settings {
		s.Cmd.Env = append(s.Cmd.Env, "FERMATA_"+name+"="+value)
	}
	s.Cmd.SysProcAttr = s.Attributes
	s.Cmd.Stdout, s.Cmd.Stderr = s.Log, s.Log
	// A zygote that outlives the server may keep these pipes open.
	s.Cmd.WaitDelay = time.Second
	if err := s.Cmd.Start(); err != nil {
		return err
	}
	s.Exited = make(chan struct{})
	go func() {
		defer close(s.Exited)
		_ = s.Cmd.Wait() // ProcessState tells how it ended.
	}()
	return nil
}

// Await waits until the server listens.
func (s *Server) Await() error {
	select {
	case addr := <-s.Log.serving:
		s.URL = "http://" + addr
	case <-s.Exited:
		return fmt.Errorf("the server ended at start: %v\n%s", s.Cmd.ProcessState, s.Log.Tail())
	case <-time.After(StartTimeout):
		return errors.Join(fmt.Errorf("the server does not serve after %v\n%s", StartTimeout, s.Log.Tail()), s.Kill())
	}
	return nil
}

// Kill ends the server as a crash would. Its sandboxes and its state stay.
func (s *Server) Kill() error {
	s.killed = true
	heirs := Descendants(append([]Process{{PID: s.Cmd.Process.Pid}}, s.Heirs...))[1:]
	err := s.Cmd.Process.Signal(syscall.SIGKILL)
	<-s.Exited
	// Asking Docker comes last: it may take longer than the program runs during which the test
	// wants to kill the server.
	s.Heirs = slices.Concat(heirs, Descendants(s.contained()))
	return err
}

// Family returns the server's process and all processes below it, including those in containers
// and those that the server left when it was killed before.
func (s *Server) Family() []Process {
	return Descendants(slices.Concat([]Process{{PID: s.Cmd.Process.Pid}}, s.Heirs, s.contained()))
}

// Resting waits until the number of processes has not changed for restTime, and returns it: a
// server fills its pool while it has nothing else to do.
func Resting(processes func() int) int {
	last, since := processes(), time.Now()
	for time.Since(since) < restTime {
		time.Sleep(restTime / 4)
		if n := processes(); n != last {
			last, since = n, time.Now()
		}
	}
	return last
}

// Processes returns the number of processes of the server's family.
func (s *Server) Processes() int { return len(s.Family()) }

// Stop ends the server as an operator would. It returns an error if the server leaves anything
// behind.
func (s *Server) Stop() error {
	family := s.Family()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the server, which has ended already (%v): %w", s.Cmd.ProcessState, err)
	}
	select {
	case <-s.Exited:
	case <-time.After(StopTimeout):
		return errors.Join(fmt.Errorf("the server runs %v after SIGTERM", StopTimeout), s.Kill())
	}
	var errs []error
	if code := s.Cmd.ProcessState.ExitCode(); code != 0 {
		errs = append(errs, fmt.Errorf("the server ended with code %d after SIGTERM, want 0", code))
	}
	return errors.Join(append(errs, s.Cleared(family), s.RemoveGroups())...)
}

// Within calls check until it returns nil, and returns its last error if it does not do so within
// limit.
func Within(limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// A Log keeps what a server logs, and finds the address on which it serves.
type Log struct {
	serving chan string

	mu    sync.Mutex
	text  bytes.Buffer
	found bool
}

// servingLine matches the line of the log that tells the address.
var servingLine = regexp.MustCompile(`(?m)^.*msg"?[=:]"?serving\b.*?(\d+\.\d+\.\d+\.\d+:\d+).*$`)

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
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

// All returns the whole log.
func (l *Log) All() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Tail returns the end of the log.
func (l *Log) Tail() string {
	text := l.All()
	return text[max(0, len(text)-4000):]
}
