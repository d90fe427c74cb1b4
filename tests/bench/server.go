package main

import (
	"bytes"
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
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout is how long a server may take to serve: it imports the libraries.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long it may take to end.
	stopTimeout = 30 * time.Second
	// key is the API key of the servers started here.
	key = "bench-key"
)

// settings are environment variables of the server, without the FERMATA_ in front.
type settings map[string]string

// build compiles the server and returns its path.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "fermata")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "fermata/cmd/fermata").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return binary, nil
}

// A server is a server started here.
type server struct {
	url    string
	cmd    *exec.Cmd
	log    *serverLog
	exited chan struct{}
}

// startServer starts a server and waits until it serves. What it keeps goes below dir.
func startServer(ctx context.Context, binary, dir string, s settings) (*server, error) {
	state, err := os.MkdirTemp(dir, "state-")
	if err != nil {
		return nil, err
	}
	// Ended by stop alone, in order; a signal to this process cancels ctx.
	cmd := exec.Command(binary, "serve")
	cmd.Env = append(os.Environ(), "FERMATA_ADDR=127.0.0.1:0", "FERMATA_API_KEYS=bench:"+key, "FERMATA_STATE_DIR="+state)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		cmd.Env = append(cmd.Env, "FERMATA_"+name+"="+s[name])
	}
	// Ctrl-C of a terminal is for this process, which then stops the server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := &serverLog{serving: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	srv := &server{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		defer close(srv.exited)
		_ = cmd.Wait() // The state tells.
	}()
	select {
	case addr := <-log.serving:
		srv.url = "http://" + addr
		return srv, nil
	case <-srv.exited:
		return nil, fmt.Errorf("the server ended at start: %v\n%s", cmd.ProcessState, log)
	case <-time.After(startTimeout):
		err = fmt.Errorf("the server does not serve after %v\n%s", startTimeout, log)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, srv.stop())
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

// A serverLog keeps the end of what a server logs and looks out for the address.
type serverLog struct {
	serving chan string

	mu    sync.Mutex
	text  []byte
	found bool
}

// keptLog is how much of the log a failure shows.
const keptLog = 4000

var servingLine = regexp.MustCompile(`(?m)^.*msg"?[=:]"?serving\b.*?(\d+\.\d+\.\d+\.\d+:\d+).*\n`)

// Write takes the next bytes of the log.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if m := servingLine.FindSubmatch(l.text); m != nil && !l.found {
		l.found = true
		l.serving <- string(m[1])
	}
	if l.found && len(l.text) > 2*keptLog {
		l.text = bytes.Clone(l.text[len(l.text)-keptLog:])
	}
	return len(p), nil
}

// String returns the end of the log.
func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.text[max(0, len(l.text)-keptLog):]))
}
