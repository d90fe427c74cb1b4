//go:build linux

package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"fermata/engine/internal/seccomp"
	"fermata/engine/sandbox"
)

// A Provider is a sandbox.Provider of process sandboxes.
type Provider struct {
	python  interpreter
	cgroups *cgroups
	users   *users
	zygotes *zygotes
}

var _ sandbox.Provider = (*Provider)(nil)

// New returns a provider whose zygote is running. It fails, with what is missing,
// on a machine that cannot isolate programs.
func New(ctx context.Context, o Options) (*Provider, error) {
	if _, err := kernel(); err != nil {
		return nil, err
	}
	l := launcher{o: o}
	var err error
	if l.python, err = findPython(ctx, o.Python); err != nil {
		return nil, err
	}
	if l.filter, err = seccomp.Filter(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make sandbox directory: %w", err)
	}
	l.cgroups, err = findCgroups(o)
	if err != nil && !o.CgroupsOptional {
		return nil, o.explainCgroups(err)
	}
	if err != nil {
		o.Log.Warn("no cgroup limits, only those of each process apply", "err", err)
	}
	if l.ids, err = findIdentities(ctx, o.Sandboxes); err != nil {
		o.Log.Warn("all sandboxes run as the server's user", "err", err)
		l.ids = identities{}
	}
	z, err := openZygotes(ctx, l)
	if err != nil {
		return nil, errors.Join(err, z.close())
	}
	return &Provider{python: l.python, cgroups: l.cgroups, users: z.users, zygotes: z}, nil
}

// Create starts a sandbox of a kind.
func (p *Provider) Create(ctx context.Context, kind sandbox.Kind) (string, error) {
	z, err := p.zygotes.current(ctx)
	if err != nil {
		return "", err
	}
	user, err := p.users.take()
	if err != nil {
		return "", fmt.Errorf("create sandbox: %w", err)
	}
	name := fmt.Sprint(strings.ToLower(rand.Text())[:16], userSeparator, user)
	if err := p.spawn(z, name, kind, user); err != nil {
		err = fmt.Errorf("create sandbox: %w", err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTimeout)
		defer cancel()
		if left := p.zygotes.remove(ctx, z, name); left != nil {
			return z.dir.id + "/" + name, errors.Join(err, left)
		}
		return "", err
	}
	return z.dir.id + "/" + name, nil
}

func (p *Provider) spawn(z *zygote, name string, kind sandbox.Kind, user uint32) error {
	// The supervisor gets the listening end; whoever knows the path can attach.
	listener, err := z.dir.listen(name)
	if err != nil {
		return err
	}
	defer listener.Close()
	group, err := p.cgroups.create(name)
	if err != nil {
		return err
	}
	defer group.close()
	return z.spawn(name, kind, user, listener, group)
}

// Attach opens the stream to a sandbox's supervisor.
func (p *Provider) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	z, name, err := p.find(ref)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", z.dir.socket(name))
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s", sandbox.ErrGone, ref)
		if !z.alive() {
			if why := z.whyEnded(); why != "" {
				err = explain(fmt.Errorf("%w: %s", err, why))
			}
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("attach to sandbox %s: %w", ref, err)
	}
	s := &stream{Conn: conn, zygote: z}
	z.expect(s)
	return s, nil
}

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
		err = p.zygotes.remove(ctx, z, name)
	}
	if err != nil {
		err = fmt.Errorf("destroy sandbox %s: %w", ref, err)
	}
	return errors.Join(err, p.zygotes.retire(ctx, z))
}

// List returns every sandbox, those of earlier servers too.
func (p *Provider) List(context.Context) ([]sandbox.Sandbox, error) { return p.zygotes.list() }

// Close lets go of all sandboxes. Those that were not destroyed stay, and so do the zygotes
// that have made them.
func (p *Provider) Close() error { return p.zygotes.close() }

// find splits a reference into its zygote and the sandbox's name.
func (p *Provider) find(ref string) (*zygote, string, error) {
	id, name, ok := strings.Cut(ref, "/")
	if !ok || name == "" || strings.ContainsAny(name, "/.") {
		return nil, "", fmt.Errorf("malformed sandbox reference %q", ref)
	}
	z, ok := p.zygotes.find(id)
	if !ok {
		return nil, "", fmt.Errorf("%w: %s", sandbox.ErrGone, ref)
	}
	return z, name, nil
}
