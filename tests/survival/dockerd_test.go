//go:build linux

package survival

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	dockerapi "github.com/docker/docker/client"

	"fermata/tests/harness"
)

// daemonTimeout is how long a Docker daemon may take until it serves, and to end.
const daemonTimeout = 60 * time.Second

// A dockerDaemon is a Docker daemon that one test has for itself and may kill.
type dockerDaemon struct {
	dir    string
	client *dockerapi.Client
	cmd    *exec.Cmd
	log    *harness.Log
}

// daemonAlone starts a daemon that has the image harness.BareImage.
func daemonAlone(t *testing.T) *dockerDaemon {
	t.Helper()
	harness.NeedDocker(t)
	if os.Geteuid() != 0 {
		if harness.InCI {
			t.Fatal("a Docker daemon needs root")
		}
		t.Skip("a Docker daemon needs root")
	}
	if err := harness.BuildBareImage(); err != nil {
		t.Fatal(err)
	}
	// The path is short for the sake of sockets, and on a disk for the sake of images.
	dir, err := os.MkdirTemp("/var/tmp", "fd-") //nolint:usetesting // the path would be too long
	if err != nil {
		t.Fatal(err)
	}
	d := &dockerDaemon{dir: dir, log: &harness.Log{}}
	t.Cleanup(func() {
		if err := d.remove(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of the Docker daemon:\n%s", d.log.Tail())
		}
	})
	if d.client, err = dockerapi.NewClientWithOpts(dockerapi.WithHost(d.host()), dockerapi.WithAPIVersionNegotiation()); err != nil {
		t.Fatal(err)
	}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	load := exec.CommandContext(t.Context(), "/bin/sh", "-c", `docker save "$1" | docker --host "$2" load`, "sh", harness.BareImage, d.host())
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("load the image %s: %v\n%s", harness.BareImage, err, out)
	}
	return d
}

func (d *dockerDaemon) host() string { return "unix://" + filepath.Join(d.dir, "s") }

// start starts the daemon and waits until it serves.
func (d *dockerDaemon) start() error {
	d.cmd = exec.Command("dockerd", "--host", d.host(), "--data-root", filepath.Join(d.dir, "data"), "--exec-root", filepath.Join(d.dir, "run"),
		"--pidfile", filepath.Join(d.dir, "pid"), "--bridge", "none", "--iptables=false")
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	if err := d.cmd.Start(); err != nil {
		return err
	}
	return harness.Within(daemonTimeout, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := d.client.Ping(ctx)
		return err
	})
}

// kill ends the daemon as a crash would; its containers stay.
func (d *dockerDaemon) kill() error {
	err := d.cmd.Process.Signal(syscall.SIGKILL)
	_ = d.cmd.Wait() // It was killed.
	// The daemon's containerd dies a moment later. A new daemon that finds it dying would wait for
	// it in vain.
	text, readErr := os.ReadFile(filepath.Join(d.dir, "run", "containerd", "containerd.pid"))
	pid, parseErr := strconv.Atoi(string(text))
	gone := harness.Within(daemonTimeout, func() error {
		if pid > 0 && syscall.Kill(pid, 0) == nil {
			return fmt.Errorf("containerd, process %d, outlives the Docker daemon", pid)
		}
		return nil
	})
	return errors.Join(err, readErr, parseErr, gone, os.Remove(filepath.Join(d.dir, "pid")))
}

// stop ends the daemon as an operator would. Its containers end with it.
func (d *dockerDaemon) stop() error {
	timer := time.AfterFunc(daemonTimeout, func() { _ = d.cmd.Process.Kill() }) // Wait then returns an error.
	defer timer.Stop()
	return errors.Join(d.cmd.Process.Signal(syscall.SIGTERM), d.cmd.Wait())
}

// remove ends the daemon and removes its files.
func (d *dockerDaemon) remove() error {
	err := errors.Join(d.stop(), d.client.Close())
	// The daemon leaves the network namespaces of its containers mounted.
	mounts, readErr := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if mount := strings.Fields(line)[1]; strings.HasPrefix(mount, d.dir+"/") {
			err = errors.Join(err, syscall.Unmount(mount, syscall.MNT_DETACH))
		}
	}
	return errors.Join(err, readErr, os.RemoveAll(d.dir))
}

// left returns an error if the daemon has anything besides images.
func (d *dockerDaemon) left(ctx context.Context) error {
	containers, err := d.client.ContainerList(ctx, container.ListOptions{All: true})
	networks, netErr := d.client.NetworkList(ctx, network.ListOptions{})
	volumes, volErr := d.client.VolumeList(ctx, volume.ListOptions{})
	// Without a bridge the networks are "none" and "host".
	return errors.Join(err, netErr, volErr, harness.AtMost("containers", len(containers), 0),
		harness.AtMost("networks", len(networks), 2), harness.AtMost("volumes", len(volumes.Volumes), 0))
}

