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
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"fermata/engine/internal/seccomp"
	"fermata/engine/sandbox"
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
	// Limits bound each sandbox.
	sandbox.Limits
	// Sandboxes is how many there may be at once, for each of which the server wants a
	// user of its own.
	Sandboxes int
	// CgroupsOptional has programs run where no cgroups limit what they use together.
	CgroupsOptional bool
	// Orphan is how long a sandbox outlives its server.
	Orphan time.Duration
	// Log gets what the zygote has to complain of.
	Log *slog.Logger
}

// A Provider is a sandbox.Provider of process sandboxes.
type Provider struct {
	o       Options
	python  interpreter
	filter  []byte
	cgroups *cgroups
	ids     identities
	users   *users

	mu      sync.Mutex
	current *zygote            // the one that makes new sandboxes; nil until it is needed
	zygotes map[string]*zygote // by id: the current one and those of earlier servers
	closed  bool

	// unwatch ends the goroutine that watches the zygote, watched waits for it.
	unwatch context.CancelFunc
	watched sync.WaitGroup
}

var _ sandbox.Provider = (*Provider)(nil)

// New returns a provider whose zygote is running. It fails, with what is missing,
// on a machine that cannot isolate programs.
func New(ctx context.Context, o Options) (*Provider, error) {
	if _, err := kernel(); err != nil {
		return nil, err
	}
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
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	p := &Provider{
		o: o, python: python, filter: filter, zygotes: map[string]*zygote{}, unwatch: unwatch,
	}
	p.cgroups, err = findCgroups(o)
	if err != nil && !o.CgroupsOptional {
		return nil, o.explainCgroups(err)
	}
	if err != nil {
		o.Log.Warn("no cgroup limits, only those of each process apply", "err", err)
	}
	p.ids, err = findIdentities(ctx, o.Sandboxes)
	if err != nil {
		o.Log.Warn("all sandboxes run as the server's user", "err", err)
		p.ids = identities{}
	}
	p.users = newUsers(p.ids.count)
	if err := p.adopt(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if _, err := p.zygote(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.watched.Go(func() { p.watch(watching) })
	return p, nil
}

// clearTimeout bounds how long the start of a server, or of a zygote, waits for what a dead
// zygote has left to be cleared away.
const clearTimeout = time.Second

// adopt finds the zygotes that earlier servers left, and clears away the dead ones. What
// cannot be cleared away now is listed as sandboxes, for the engine to destroy later.
func (p *Provider) adopt(ctx context.Context) error {
	entries, err := os.ReadDir(p.o.Dir)
	if err != nil {
		return fmt.Errorf("read sandbox directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	var adopting sync.WaitGroup
	for _, e := range entries {
		z := joinZygote(p.o.Dir, e.Name(), p.cgroups)
		p.mu.Lock()
		p.zygotes[z.id] = z
		p.mu.Unlock()
		names, err := sandboxNames(z.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, name := range names {
			p.users.keep(name)
		}
		adopting.Go(func() {
			var err error
			if !z.alive() {
				err = p.removeAll(ctx, z)
			}
			if err = errors.Join(err, p.retire(ctx, z)); err != nil {
				p.o.Log.Warn("cannot clear away what an earlier server left", "zygote", z.id, "err", err)
			}
		})
	}
	adopting.Wait()
	return nil
}

// removeAll removes what the sandboxes of a dead zygote have left.
func (p *Provider) removeAll(ctx context.Context, z *zygote) error {
	names, err := sandboxNames(z.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, p.remove(ctx, z, name))
	}
	return errors.Join(errs...)
}

// zygote returns the zygote that makes new sandboxes; if it has died, another.
func (p *Provider) zygote(ctx context.Context) (*zygote, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, sandbox.ErrClosing
	}
	if p.current != nil && p.current.alive() {
		return p.current, nil
	}
	if p.current != nil {
		p.buryCurrent(ctx)
	}
	z, err := p.startZygote(ctx)
	if err != nil {
		return nil, err
	}
	p.current, p.zygotes[z.id] = z, z
	return z, nil
}

// buryCurrent clears away what the zygote that made new sandboxes has left. If it cannot,
// the sandboxes stay listed. mu is held.
func (p *Provider) buryCurrent(ctx context.Context) {
	z := p.current
	p.current = nil
	select {
	case <-z.gone:
	case <-time.After(lastWordsDelay):
	}
	p.o.Log.Error("the zygote has died, starting another", "said", z.lastWords())
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	err := p.removeAll(ctx, z)
	if err == nil {
		delete(p.zygotes, z.id)
		err = errors.Join(z.leave(), os.RemoveAll(z.dir))
	}
	if err != nil {
		p.o.Log.Warn("cannot clear away what a zygote left", "zygote", z.id, "err", err)
	}
}

const (
	// watchInterval is how often the zygote is asked whether it still answers.
	watchInterval = 5 * time.Second
	// watchTries is how often in a row it may not answer, each time for watchInterval.
	watchTries = 2
)

// watch replaces the zygote when it does not answer any more, until ctx ends.
func (p *Provider) watch(ctx context.Context) {
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		z := p.current
		p.mu.Unlock()
		if z == nil {
			continue
		}
		answered := false
		for try := 0; try < watchTries && !answered && ctx.Err() == nil; try++ {
			asking, cancel := context.WithTimeout(ctx, watchInterval)
			answered = z.answers(asking)
			cancel()
		}
		if !answered && ctx.Err() == nil {
			p.replace(ctx, z)
		}
	}
}

// replace has the next sandboxes made by another zygote. The old one ends when all of its
// sandboxes have ended, or are to.
func (p *Provider) replace(ctx context.Context, z *zygote) {
	p.mu.Lock()
	if p.current != z {
		p.mu.Unlock()
		return
	}
	p.current = nil
	p.mu.Unlock()
	p.o.Log.Error("the zygote does not answer, starting another", "zygote", z.id, "said", z.lastWords())
	z.giveUp()
	if err := p.retire(ctx, z); err != nil {
		p.o.Log.Warn("cannot end the zygote that does not answer", "zygote", z.id, "err", err)
	}
}

// Create starts a sandbox of a kind.
func (p *Provider) Create(ctx context.Context, _ sandbox.Kind) (string, error) {
	z, err := p.zygote(ctx)
	if err != nil {
		return "", err
	}
	user, err := p.users.take()
	if err != nil {
		return "", fmt.Errorf("create sandbox: %w", err)
	}
	name := fmt.Sprint(strings.ToLower(rand.Text())[:16], userSeparator, user)
	ref := z.id + "/" + name
	if err := p.spawn(z, name, user); err != nil {
		err = fmt.Errorf("create sandbox: %w", err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
		defer cancel()
		if left := p.remove(ctx, z, name); left != nil {
			return ref, errors.Join(err, left)
		}
		return "", err
	}
	return ref, nil
}

func (p *Provider) spawn(z *zygote, name string, user uint32) error {
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
	return z.spawn(name, user, listener, group)
}

// Attach opens the stream to a sandbox's supervisor.
func (p *Provider) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	z, name, err := p.find(ref)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", z.path(name))
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("attach to sandbox %s: %w", ref, err)
	}
	s := &stream{Conn: conn, zygote: z}
	z.expect(s)
	return s, nil
}

// A stream is a connection to a supervisor. If it ends since the zygote has, the
// error tells why.
type stream struct {
	net.Conn
	zygote *zygote
	// spoken says that the supervisor has. The reader has it for itself.
	spoken bool
}

// Close closes the connection.
func (s *stream) Close() error {
	s.zygote.heard(s)
	return s.Conn.Close()
}

// Read reads what the supervisor sends.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if !s.spoken {
		s.spoken = true
		s.zygote.heard(s)
	}
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
	z, name, err := p.find(ref)
	if errors.Is(err, sandbox.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err = z.kill(ctx, name); err == nil {
		err = p.remove(ctx, z, name)
	}
	if err != nil {
		err = fmt.Errorf("destroy sandbox %s: %w", ref, err)
	}
	return errors.Join(err, p.retire(ctx, z))
}

