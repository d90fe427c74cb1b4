// Package docker is the provider of sandboxes that are Docker containers, the one for
// production: each execution has a hardened container of its own.
//
// The server talks to a container's first process over the attached stream. No directory
// of the host is mounted, the daemon may be on another machine, and a later server can
// attach again. The provider only carries the bytes of the streams.
package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"fermata/engine/sandbox"
)

const (
	// createTimeout bounds the creation of a container, including the start of its first
	// process.
	createTimeout = 60 * time.Second
	// giveUpTimeout bounds the wait for the daemon's answer to a creation that nobody waits
	// for any more.
	giveUpTimeout = 5 * time.Second
	// cleanupTimeout bounds the removal of a container that could not be started.
	cleanupTimeout = 5 * time.Second
	// askTimeout bounds each request to the daemon when a server starts, and in List.
	askTimeout = 8 * time.Second
	// retryDelay is how long Destroy waits between two attempts.
	retryDelay = 100 * time.Millisecond
)

// Labels of every container. They may not change, because later servers look for them.
const (
	installationLabel = "fermata.installation"
	serverLabel       = "fermata.server"
)

// Options are the options of a Provider. All sizes are in bytes. The environment names the
// daemon, as for Docker's own client: DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH.
type Options struct {
	// Image is the sandbox image.
	Image string
	// Runtime is the OCI runtime, empty for the daemon's default.
	Runtime string
	// Installation is a name that this server shares with its predecessors and with all
	// servers of the same store, and with no others. List finds their containers by it.
	Installation string
	// Server is this server's instance. Its containers are labelled with it.
	Server string
	// Limits bound each container. What is in its file systems counts as memory, too.
	sandbox.Limits
	// Orphan is how long a sandbox that hears nothing from a server waits before it ends
	// itself. A server sends nothing while a program runs or is paused, so Orphan must be
	// longer than the longest run and the longest pause. Idle sandboxes must be replaced
	// before it is over.
	Orphan time.Duration
	// Log gets what the first processes of containers write to stderr.
	Log *slog.Logger
}

// A Provider is a sandbox.Provider of containers.
type Provider struct {
	o      Options
	client *client.Client
	config container.Config
	limits container.HostConfig
}

var _ sandbox.Provider = (*Provider)(nil)

// New returns a provider. It returns an error that says what is missing if there is no
// daemon or no image, or if the daemon cannot enforce all limits.
func New(ctx context.Context, o Options) (_ *Provider, err error) {
	p := &Provider{o: o}
	p.client, err = client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("make docker client: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.client.Close())
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("the daemon does not answer within %s", askTimeout))
	defer cancel()
	info, err := p.client.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the docker daemon: %w", cmp.Or(context.Cause(ctx), err))
	}
	if err := p.check(info); err != nil {
		return nil, err
	}
	if _, err := p.client.ImageInspect(ctx, o.Image); err != nil {
		return nil, p.explain(fmt.Errorf("look for the sandbox image: %w", cmp.Or(context.Cause(ctx), err)))
	}
	// More processors than there are would be no limit, and the daemon refuses them.
	p.o.CPUs = min(o.CPUs, float64(info.NCPU))
	if p.config, p.limits, err = p.o.container(ownKernel(info, o.Runtime), info.CgroupVersion != "2"); err != nil {
		return nil, err
	}
	return p, nil
}

// A need is something that sandboxes cannot do without. The field have tells whether a
// daemon has it.
type need struct {
	what string
	have bool
}

func needs(info system.Info) []need {
	return []need{
		{"Linux containers", info.OSType == "linux"},
		{"memory limits", info.MemoryLimit},
		{"process limits", info.PidsLimit},
		{"processor limits", info.CPUCfsQuota},
		{"seccomp", strings.Contains(strings.Join(info.SecurityOptions, " "), "name=seccomp")},
	}
}

// wayToLimits tells an operator how to get a daemon that has all needs.
const wayToLimits = "a rootless daemon needs cgroup version 2 with the controllers cpu, memory and pids delegated"

// hasRuntime reports whether a daemon has a runtime. The empty name is its default runtime.
func hasRuntime(info system.Info, runtime string) bool {
	_, ok := info.Runtimes[runtime]
	return ok || runtime == ""
}

