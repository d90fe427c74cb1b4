package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// startTimeout is how long a server may take until it serves: Python imports the libraries.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long a server may take to end.
	stopTimeout = 30 * time.Second
	// key is the API key of the servers started here.
	key = "bench-key"
)

// settings are environment variables of the server, without the prefix FERMATA_.
type settings map[string]string

// String implements flag.Value.
func (s settings) String() string { return fmt.Sprint(map[string]string(s)) }

// Set implements flag.Value.
func (s settings) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || strings.HasPrefix(name, "FERMATA_") {
		return fmt.Errorf("got %q, want NAME=VALUE without FERMATA_ in front", text)
	}
	s[name] = value
	return nil
}

// A launch is how the servers of a side are started. Settings in set override those in common.
type launch struct {
	build
	dir         string
	common, set settings
}

// start starts a server that keeps no pool, or one with a pool that no measurement empties.
func (l launch) start(ctx context.Context, empty bool) (*server, error) {
	return startServer(ctx, l.binary, l.dir, l.settings(empty))
}

// settings returns the settings of one of the two servers. POOL_SIZE is the size of all pools
// together, also of a server that has no kinds of sandboxes; without a pool, the sizes by
// kind that the user may have set do not apply.
func (l launch) settings(empty bool) settings {
	all := settings{"POOL_SIZE": "8"}
	maps.Copy(all, l.common)
	maps.Copy(all, l.set)
	if empty {
		all["POOL_SIZE"] = "0"
		delete(all, "POOL_PLAIN")
		delete(all, "POOL_SCIENTIFIC")
	}
	return all
}

// A server is a server started here.
type server struct {
	url, metrics string
	// watch is a client that reads the metrics.
	watch  *client
	cmd    *exec.Cmd
	log    serverLog
	exited chan struct{}
}

// startServer starts a server, with a state directory below dir, and waits until it serves.
func startServer(ctx context.Context, binary, dir string, s settings) (*server, error) {
	state, err := os.MkdirTemp(dir, "state-")
	if err != nil {
		return nil, err
	}
	// The command has no context: stop ends the server, also after a signal has ended ctx.
	cmd := exec.Command(binary, "serve")
	cmd.Env = append(os.Environ(), "FERMATA_ADDR=127.0.0.1:0", "FERMATA_METRICS_ADDR=127.0.0.1:0", "FERMATA_API_KEYS=bench:"+key, "FERMATA_STATE_DIR="+state)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		cmd.Env = append(cmd.Env, "FERMATA_"+name+"="+s[name])
	}
	// Ctrl-C in a terminal must reach only this process, which then stops the server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(state, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	srv := &server{cmd: cmd, log: serverLog(log.Name()), exited: make(chan struct{})}
	go func() {
		defer close(srv.exited)
		_ = cmd.Wait() // ProcessState tells how the server ended.
	}()
	if err := srv.await(ctx); err != nil {
		return nil, errors.Join(err, srv.stop())
	}
	return srv, nil
}

// await waits until the server listens.
func (s *server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the server does not serve after %v", startTimeout))
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		address, err := s.log.address()
		if err != nil {
			return err
		}
		if address != "" {
			s.url = "http://" + address
			return s.watchMetrics()
		}
		select {
		case <-look.C:
		case <-s.exited:
			return fmt.Errorf("the server ended at start: %v\n%s", s.cmd.ProcessState, s.log)
		case <-ctx.Done():
			return fmt.Errorf("%w\n%s", context.Cause(ctx), s.log)
		}
	}
}

// subject returns the server as a subject of measurements.
func (s *server) subject(n int, rest func(context.Context) error) subject {
	return subject{
		client: newClient(s.url, key), n: n, rest: rest, log: s.log,
		processor: func() (time.Duration, error) { return processorTime(s.cmd.Process.Pid) },
	}
}

// stop ends the server.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the server has ended before its time: %v\n%s", s.cmd.ProcessState, s.log)
	}
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		err := s.cmd.Process.Kill()
		<-s.exited
		return errors.Join(fmt.Errorf("the server runs %v after SIGTERM\n%s", stopTimeout, s.log), err)
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("the server ended badly: %v\n%s", s.cmd.ProcessState, s.log)
	}
	return nil
}

// A serverLog is the path of a server's log. It is a file, since this process would have to
// read from a pipe while it measures.
type serverLog string

// keptLog is how many bytes of the log the message of a failure shows.
const keptLog = 4000

var servingLine = regexp.MustCompile(`(?m)^.*msg"?[=:]"?serving\b.*?(\d+\.\d+\.\d+\.\d+:\d+).*\n`)

// address returns the address on which the server listens, or nothing if it is not yet in the log.
func (l serverLog) address() (string, error) { return l.find(servingLine) }

// find returns the first group of the expression where it matches the log, or nothing.
func (l serverLog) find(line *regexp.Regexp) (string, error) {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return "", err
	}
	if m := line.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	return "", nil
}

// String returns the end of the log.
func (l serverLog) String() string {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-keptLog):]))
}
