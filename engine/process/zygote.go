package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"fermata/engine"
	"fermata/python"
)

const (
	controlSocket = "control.sock"
	// serverFile holds the instance of the server that started the zygote.
	serverFile = "server"
)

// A zygote is the connection to a zygote process.
type zygote struct {
	id  string
	dir string
	// server is the instance of the server that started it.
	server string
	// cgroups has the groups of its sandboxes.
	cgroups *cgroups
	// root is dir opened: sockets are named through it, since the name of a socket
	// may have 107 bytes and a state directory more.
	root *os.File
	conn *net.UnixConn // nil if it was dead when this server found its directory
	// cut is closed when the connection has ended, gone when nothing of the zygote and its
	// sandboxes runs any more, or this server has left it.
	cut, gone chan struct{}
	// cmd is the process if this server started it, words the end of its stderr.
	cmd   *exec.Cmd
	words *tail
	// process is that of an earlier server's zygote, nil if it is not known.
	process *pidfd
	// retiring says that it is being ended. The provider's mu guards it.
	retiring bool

	mu sync.Mutex
	// ended has a channel for each sandbox that is to end and has not.
	ended map[string]chan struct{}
	// silent are the streams on which no sandbox has spoken yet.
	silent map[*stream]bool
}

const (
	// sayTimeout bounds one message to a zygote that does not listen.
	sayTimeout = 2 * time.Second
	// endTimeout bounds the end of a zygote that was killed.
	endTimeout = 2 * time.Second
)

// config is what the zygote reads on its stdin: Config of zygote.py.
type config struct {
	Root      string   `json:"root"`
	Hide      []string `json:"hide"`
	FirstUser int      `json:"first_user"`
	Disk      int64    `json:"disk"`
	Output    int64    `json:"output"`
	PIDs      int      `json:"pids"`
	Data      int64    `json:"data"`
	Orphan    float64  `json:"orphan"`
	Seccomp   string   `json:"seccomp"`
}

// message is what is said on the control socket, in both directions.
type message struct {
	Op   string `json:"op"`
	Name string `json:"name"`
	// Kind and User are those of a sandbox that is to be made.
	Kind engine.Kind `json:"kind,omitempty"`
	User uint32      `json:"user"`
	// FDs are the names of the descriptors that come along, in their order.
	FDs []string `json:"fds,omitempty"`
}

// cloneFlags are the namespaces that the zygote begins in.
const cloneFlags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
	syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// startZygote starts a zygote in a directory of its own.
func (p *Provider) startZygote(ctx context.Context) (_ *zygote, err error) {
	id := strings.ToLower(rand.Text())[:12]
	dir := filepath.Join(p.o.Dir, id)
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, d := range []string{dir, filepath.Join(dir, "root")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, fmt.Errorf("make zygote directory: %w", err)
		}
	}
	runner, err := fs.Sub(python.Runner, "runner")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "runner"), runner); err != nil {
		return nil, fmt.Errorf("write runner: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, serverFile), []byte(p.o.Server), 0o600); err != nil {
		return nil, fmt.Errorf("mark zygote: %w", err)
	}
	z, err := openZygote(p.o.Dir, id, p.cgroups)
	if err != nil {
		return nil, err
	}
	listener, err := z.listen("control")
	if err != nil {
		return nil, errors.Join(err, z.root.Close())
	}
	defer listener.Close()
	z.words = &tail{log: p.o.Log}
	z.cmd, err = p.launch(ctx, z, listener)
	if err != nil {
		return nil, errors.Join(err, z.root.Close())
	}
	if err := z.connect(); err != nil {
		return nil, errors.Join(err, z.cmd.Process.Kill(), z.root.Close())
	}
	return z, nil
}

