package mcptool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"fermata/engine/tools/outgoing"
)

// A process is an MCP server that this server has started, and the connection to it. Each message is one
// line.
type process struct {
	cmd               *exec.Cmd
	dir               string // its folder, which has its working directory and is removed at its end
	times             *times
	in                *os.File // what it reads
	out               *os.File // what it writes
	lines             *bufio.Reader
	closing           chan struct{}
	once, drainedOnce sync.Once
	drained           chan struct{} // closed when all that it has written is read
	exited            chan struct{} // closed when the process itself has ended
	done              chan struct{} // closed when nothing is left of it

	mu sync.Mutex // held while a message is written

	hold func() *outgoing.Holding
	held *outgoing.Holding // the memory of the message that was read last. Only the goroutine that reads uses it

	stray, said *lineLog // lines on its standard output that are no messages, and those on its standard error
}

// startProcess starts the command of the options in a session, a process group and a working
// directory of its own.
func startProcess(o *Options, hold func() *outgoing.Holding) (*process, error) {
	dir, err := newFolder(o.Dir)
	if err != nil {
		return nil, errors.Join(errNoCommand, err)
	}
	p := &process{hold: hold, dir: dir, times: o.times, closing: make(chan struct{}), drained: make(chan struct{}), exited: make(chan struct{}), done: make(chan struct{})}
	p.stray = &lineLog{o: o, where: "standard output"}
	p.said = &lineLog{o: o, where: "standard error"}
	if err := p.start(o); err != nil {
		return nil, errors.Join(errNoCommand, err, os.RemoveAll(dir))
	}
	return p, nil
}

// start starts the command, and the goroutines that wait for its end.
func (p *process) start(o *Options) error {
	var files []*os.File
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err == nil {
			files = append(files, r, w)
		}
		return r, w
	}
	theirIn, in := pipe()
	out, theirOut := pipe()
	stderr, theirStderr := pipe()
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	if len(files) != 6 {
		closeAll(files...)
		return errors.New("no pipes can be made")
	}
	// The command lives as long as the session, and not only as long as the call for which it was started.
	p.cmd = exec.Command(o.Command[0], o.Command[1:]...) //nolint:noctx // the operator has named the command
	p.cmd.Dir = filepath.Join(p.dir, workFolder)
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range o.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value) // If a name occurs twice, the last value counts.
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirIn, theirOut, theirStderr
	p.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // The command ends with the thread that starts it.
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		if err == nil {
			_ = writeLaunch(p.dir, p.cmd.Process.Pid) // Without it the command runs as well.
		}
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // The exit code does not matter.
			close(p.exited)
		}
	}()
	err := <-started
	closeAll(theirIn, theirOut, theirStderr)
	if err != nil {
		closeAll(in, out, stderr)
		return err
	}
	p.in, p.out, p.lines = in, out, bufio.NewReaderSize(out, 64<<10)
	go p.end(stderr)
	return nil
}

// end logs what the process writes to its standard error, until the connection is closed or the process has
// ended. Then it ends the process.
func (p *process) end(stderr *os.File) {
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		p.said.logAll(stderr)
	}()
	select {
	case <-p.closing:
	case <-p.exited:
	}
	_ = p.in.Close() // The end of its input tells the process to end.
	for _, step := range []struct {
		wait   time.Duration
		signal syscall.Signal
	}{{p.times.stop / 4, syscall.SIGTERM}, {p.times.stop * 3 / 4, syscall.SIGKILL}} {
		select {
		case <-p.exited:
		case <-time.After(step.wait):
			p.signal(step.signal)
		}
	}
	p.signal(syscall.SIGKILL) // This ends what the process has left in its group.
	<-p.exited
	select { // its last answer may still be in the pipe
	case <-p.drained:
	case <-p.closing:
	case <-time.After(p.times.stop / 4):
	}
	_ = p.out.Close()
	_ = stderr.Close()
	<-logged
	_ = os.RemoveAll(p.dir) // It may fail, since files may belong to another user.
	close(p.done)
}

// signal sends a signal to the whole group of the process.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// SessionID implements mcp.Connection.
func (p *process) SessionID() string { return "" }

// Close implements mcp.Connection. It does not wait for the end of the process; done is closed then.
func (p *process) Close() error {
	p.once.Do(func() { close(p.closing) })
	return nil
}

// Read implements mcp.Connection.
func (p *process) Read(context.Context) (jsonrpc.Message, error) {
	for {
		p.takeHeld().Release()
		line, err := readLine(p.lines, MaxMessage, p.grow)
		switch {
		case errors.Is(err, errLargeMessage), errors.Is(err, errNoRoom):
			return nil, err
		case err != nil:
			p.drainedOnce.Do(func() { close(p.drained) })
			return nil, errors.Join(errEnded, err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err == nil {
			return m, nil
		}
		if isMessage(line) {
			return nil, errors.Join(errBrokenMessage, err)
		}
		p.stray.log(line) // It is a banner, or a log that was meant for the standard error.
	}
}

// grow takes memory for a line. A process waits while there is not enough, since nobody knows which call the line
// answers.
func (p *process) grow(line int) error {
	if p.held == nil {
		p.held = p.hold()
	}
	late := time.Now().Add(p.times.room)
	for !p.held.Grow(int64(line)) {
		if time.Now().After(late) {
			return errNoRoom
		}
		select {
		case <-p.closing:
			return errNoRoom
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// takeHeld returns the memory of the message that was read last, or nil. The caller must release it.
func (p *process) takeHeld() *outgoing.Holding {
	if p == nil {
		return nil
	}
	held := p.held
	p.held = nil
	return held
}

// Write implements mcp.Connection.
func (p *process) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	exchangeOf(ctx).sent.Store(true)
	// The deadline of the context is not used, since half a message would end the session.
	if err := p.in.SetWriteDeadline(time.Now().Add(p.times.write)); err != nil {
		return errors.Join(errEnded, err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		_ = p.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.Join(errNotReading, err)
		}
		return errors.Join(errEnded, err)
	}
	return nil
}

// smallLine is up to how many bytes the memory of a line does not count.
const smallLine = 64 << 10

// readLine reads a line of at most limit bytes, without its end. Before it allocates memory for a line that is not
// small, it calls grow with the number of bytes so far.
func readLine(in *bufio.Reader, limit int, grow func(line int) error) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errLargeMessage
		}
		if len(line)+len(part) > smallLine {
			if err := grow(len(line) + len(part)); err != nil {
				return nil, err
			}
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// isMessage reports whether a line was meant to be a message: it is a JSON object with the member jsonrpc.
func isMessage(line []byte) bool {
	var m struct {
		Version json.RawMessage `json:"jsonrpc"`
	}
	return json.Unmarshal(line, &m) == nil && len(m.Version) > 0
}

// tell adds to a reason what the process has written, which may say more. It is called when the process has ended.
func (p *process) tell(r reason) reason {
	if last := p.said.text(); last != "" {
		r += reason("; the last that it wrote to its standard error is " + last)
	}
	if first := p.stray.text(); first != "" {
		r += reason("; to its standard output it wrote what is no message: " + first)
	}
	return r
}