// harm picks a container and does to it what an operator or the machine might do.
func (d *dockerDaemon) harm(ctx context.Context) {
	// An error means that the container or the daemon has gone, which is fine here.
	list, err := d.client.ContainerList(ctx, container.ListOptions{})
	if err != nil || len(list) == 0 {
		return
	}
	id := list[rand.N(len(list))].ID
	switch rand.N(4) {
	case 0:
		_ = d.client.ContainerKill(ctx, id, "KILL")
	case 1:
		_ = d.client.ContainerRemove(ctx, id, container.RemoveOptions{Force: true})
	case 2:
		_ = d.client.ContainerStop(ctx, id, container.StopOptions{})
	case 3:
		_ = d.client.ContainerPause(ctx, id)
	}
}

// TestContainersAndDaemonKilled runs programs while containers are killed, removed, stopped and
// paused, and while the Docker daemon is killed and restarted. Every program completes or ends with
// a clear error, and nothing is left.
func TestContainersAndDaemonKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for a minute")
	}
	t.Parallel()
	total, daemonKills := harness.Count(40, 1000), harness.Count(2, 10)
	d := daemonAlone(t)
	server, err := harness.NewServer(harness.With(harness.Common, harness.DockerSettings, harness.Settings{"KEEP": "1s", "MAX_SANDBOXES": "12"}))
	if err != nil {
		t.Fatal(err)
	}
	server.DockerHost = d.host()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if server.Cmd.ProcessState == nil {
			_ = server.Kill() // The test has failed before.
		}
	})
	c := server.Alice()
	if err := harness.FiveRounds(t.Context(), c, 0); err != nil {
		t.Fatal(err)
	}
	before := server.Usage()

	ctx, finish := context.WithCancel(t.Context())
	var harms, clients sync.WaitGroup
	var next, completed atomic.Int64
	harms.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(rand.N(time.Second))
			d.harm(ctx)
		}
	})
	for range 6 {
		clients.Go(func() {
			for next.Add(1) <= int64(total) && !t.Failed() {
				ok, err := survive(t.Context(), c)
				if err != nil {
					t.Error(err)
				}
				if ok {
					completed.Add(1)
				}
			}
		})
	}
	for n := range daemonKills {
		err := harness.Within(10*time.Minute, func() error {
			if done := next.Load(); done < int64((n+1)*total/(daemonKills+1)) && !t.Failed() {
				return fmt.Errorf("only %d programs have run", done)
			}
			return nil
		})
		if n%2 == 0 {
			err = errors.Join(err, d.kill())
		} else {
			err = errors.Join(err, d.stop())
		}
		if err := errors.Join(err, d.start()); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	finish()
	harms.Wait()
	t.Logf("%d of %d programs completed", completed.Load(), total)
	if completed.Load() == 0 {
		t.Error("no program completed")
	}
	err = harness.Within(time.Minute, func() error { return harness.FiveRounds(t.Context(), c, 1) })
	if err != nil {
		t.Errorf("after all that: %v", err)
	}
	err = harness.Within(time.Minute, func() error {
		after := server.Usage()
		return errors.Join(harness.AtMost("descriptors", after.Descriptors, before.Descriptors+8), harness.AtMost("files", after.Files, before.Files))
	})
	if err != nil {
		t.Error(err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if err := harness.Within(30*time.Second, func() error { return d.left(t.Context()) }); err != nil {
		t.Error(err)
	}
}

// survive runs a program that may lose its sandbox at any time, and reports whether it completed.
// A program may end with a clear error. It must not hang, and its answer must not be wrong.
func survive(ctx context.Context, c harness.Client) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var body any = harness.Program{Code: "a = await ask(n=1)\nb = await ask(n=2)\nprint(a, b)", Tools: harness.Tools("ask"), Timeout: 5000}
	for {
		a, err := c.Send(ctx, body)
		switch {
		case err != nil:
			return false, err
		case a.HTTPStatus == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
			time.Sleep(100 * time.Millisecond)
		case a.Status == "tool_call_required":
			body = a.Continue(harness.Echo)
		case a.Status == "completed" && a.Stdout == "{'n': 1} {'n': 2}\n":
			return true, nil
		case a.Status == "error" && a.Error != "" && a.HTTPStatus < 500:
			return false, nil
		default:
			return false, fmt.Errorf("got %v, want a pause, the end or a clear error", a)
		}
	}
}
