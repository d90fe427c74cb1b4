// Package process makes sandboxes out of nothing but Linux namespaces: the
// embedded default, for machines without Docker.
//
// A zygote, a Python process that has everything imported, forks one sandbox for
// each execution into fresh namespaces. The package starts the zygote, hands it
// the limits, and carries bytes; what is said on the streams is the engine's.
package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fermata/engine"
	"fermata/engine/internal/seccomp"
)

// Options are what a Provider needs to know. All sizes are in bytes.
type Options struct {
	// Dir is a directory of the provider's own. Two servers must not share it.
	Dir string
	// Server is this server's instance, which its sandboxes are marked with.
	Server string
	// Hide are directories that no sandbox may see, should they lie where it looks.
	Hide []string
	// Python is the interpreter, 3.11 or later, a path or a name to look up.
	Python string
	// Memory bounds what the processes of a program use together, where the machine
	// has memory cgroups, and each of them where it has not.
	Memory int64
	// CPUs bounds processor time: 1.5 is one and a half processors.
	CPUs float64
	// PIDs bounds the processes and threads of a program.
	PIDs int
	// Output bounds stdout and stderr, each.
	Output int64
	// Disk bounds /mnt/data, /tmp and /dev/shm, each, and any one file.
	Disk int64
	// Orphan is how long a sandbox outlives its server.
	Orphan time.Duration
	// Log gets what the zygote has to complain of.
	Log *slog.Logger
}

// A Provider is an engine.Provider of process sandboxes.
type Provider struct {
	o       Options
	python  interpreter
	filter  []byte
	cgroups *cgroups
	users   users

	mu      sync.Mutex
	current *zygote             // the one that makes new sandboxes; nil until it is needed
	zygotes map[string]*zygote  // by id: the current one and those of earlier servers
	lines   map[string]net.Conn // by reference: those that nobody has asked for yet
	spare   string              // the reference of a sandbox that waits to be created
	closed  bool
}

var (
	_ engine.Provider = (*Provider)(nil)
	_ engine.Preparer = (*Provider)(nil)
)

// New returns a provider whose zygote is running. It fails, with what is missing,
// on a machine that cannot isolate programs.
func New(ctx context.Context, o Options) (*Provider, error) {
	python, err := findPython(ctx, o.Python)
	if err != nil {
		return nil, err
	}
	filter, err := seccomp.Filter()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make sandbox directory: %w", err)
	}
	p := &Provider{o: o, python: python, filter: filter, zygotes: map[string]*zygote{}, lines: map[string]net.Conn{}}
	p.cgroups, err = findCgroups(o)
	if err != nil {
		o.Log.Warn("no cgroup limits, only those of each process apply", "err", err)
	}
	if err := p.adopt(); err != nil {
		return nil, err
	}
	if _, err := p.zygote(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// adopt finds the zygotes that earlier servers left, and clears away the dead ones.
func (p *Provider) adopt() error {
	entries, err := os.ReadDir(p.o.Dir)
	if err != nil {
		return fmt.Errorf("read sandbox directory: %w", err)
	}
	for _, e := range entries {
		z, err := joinZygote(p.o.Dir, e.Name(), p.cgroups)
		if err != nil {
			if err := p.clear(filepath.Join(p.o.Dir, e.Name())); err != nil {
				return err
			}
			continue
		}
		p.zygotes[z.id] = z
	}
	return nil
}

// clear removes what a dead zygote has left.
func (p *Provider) clear(dir string) error {
	names, err := sandboxNames(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if err := p.cgroups.remove(name); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove sandbox directory: %w", err)
	}
	return nil
}

// zygote returns the zygote that makes new sandboxes; if it has died, another.
func (p *Provider) zygote(ctx context.Context) (*zygote, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, engine.ErrClosing
	}
	if p.current != nil && p.current.alive() {
		return p.current, nil
	}
	if p.current != nil {
		p.o.Log.Error("the zygote has died, starting another", "said", p.current.lastWords())
		delete(p.zygotes, p.current.id)
		if err := p.clear(p.current.dir); err != nil {
			return nil, err
		}
	}
	z, err := p.startZygote(ctx)
	if err != nil {
		p.current = nil
		return nil, err
	}
	p.current, p.zygotes[z.id] = z, z
	return z, nil
}

