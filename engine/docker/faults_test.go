package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/enginetest"
	"fermata/engine/sandbox"
)

// TestOperatorIntervenes does to a container what an operator might do, both while its
// program is paused and while it runs.
func TestOperatorIntervenes(t *testing.T) {
	c := daemon(t)
	p := open(t)
	e := enginetest.New(t, p)
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, id string) error
	}{
		{"kill", func(ctx context.Context, id string) error { return c.ContainerKill(ctx, id, "KILL") }},
		{"remove", func(ctx context.Context, id string) error {
			return c.ContainerRemove(ctx, id, container.RemoveOptions{Force: true})
		}},
		{"pause", func(ctx context.Context, id string) error {
			err := c.ContainerPause(ctx, id)
			// The kernel may fail to pause a busy container. An operator would try again.
			for tries := 0; err != nil && tries < 5; tries++ {
				err = c.ContainerPause(ctx, id)
			}
			return err
		}},
	} {
		t.Run(tt.name+" while paused", func(t *testing.T) {
			paused := e.Start("await ask()", 2*time.Second, "ask")
			id := containerOf(t, e, paused)
			if err := tt.do(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			outcome, err := e.Resume(paused, "1")
			// The server may notice the end before or after the claim.
			lost := err == nil && (outcome.Reason == core.SandboxLost || outcome.State == core.TimedOut)
			if !lost && !errors.Is(err, core.ErrExpired) {
				t.Errorf("Resume = %+v, %v, want a lost execution", outcome, err)
			}
			awaitRemoval(t, c, id)
		})
		t.Run(tt.name+" while running", func(t *testing.T) {
			paused := e.Start("await ask()\nwhile True: pass", 3*time.Second, "ask")
			id := containerOf(t, e, paused)
			done := make(chan core.Outcome, 1)
			go func() {
				outcome, err := e.Resume(paused, "1")
				if err != nil {
					t.Errorf("Resume = %v", err)
				}
				done <- outcome
			}()
			if err := tt.do(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if outcome := <-done; outcome.Reason != core.SandboxLost && outcome.State != core.TimedOut {
				t.Errorf("Resume = %+v, want a lost execution", outcome)
			}
			awaitRemoval(t, c, id)
		})
	}
	t.Run("the pool heals", func(t *testing.T) {
		found, err := p.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			if err := p.Destroy(t.Context(), s.Ref); err != nil {
				t.Fatal(err)
			}
		}
		// A start may still get a container whose end the server has not noticed, or one that
		// was being made. There are no more of those than were destroyed.
		for range len(found) + 1 {
			outcome, err := e.Engine.Start(t.Context(), engine.Start{
				Principal: enginetest.Principal, Session: "session", Code: []byte(`"print(1)"`), Timeout: time.Minute,
			})
			switch {
			case outcome.State == core.Completed:
				return
			case outcome.Reason != core.SandboxLost && !errors.Is(err, engine.ErrNoCapacity):
				t.Fatalf("after every container was removed a program ended %+v, %v", outcome, err)
			}
		}
		t.Errorf("all of %d programs were lost after every container was removed", len(found)+1)
	})
}

// TestKernelKills kills the first process of a container as the kernel does for lack of memory.
// Docker gets no word of the cause, as with gVisor at times.
func TestKernelKills(t *testing.T) {
	c := daemon(t)
	eachRuntime(t, func(t *testing.T, runtime string) {
		e := enginetest.New(t, open(t, withRuntime(runtime)))
		paused := e.Start("await ask()\nwhile True: pass", time.Minute, "ask")
		id := containerOf(t, e, paused)
		found, err := c.ContainerInspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", found.State.Pid)); err != nil || !strings.Contains(string(groups), id) {
			t.Skipf("the daemon runs on another machine: %v", err)
		}
		time.AfterFunc(time.Second, func() {
			if err := syscall.Kill(found.State.Pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})
		outcome, err := e.Resume(paused, "1")
		if err != nil || outcome.Reason != core.OutOfMemory {
			t.Errorf("Resume = %+v, %v, want %s", outcome, err, core.OutOfMemory)
		}
		awaitRemoval(t, c, id)
	})
}

// TestOrphan makes a container wait for a server that never comes.
func TestOrphan(t *testing.T) {
	c := daemon(t)
	eachRuntime(t, func(t *testing.T, runtime string) {
		p := open(t, withRuntime(runtime), func(o *Options) { o.Orphan = time.Second })
		id, err := p.Create(t.Context(), sandbox.Plain)
		if err != nil {
			t.Fatal(err)
		}
		awaitRemoval(t, c, id)
	})
}

// TestIdleIsReplaced checks that an idle container is replaced before it ends itself.
func TestIdleIsReplaced(t *testing.T) {
	c := daemon(t)
	p := open(t)
	e := enginetest.New(t, p, func(o *engine.Options) { o.MaxIdle = time.Second })
	found, err := p.List(t.Context())
	if err != nil || len(found) == 0 {
		t.Fatalf("List = %v, %v, want the first", found, err)
	}
	awaitRemoval(t, c, found[0].Ref)
	if outcome := e.Start("print(1)", time.Minute); outcome.State != core.Completed {
		t.Errorf("the next one's program ended %+v", outcome)
	}
}

// TestLabels checks the labels by which a later server finds containers.
func TestLabels(t *testing.T) {
	c := daemon(t)
	p, other := open(t), open(t, func(o *Options) { o.Installation = "another" })
	id, err := p.Create(t.Context(), sandbox.Plain)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{installationLabel: p.o.Installation, serverLabel: enginetest.Server} {
		if got := found.Config.Labels[label]; got != want {
			t.Errorf("label %s = %q, want %q", label, got, want)
		}
	}
	if len(found.HostConfig.Binds) > 0 || len(found.Mounts) > 0 {
		t.Errorf("mounts of the host: %v, %v, want none", found.HostConfig.Binds, found.Mounts)
	}
	if list, err := other.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("another installation lists %v, %v, want none", list, err)
	}
	if err := p.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// containerOf returns the container of a paused execution.
func containerOf(t *testing.T, e *enginetest.Engine, paused core.Outcome) string {
	t.Helper()
	if paused.State != core.Paused {
		t.Fatalf("got %+v, want a pause", paused)
	}
	records, err := e.Store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.State == string(core.Paused) {
			return r.Sandbox
		}
	}
	t.Fatalf("no paused record among %v", records)
	return ""
}

// awaitRemoval waits until a container is gone.
func awaitRemoval(t *testing.T, c *client.Client, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	removed, failed := c.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-removed:
	case err := <-failed:
		if !errdefs.IsNotFound(err) {
			t.Errorf("container %s is still there: %v", id, err)
		}
	}
}
