// Package docker makes sandboxes out of Docker containers, the engine for
// production: one hardened container for each execution, made ahead of need.
//
// The server talks to a container's first process over the attached stream: no
// directory of the host is mounted, the daemon may be on another machine, and a
// later server attaches again. What is said on the streams is the engine's.
package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
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
	// createTimeout bounds the making of a container, up to its first process.
	createTimeout = 60 * time.Second
	// giveUpTimeout is how long the daemon may take to answer when nobody waits for the
	// container any more.
	giveUpTimeout = 5 * time.Second
	// cleanupTimeout bounds the removal of a container that could not be started.
	cleanupTimeout = 5 * time.Second
	// askTimeout bounds what is asked of the daemon when a server starts, and a list.
	askTimeout = 8 * time.Second
	// retryDelay is how long Destroy rests between two tries.
	retryDelay = 100 * time.Millisecond
)

// Labels of every container. They may not change: a later server looks for them.
const (
	installationLabel = "fermata.installation"
	serverLabel       = "fermata.server"
)

// Options are what a Provider needs to know. All sizes are in bytes. Which daemon
// it is comes from the environment, as for Docker's own client: DOCKER_HOST,
// DOCKER_TLS_VERIFY, DOCKER_CERT_PATH.
type Options struct {
	// Image is the sandbox image.
	Image string
	// Runtime is the OCI runtime, empty for the daemon's default.
	Runtime string
	// Installation names what this server shares with its earlier selves and with no
	// server of another store: what they left over is found by it.
	Installation string
	// Server is this server's instance, which its sandboxes are marked with.
	Server string
	// Limits bound each container. What is in its file systems counts as memory, too.
	sandbox.Limits
	// Orphan is how long a sandbox waits for a word from a server before it ends
	// itself. No server speaks while a program runs or is paused, so it must be
	// longer than the longest of both; and idle ones must be replaced before it.
	Orphan time.Duration
	// Log gets what the first processes of containers have to complain of.
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

// New returns a provider. It fails, with what is missing, if there is no daemon, no
// image, or a limit that the daemon cannot keep.
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
	// More than there are is no limit, and refused by the daemon.
	p.o.CPUs = min(o.CPUs, float64(info.NCPU))
	if p.config, p.limits, err = p.o.container(ownKernel(info, o.Runtime), info.CgroupVersion != "2"); err != nil {
		return nil, err
	}
	return p, nil
}

// A need is something that sandboxes cannot do without, and whether a daemon has it.
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

// wayToLimits tells an operator how a daemon comes to have what needs asks for.
const wayToLimits = "a rootless one needs cgroup version 2 with the controllers cpu, memory and pids delegated"

// hasRuntime reports whether a daemon has a runtime, the empty one being its default.
func hasRuntime(info system.Info, runtime string) bool {
	_, ok := info.Runtimes[runtime]
	return ok || runtime == ""
}

// check refuses a daemon that cannot do what a sandbox needs. It would leave out a
// limit that it cannot keep, with no more than a warning.
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

// ownKernel reports whether a runtime is gVisor, whose containers have a kernel of
// their own: an ordinary process to the machine, with threads that nobody counted.
func ownKernel(info system.Info, runtime string) bool {
	if runtime == "" {
		runtime = info.DefaultRuntime
	}
	return strings.Contains(runtime+info.Runtimes[runtime].Path, "runsc")
}

// explain adds to an error that the image is missing how to make it.
func (p *Provider) explain(err error) error {
	if !errdefs.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("%w\nThe sandbox image is not there. In Fermata's source directory, "+
		"`docker build --target sandbox -t %s .` makes it", err, p.o.Image)
}

// Create starts a container. If ctx ends meanwhile it is removed again, but first
// the daemon's answer is waited for, for a while: a daemon goes on with a request that
// was given up, and what it is about to make cannot be removed yet.
func (p *Provider) Create(ctx context.Context, _ sandbox.Kind) (ref string, err error) {
	waiting := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	defer context.AfterFunc(waiting, func() { time.AfterFunc(giveUpTimeout, cancel) })()
	name := "fermata-" + strings.ToLower(rand.Text())[:16]
	defer func() {
		if err == nil {
			return
		}
		// By its name: it may have been made although the answer did not arrive.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		ref = ""
		if left := p.Destroy(ctx, name); left != nil {
			ref, err = name, errors.Join(err, left)
		}
	}()
	// The client library changes what it is given.
	config, limits := p.config, p.limits
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
		return nil, fmt.Errorf("%w: %s", sandbox.ErrGone, ref)
	}
	return nil, fmt.Errorf("attach to container %s: %w", ref, err)
}

// Destroy removes a container. What the daemon cannot do now it is asked again and
// again until ctx ends.
func (p *Provider) Destroy(ctx context.Context, ref string) error {
	for {
		err := p.client.ContainerRemove(ctx, ref, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) {
			// Not every daemon can kill what an operator has paused.
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

// Close lets go of the daemon.
func (p *Provider) Close() error { return p.client.Close() }