// Create starts a sandbox.
func (p *Provider) Create(ctx context.Context) (string, error) {
	z, err := p.zygote(ctx)
	if err != nil {
		return "", err
	}
	if ref, ok := p.takeSpare(z); ok {
		return ref, nil
	}
	return p.create(z)
}

// Prepare starts a sandbox for the next Create: all of it but the process that runs the
// program, which is made when somebody attaches.
func (p *Provider) Prepare(ctx context.Context) error {
	z, err := p.zygote(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	there := madeBy(z, p.spare)
	p.mu.Unlock()
	if there {
		return nil
	}
	ref, err := p.create(z)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare = ref
	return nil
}

// madeBy reports whether the sandbox that ref names is z's.
func madeBy(z *zygote, ref string) bool { return strings.HasPrefix(ref, z.id+"/") }

// spareTimeout bounds the end of a sandbox that has never run a program.
const spareTimeout = 10 * time.Second

func (p *Provider) destroySpare() error {
	p.mu.Lock()
	ref := p.spare
	p.spare = ""
	p.mu.Unlock()
	if ref == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), spareTimeout)
	defer cancel()
	return p.Destroy(ctx, ref)
}

// takeSpare returns the spare sandbox if z has made it.
func (p *Provider) takeSpare(z *zygote) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := p.spare
	p.spare = ""
	return ref, madeBy(z, ref)
}

func (p *Provider) create(z *zygote) (string, error) {
	name := strings.ToLower(rand.Text())[:16]
	line, end, err := makeLine()
	if err != nil {
		return "", err
	}
	defer end.Close()
	ref := z.id + "/" + name
	p.mu.Lock()
	p.lines[ref] = line
	p.mu.Unlock()
	if err := p.spawn(z, name, end); err != nil {
		p.dropLine(ref)
		return "", errors.Join(fmt.Errorf("create sandbox: %w", err), p.remove(z, name))
	}
	return ref, nil
}

// makeLine returns the two ends of a line, the server's and the worker's. Before Linux
// 6.16 there is none for the server, and the worker finds its own ended.
func makeLine() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make line: %w", err)
	}
	ours, end := os.NewFile(uintptr(fds[0]), "line"), os.NewFile(uintptr(fds[1]), "line")
	defer ours.Close()
	// What is received without being asked for is closed here, and a program can have
	// descriptors that take for ever to close.
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0); err != nil {
		return nil, end, nil
	}
	line, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make line: %w", err), end.Close())
	}
	return line, end, nil
}

// line returns the line to a sandbox, once.
func (p *Provider) line(ref string) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.lines[ref]
	delete(p.lines, ref)
	return line
}

// dropLine closes the line to a sandbox that nobody has attached to.
func (p *Provider) dropLine(ref string) {
	if line := p.line(ref); line != nil {
		_ = line.Close() // Nothing was said on it.
	}
}

func (p *Provider) spawn(z *zygote, name string, line *os.File) error {
	// The supervisor gets the listening end; whoever knows the path can attach.
	listener, err := z.listen(name)
	if err != nil {
		return err
	}
	defer listener.Close()
	group, err := p.cgroups.create(name)
	if err != nil {
		return err
	}
	defer group.close()
	return z.spawn(name, p.users.next(), listener, line, group)
}

// Attach opens the stream to a sandbox's supervisor.
func (p *Provider) Attach(ctx context.Context, ref string) (io.ReadWriteCloser, error) {
	z, name, err := p.find(ref)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", z.path(name))
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", engine.ErrGone, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("attach to sandbox %s: %w", ref, err)
	}
	return &stream{Conn: conn, zygote: z, line: p.line(ref)}, nil
}

// A stream is a connection to a supervisor. If it ends since the zygote has, the
// error tells why.
type stream struct {
	net.Conn
	zygote *zygote
	line   net.Conn
}

