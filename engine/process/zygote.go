//go:build linux

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"fermata/engine/sandbox"
)

// A zygote is the connection to a zygote process.
type zygote struct {
	dir dir

	// cgroups holds the groups of its sandboxes.
	cgroups *cgroups
	// conn leads to the process; nil if it was dead when this server found its directory.
	conn *net.UnixConn
	// cut is closed when the connection has ended, gone when nothing of the zygote and its
	// sandboxes runs any more, or this server has left it.
	cut, gone chan struct{}
	// cmd is the process if this server started it, words the end of its stderr.
	cmd   *exec.Cmd
	words *tail
	// process is that of an earlier server's zygote, nil if it is not known.
	process *pidfd
	// retiring says that the zygote is being ended. The mu of zygotes guards it.
	retiring bool

	mu sync.Mutex
	// ended has a channel for each sandbox that is being destroyed and has not ended.
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

// message is what is said on the control socket, in both directions.
type message struct {
	Op   string `json:"op"`
	Name string `json:"name"`
	// Kind and User are those of a sandbox that is to be made.
	Kind sandbox.Kind `json:"kind,omitempty"`
	User uint32       `json:"user"`
	// FDs are the names of the descriptors that come along, in their order.
	FDs []string `json:"fds,omitempty"`
}

func newZygote(d dir, groups *cgroups) *zygote {
	return &zygote{
		dir: d, cgroups: groups, cut: make(chan struct{}), gone: make(chan struct{}),
		ended: map[string]chan struct{}{}, silent: map[*stream]bool{},
	}
}

// joinZygote connects to the zygote of an earlier server. If that has died, joinZygote
// returns what it has left.
func joinZygote(parent, id string, groups *cgroups) *zygote {
	d, err := openDir(parent, id)
	z := newZygote(d, groups)
	if err == nil {
		if err = z.connect(); err == nil {
			return z
		}
		_ = z.dir.root.Close() // Nothing was written to it.
		z.dir.root = nil
	}
	close(z.cut)
	close(z.gone)
	return z
}

// connect opens the control connection and starts to listen on it.
func (z *zygote) connect() error {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: z.dir.socket(control), Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("connect to zygote: %w", err)
	}
	z.conn = conn
	if z.cmd == nil {
		// Without it nobody can kill a zygote that hangs. It may still end by itself.
		z.process, _ = peerOf(conn)
	}
	go z.hear()
	return nil
}

// hear notes which sandboxes have ended, until the zygote or the connection ends.
func (z *zygote) hear() {
	defer close(z.gone)
	buffer := make([]byte, 1<<12)
	left := false // whether this server has closed the connection, rather than the zygote
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
	// A wait for a zygote that dies ends only when all of its sandboxes have died with it.
	switch {
	case z.cmd != nil:
		_ = z.cmd.Wait()
	case z.process != nil:
		_ = z.process.wait()
	}
}

// thaw lets the frozen sandboxes of a dying zygote die with it.
func (z *zygote) thaw() {
	names, _ := z.dir.sandboxes() // The directory is there until the zygote is gone.
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
func (z *zygote) spawn(name string, kind sandbox.Kind, user uint32, listener *os.File, group *cgroup) error {
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
	// A frozen sandbox dies when it is thawed. Most sandboxes are not frozen, and end before
	// the first tick.
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
			return fmt.Errorf("the zygote does not report its end: %w", ctx.Err())
		}
	}
}

// noSandbox is a name that no sandbox has. Told to kill it, a zygote answers at once that it
// has ended.
const noSandbox = "none"

// answers reports whether the zygote answers until ctx ends.
func (z *zygote) answers(ctx context.Context) bool { return z.kill(ctx, noSandbox) == nil }

// needed reports whether the zygote has a sandbox that is not being destroyed.
func (z *zygote) needed() (bool, error) {
	names, err := z.dir.sandboxes()
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool { return z.ended[name] == nil }), err
}

// expect notes that no sandbox has spoken on a stream yet.
func (z *zygote) expect(s *stream) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.silent[s] = true
}

// heard notes that a sandbox has spoken on a stream, or that nobody listens any more.
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
		_ = s.Conn.Close() // The reader gets an error.
	}
}

// say sends a message with descriptors to the zygote.
func (z *zygote) say(m message, rights []byte) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := z.conn.SetWriteDeadline(time.Now().Add(sayTimeout)); err != nil {
		return fmt.Errorf("speak to zygote: %w", err)
	}
	if _, _, err := z.conn.WriteMsgUnix(data, rights, nil); err != nil {
		if why := z.whyEnded(); why != "" {
			return explain(fmt.Errorf("the zygote is gone: %s: %w", why, err))
		}
		return fmt.Errorf("speak to zygote: %w", err)
	}
	return nil
}

// end ends the zygote, whose sandboxes nobody needs, and they end with it.
func (z *zygote) end() error {
	var err error
	switch {
	case z.conn == nil:
	case z.cmd != nil:
		_ = z.cmd.Process.Kill() // It may have ended by itself.
	case z.process != nil:
		err = z.process.kill()
	default:
		err = z.conn.Close() // Without a server and sandboxes it ends by itself.
	}
	select {
	case <-z.gone:
		return err
	case <-time.After(endTimeout):
		return errors.Join(err, fmt.Errorf("zygote %s was killed and does not end", z.dir.id))
	}
}

// leave ends the connection and closes the directory; the zygote stays.
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
	return errors.Join(err, z.dir.close())
}

// whyEnded returns why the zygote has ended, as far as that is known: the last line that it has
// said, or the signal that has killed it. It returns nothing of a zygote that has not ended.
func (z *zygote) whyEnded() string {
	select {
	case <-z.gone:
	case <-time.After(lastWordsDelay):
		return ""
	}
	words := lastWords(z)
	if z.cmd == nil || z.cmd.ProcessState == nil {
		return words
	}
	status, ok := z.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && words != "":
		return fmt.Sprintf("the zygote was ended by a signal (%s); the last that it said is: %s", status.Signal(), words)
	case ok && status.Signaled():
		return fmt.Sprintf("the zygote was ended by a signal (%s) and has said nothing", status.Signal())
	case words == "":
		return fmt.Sprintf("the zygote has ended (%s) and has said nothing", z.cmd.ProcessState)
	default:
		return words
	}
}

// lastWords returns the last line that the zygote has written to its stderr.
func lastWords(z *zygote) string {
	if z.words == nil {
		return ""
	}
	return z.words.last()
}