// check refuses a daemon that lacks what sandboxes need. Docker itself would only warn, and
// leave out a limit that it cannot enforce.
func (p *Provider) check(info system.Info) error {
	var missing []string
	for _, n := range needs(info) {
		if !n.have {
			missing = append(missing, n.what)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("this docker daemon does not offer %s; %s", strings.Join(missing, ", "), wayToLimits)
	}
	if !hasRuntime(info, p.o.Runtime) {
		return fmt.Errorf("this docker daemon has no runtime %q: name it under \"runtimes\" in its daemon.json", p.o.Runtime)
	}
	if !info.SwapLimit {
		p.o.Log.Warn("this docker daemon cannot limit swap: programs may use it beyond their memory limit")
	}
	return nil
}

// ownKernel reports whether a runtime is gVisor, whose containers have a kernel of their
// own. To the host that kernel is an ordinary process, with threads of its own.
func ownKernel(info system.Info, runtime string) bool {
	if runtime == "" {
		runtime = info.DefaultRuntime
	}
	return strings.Contains(runtime+info.Runtimes[runtime].Path, "runsc")
}

// explain adds to the error that the image is missing how to build the image.
func (p *Provider) explain(err error) error {
	if !errdefs.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("%w\nThe sandbox image does not exist. To build it, run "+
		"`docker build --target sandbox -t %s .` in Fermata's source directory", err, p.o.Image)
}

// Create starts a container for one kind of programs. If ctx ends meanwhile, Create removes the
// container again. It first waits for the daemon's answer, for up to giveUpTimeout: a daemon
// completes even requests that were given up, and a container that it has not created yet
// cannot be removed.
func (p *Provider) Create(ctx context.Context, kind sandbox.Kind) (ref string, err error) {
	waiting := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	defer context.AfterFunc(waiting, func() { time.AfterFunc(giveUpTimeout, cancel) })()
	name := "fermata-" + strings.ToLower(rand.Text())[:16]
	defer func() {
		if err == nil {
			return
		}
		// The container is removed by its name: it may exist although the answer to its
		// creation did not arrive.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		ref = ""
		if left := p.Destroy(ctx, name); left != nil {
			ref, err = name, errors.Join(err, left)
		}
	}()
	// The client library changes its arguments.
	config, limits := p.config, p.limits
	config.Entrypoint = append(slices.Clone(config.Entrypoint), string(kind))
	created, err := p.client.ContainerCreate(ctx, &config, &limits, nil, nil, name)
	if err != nil {
		return "", p.explain(fmt.Errorf("create container: %w", err))
	}
	if err := context.Cause(waiting); err != nil {
		return "", err
	}
	if err := p.client.ContainerStart(ctx, created.ID, container.StartOptions{}); err != nil {
		return "", fmt.Errorf("start container: %w", err)
	}
	return created.ID, context.Cause(waiting)
}

// Attach opens the stream to a container's first process.
func (p *Provider) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	s, err := p.attach(ctx, ref)
	if err == nil {
		return s, nil
	}
	// The client library does not say why it could not attach.
	found, inspectErr := p.client.ContainerInspect(ctx, ref)
	if errdefs.IsNotFound(inspectErr) || inspectErr == nil && !found.State.Running {
		err := fmt.Errorf("%w: %s", sandbox.ErrGone, ref)
		if inspectErr == nil && found.State.OOMKilled {
			err = errors.Join(sandbox.ErrOutOfMemory, err)
		}
		return nil, err
	}
	return nil, fmt.Errorf("attach to container %s: %w", ref, err)
}

// Destroy removes a container. If the daemon fails to, Destroy asks again until ctx ends.
func (p *Provider) Destroy(ctx context.Context, ref string) error {
	for {
		err := p.client.ContainerRemove(ctx, ref, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) {
			// Not every daemon can kill a container that an operator has paused.
			_ = p.client.ContainerUnpause(ctx, ref)
		}
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
			return fmt.Errorf("remove container %s: %w", ref, err)
		}
	}
}

// List returns every container of this installation.
func (p *Provider) List(ctx context.Context) ([]sandbox.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	containers, err := p.client.ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", installationLabel+"="+p.o.Installation)),
	})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	list := make([]sandbox.Sandbox, len(containers))
	for i, c := range containers {
		list[i] = sandbox.Sandbox{Ref: c.ID, Server: c.Labels[serverLabel]}
	}
	return list, nil
}

// Close closes the connections to the daemon.
func (p *Provider) Close() error { return p.client.Close() }