func (p *Provider) launch(ctx context.Context, z *zygote, listener *os.File) (*exec.Cmd, error) {
	c := config{
		Root:    filepath.Join(z.dir, "root"),
		Hide:    append([]string{p.o.Dir}, p.o.Hide...),
		Disk:    p.o.Disk,
		Output:  p.o.Output,
		PIDs:    p.o.PIDs,
		Orphan:  p.o.Orphan.Seconds(),
		Seccomp: hex.EncodeToString(p.filter),

		FirstUser: p.ids.firstUser,
	}
	if !p.cgroups.limitsMemory() {
		c.Data = p.o.Memory
	}
	stdin, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	// By a path that tells nothing of the state directory: programs see it in modules.
	args := []string{p.python.path, "-I", "-B", "/proc/self/fd/4", "zygote"}
	if p.ids.helped {
		args = append([]string{"/bin/sh", "-c", gate, "sh"}, args...)
	}
	// The zygote outlives ctx, which is that of the request that happened to need it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	cmd.Dir = "/"
	// Large results in pages of 2 MiB, where the kernel leaves that to programs: see
	// "Memory Allocation Tunables" in glibc's manual.
	cmd.Env = []string{"GLIBC_TUNABLES=glibc.malloc.hugetlb=1"}
	cmd.Stderr = z.words
	runner, err := os.Open(filepath.Join(z.dir, "runner"))
	if err != nil {
		return nil, fmt.Errorf("open runner: %w", err)
	}
	defer runner.Close()
	cmd.ExtraFiles = []*os.File{listener, runner}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: cloneFlags,
		// A terminal's Ctrl-C is for the server, which decides what becomes of the rest.
		Setsid: true,
	}
	if p.ids.helped {
		return cmd, p.startHelped(ctx, cmd, stdin)
	}
	cmd.Stdin = bytes.NewReader(stdin)
	attr := cmd.SysProcAttr
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	if p.ids.count > 0 {
		attr.UidMappings = append(attr.UidMappings, syscall.SysProcIDMap{ContainerID: 1, HostID: p.ids.firstUser, Size: p.ids.count})
		attr.GidMappings = append(attr.GidMappings, syscall.SysProcIDMap{ContainerID: 1, HostID: p.ids.firstGroup, Size: p.ids.count})
		attr.GidMappingsEnableSetgroups = true
	}
	if err := cmd.Start(); err != nil {
		return nil, explain(err)
	}
	return cmd, nil
}

// startHelped starts the gate, has its users mapped, and lets it become the zygote.
func (p *Provider) startHelped(ctx context.Context, cmd *exec.Cmd, config []byte) error {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return explain(err)
	}
	err = p.ids.mapInto(ctx, cmd.Process.Pid)
	if err == nil {
		_, err = stdin.Write(append([]byte("\n"), config...))
	}
	if err = errors.Join(err, stdin.Close()); err != nil {
		err = errors.Join(fmt.Errorf("start zygote: %w", err), cmd.Process.Kill())
		_ = cmd.Wait() // It was killed.
	}
	return err
}

// openZygote opens the directory of a zygote.
func openZygote(parent, id string, groups *cgroups) (*zygote, error) {
	dir := filepath.Join(parent, id)
	root, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open zygote directory: %w", err)
	}
	server, err := os.ReadFile(filepath.Join(dir, serverFile))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read mark of zygote: %w", err), root.Close())
	}
	z := newZygote(parent, id, groups)
	z.server, z.root = string(server), root
	return z, nil
}

func newZygote(parent, id string, groups *cgroups) *zygote {
	return &zygote{
		id: id, dir: filepath.Join(parent, id), cgroups: groups, cut: make(chan struct{}), gone: make(chan struct{}),
		ended: map[string]chan struct{}{}, silent: map[*stream]bool{},
	}
}

// joinZygote connects to the zygote of an earlier server. If there is none any more it
// returns what a dead one has left.
func joinZygote(parent, id string, groups *cgroups) *zygote {
	z, err := openZygote(parent, id, groups)
	if err == nil {
		if err = z.connect(); err == nil {
			return z
		}
		_ = z.root.Close()
		z.root = nil
	} else {
		z = newZygote(parent, id, groups)
	}
	close(z.cut)
	close(z.gone)
	return z
}

// connect opens the control connection and starts to listen on it.
func (z *zygote) connect() error {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: z.path("control"), Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("connect to zygote: %w", err)
	}
	z.conn = conn
	if z.cmd == nil {
		// One of an earlier version is not found, and ends by itself or not.
		z.process, _ = peerOf(conn)
	}
	go z.hear()
	return nil
}

// hear notes which sandboxes have ended, until the zygote or the connection ends.
func (z *zygote) hear() {
	defer close(z.gone)
	buffer := make([]byte, 1<<12)
	left := false // we have left it, rather than it us
	for {
		n, err := z.conn.Read(buffer)
		if err != nil || n == 0 {
			left = errors.Is(err, net.ErrClosed)
			break
		}
		var m message
		if err := json.Unmarshal(buffer[:n], &m); err != nil {
			break
		}
		z.mu.Lock()
		if waiting, ok := z.ended[m.Name]; ok {
			close(waiting)
			delete(z.ended, m.Name)
		}
		z.mu.Unlock()
	}
	close(z.cut)
	if !left {
		defer repeatedly(z.thaw)()
	}
	// A zygote that dies takes every sandbox with it before it can be waited for.
	switch {
	case z.cmd != nil:
		_ = z.cmd.Wait()
	case z.process != nil:
		_ = z.process.wait()
	}
}