// Line implements engine.Liner.
func (s *stream) Line() net.Conn { return s.line }

// Close closes the line, too.
func (s *stream) Close() error {
	err := s.Conn.Close()
	if s.line != nil {
		err = errors.Join(err, s.line.Close())
	}
	return err
}

// Read reads what the supervisor sends.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err == nil || errors.Is(err, net.ErrClosed) {
		return n, err
	}
	select {
	case <-s.zygote.gone:
		return n, explain(fmt.Errorf("%s: %w", s.zygote.lastWords(), err))
	case <-time.After(lastWordsDelay):
		return n, err
	}
}

// lastWordsDelay is how long after a sandbox its zygote may be seen to die.
const lastWordsDelay = 200 * time.Millisecond

// Destroy ends a sandbox and removes what belongs to it.
func (p *Provider) Destroy(ctx context.Context, ref string) error {
	p.dropLine(ref)
	z, name, err := p.find(ref)
	if errors.Is(err, engine.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := z.kill(ctx, name); err != nil {
		return fmt.Errorf("destroy sandbox %s: %w", ref, err)
	}
	return errors.Join(p.remove(z, name), p.retire(z))
}

// retire ends a zygote of an earlier server when its last sandbox has ended.
func (p *Provider) retire(z *zygote) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || z == p.current || p.zygotes[z.id] != z {
		return nil
	}
	names, err := sandboxNames(z.dir)
	if err != nil || len(names) > 0 {
		return err
	}
	delete(p.zygotes, z.id)
	return errors.Join(z.leave(true), p.clear(z.dir))
}

// remove removes what a sandbox without processes has left. The socket is the last:
// by it a later server finds the rest, should this one be killed.
func (p *Provider) remove(z *zygote, name string) error {
	if err := p.cgroups.remove(name); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(z.dir, name+socketSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List returns every sandbox, those of earlier servers too.
func (p *Provider) List(context.Context) ([]engine.Sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []engine.Sandbox
	for id, z := range p.zygotes {
		names, err := sandboxNames(z.dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if ref := id + "/" + name; ref != p.spare {
				list = append(list, engine.Sandbox{Ref: ref, Server: z.server})
			}
		}
	}
	return list, nil
}

// Close lets go of the zygotes. One that has sandboxes stays until the last of
// them has ended; the others end now.
func (p *Provider) Close() error {
	errs := []error{p.destroySpare()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	for _, z := range p.zygotes {
		names, err := sandboxNames(z.dir)
		errs = append(errs, err, z.leave(len(names) == 0))
		if err == nil && len(names) == 0 {
			errs = append(errs, p.clear(z.dir))
		}
	}
	return errors.Join(errs...)
}

// find splits a reference into its zygote and the sandbox's name.
func (p *Provider) find(ref string) (*zygote, string, error) {
	id, name, ok := strings.Cut(ref, "/")
	if !ok || name == "" || strings.ContainsAny(name, "/.") {
		return nil, "", fmt.Errorf("malformed sandbox reference %q", ref)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	z := p.zygotes[id]
	if z == nil {
		return nil, "", fmt.Errorf("%w: %s", engine.ErrGone, ref)
	}
	return z, name, nil
}

const socketSuffix = ".sock"

// sandboxNames names the sandboxes of the zygote in dir.
func sandboxNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), socketSuffix); ok && e.Name() != controlSocket {
			names = append(names, name)
		}
	}
	return names, nil
}

// users gives every sandbox a user of its own, where the server may do that.
type users struct {
	mu   sync.Mutex
	last uint32
}

// Users of sandboxes: the first on the host, and how many there are. A sandbox's
// user n is firstUser+n-1 on the host, n from 1.
const (
	firstUser = 200_000
	userCount = 60_000
)

// next returns the zygote's number of the next user, 0 for the server's own.
func (u *users) next() uint32 {
	if os.Geteuid() != 0 {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = u.last%userCount + 1
	return u.last
}