// retire ends a zygote that makes no new sandboxes when the last of its sandboxes has ended,
// or is to end: those that do not end at its word may end with it.
func (p *Provider) retire(ctx context.Context, z *zygote) error {
	p.mu.Lock()
	needed, err := z.needed()
	if err != nil || needed || p.closed || z == p.current || p.zygotes[z.id] != z || z.retiring {
		p.mu.Unlock()
		return err
	}
	z.retiring = true
	p.mu.Unlock()
	err = z.end()
	if err == nil {
		err = p.removeAll(ctx, z)
	}
	p.mu.Lock()
	z.retiring = false
	if err == nil {
		delete(p.zygotes, z.id)
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return errors.Join(z.leave(), os.RemoveAll(z.dir))
}

// remove removes what a sandbox without processes has left. The socket is the last:
// by it a later server finds the rest, should this one be killed.
func (p *Provider) remove(ctx context.Context, z *zygote, name string) error {
	if err := p.cgroups.remove(ctx, name); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(z.dir, name+socketSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.users.free(name)
	return nil
}

// List returns every sandbox, those of earlier servers too.
func (p *Provider) List(context.Context) ([]sandbox.Sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []sandbox.Sandbox
	for id, z := range p.zygotes {
		names, err := sandboxNames(z.dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			list = append(list, sandbox.Sandbox{Ref: id + "/" + name, Server: z.server})
		}
	}
	return list, nil
}

// Close lets go of the zygotes. One that has sandboxes stays until the last of
// them has ended; the others end now. What does not end is left to a later server.
func (p *Provider) Close() error {
	p.unwatch()
	p.watched.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var errs []error
	for _, z := range p.zygotes {
		needed, err := z.needed()
		if err == nil && !needed {
			err = p.endNow(z)
		}
		if err != nil {
			p.o.Log.Error("a zygote is left to the next server", "zygote", z.id, "err", err)
		}
		errs = append(errs, z.leave())
	}
	return errors.Join(errs...)
}

// endNow ends a zygote and removes what it leaves.
func (p *Provider) endNow(z *zygote) error {
	ctx, cancel := context.WithTimeout(context.Background(), clearTimeout)
	defer cancel()
	if err := errors.Join(z.end(), p.removeAll(ctx, z)); err != nil {
		return err
	}
	return os.RemoveAll(z.dir)
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
		return nil, "", fmt.Errorf("%w: %s", sandbox.ErrGone, ref)
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