// thaw lets all sandboxes of a dying zygote die, the paused ones, too.
func (z *zygote) thaw() {
	names, _ := sandboxNames(z.dir) // It is there: nobody clears up after it before it is gone.
	for _, name := range names {
		z.cgroups.thaw(name)
	}
}

// repeatedly calls f now, and every thawInterval until stop is called.
func repeatedly(f func()) (stop func()) {
	f()
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(thawInterval)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				f()
			case <-stopped:
				return
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}

// alive reports whether the zygote still listens.
func (z *zygote) alive() bool {
	select {
	case <-z.cut:
		return false
	default:
		return true
	}
}

// spawn asks for a sandbox.
func (z *zygote) spawn(name string, kind engine.Kind, user uint32, listener *os.File, group *cgroup) error {
	names, fds := []string{"listener"}, []int{int(listener.Fd())}
	for _, f := range group.files {
		names, fds = append(names, f.name), append(fds, int(f.Fd()))
	}
	return z.say(message{Op: "spawn", Name: name, Kind: kind, User: user, FDs: names}, syscall.UnixRights(fds...))
}

// kill ends a sandbox and waits until it has ended.
func (z *zygote) kill(ctx context.Context, name string) error {
	z.mu.Lock()
	waiting, ok := z.ended[name]
	if !ok {
		waiting = make(chan struct{})
		z.ended[name] = waiting
	}
	z.mu.Unlock()
	if z.alive() {
		if err := z.say(message{Op: "kill", Name: name}, nil); err != nil && z.alive() {
			return err
		}
	}
	// A sandbox that is frozen dies when it is thawed; most are not, and end before the first
	// time.
	again := time.NewTicker(thawInterval)
	defer again.Stop()
	for {
		select {
		case <-waiting:
			return nil
		case <-z.gone:
			return nil
		case <-again.C:
			z.cgroups.thaw(name)
		case <-ctx.Done():
			return fmt.Errorf("its zygote does not say that it has ended: %w", ctx.Err())
		}
	}
}

// noSandbox is the name of no sandbox: of one that is not there a zygote says at once that
// it has ended.
const noSandbox = "none"

// answers reports whether the zygote answers until ctx ends.
func (z *zygote) answers(ctx context.Context) bool { return z.kill(ctx, noSandbox) == nil }

// needed reports whether a sandbox of the zygote is to go on.
func (z *zygote) needed() (bool, error) {
	names, err := sandboxNames(z.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool { return z.ended[name] == nil }), err
}

// expect notes that a sandbox is to speak on a stream, heard that it has.
func (z *zygote) expect(s *stream) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.silent[s] = true
}

func (z *zygote) heard(s *stream) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.silent, s)
}

// giveUp ends the streams of sandboxes that the zygote has not made yet.
func (z *zygote) giveUp() {
	z.mu.Lock()
	defer z.mu.Unlock()
	for s := range z.silent {
		_ = s.Conn.Close() // Its reader is told.
	}
}

func (z *zygote) say(m message, rights []byte) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := z.conn.SetWriteDeadline(time.Now().Add(sayTimeout)); err != nil {
		return fmt.Errorf("speak to zygote: %w", err)
	}
	if _, _, err := z.conn.WriteMsgUnix(data, rights, nil); err != nil {
		if words := z.lastWords(); words != "" {
			return explain(fmt.Errorf("zygote: %s: %w", words, err))
		}
		return fmt.Errorf("speak to zygote: %w", err)
	}
	return nil
}

// end ends the zygote, which has nothing to keep, and its sandboxes with it.
func (z *zygote) end() error {
	var err error
	switch {
	case z.conn == nil:
	case z.cmd != nil:
		_ = z.cmd.Process.Kill() // It may have ended by itself.
	case z.process != nil:
		err = z.process.kill()
	default:
		err = z.conn.Close() // It ends by itself.
	}
	select {
	case <-z.gone:
		return err
	case <-time.After(endTimeout):
		return errors.Join(err, fmt.Errorf("zygote %s was killed and does not end", z.id))
	}
}

// leave ends the connection.
func (z *zygote) leave() error {
	if z.conn == nil {
		return nil
	}
	err := z.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if z.process != nil {
		err = errors.Join(err, z.process.close())
	}
	return errors.Join(err, z.root.Close())
}

// listen makes a socket in the zygote's directory; the file is its listening end.
func (z *zygote) listen(name string) (*os.File, error) {
	network := "unix"
	if name+socketSuffix == controlSocket {
		network = "unixpacket"
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: z.path(name), Net: network})
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return l.File()
}

// path is a short name of a socket in the zygote's directory.
func (z *zygote) path(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s%s", z.root.Fd(), name, socketSuffix)
}

func (z *zygote) lastWords() string {
	if z.words == nil {
		return ""
	}
	return z.words.last()
}
