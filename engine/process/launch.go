//go:build linux

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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"fermata/python"
)

// A launcher starts zygotes.
type launcher struct {
	o       Options
	python  interpreter
	filter  []byte
	ids     identities
	cgroups *cgroups
}

// config is what the zygote reads on its stdin: Config of config.py.
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

// cloneFlags are the namespaces that the zygote begins in.
const cloneFlags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
	syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// start starts a zygote in a directory of its own.
func (l launcher) start(ctx context.Context) (_ *zygote, err error) {
	id := strings.ToLower(rand.Text())[:12]
	d, err := makeDir(l.o.Dir, id, l.o.Server)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close(), os.RemoveAll(filepath.Join(l.o.Dir, id)))
		}
	}()
	if err != nil {
		return nil, err
	}
	runner, err := fs.Sub(python.Runner, "runner")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(d.path, "runner"), runner); err != nil {
		return nil, fmt.Errorf("write runner: %w", err)
	}
	listener, err := d.listen(control)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	z := newZygote(d, l.cgroups)
	z.words = &tail{log: l.o.Log}
	if z.cmd, err = l.launch(ctx, z, listener); err != nil {
		return nil, err
	}
	if err := z.connect(); err != nil {
		return nil, errors.Join(err, z.cmd.Process.Kill())
	}
	return z, nil
}

// launch starts the process of a zygote, which listens on listener.
func (l launcher) launch(ctx context.Context, z *zygote, listener *os.File) (*exec.Cmd, error) {
	stdin, err := json.Marshal(l.config(z.dir.path))
	if err != nil {
		return nil, err
	}
	// By a path that tells nothing of the state directory: programs see it in modules.
	args := []string{l.python.path, "-I", "-B", "/proc/self/fd/4", "zygote"}
	if l.ids.helped {
		args = append([]string{"/bin/sh", "-c", gate, "sh"}, args...)
	}
	// The zygote outlives ctx, which is that of the request that happened to need it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	cmd.Dir = "/"
	// Nothing of the server's environment, which may hold secrets. The C library is to keep
	// large results in pages of 2 MiB, where the kernel leaves that to programs.
	cmd.Env = []string{"GLIBC_TUNABLES=glibc.malloc.hugetlb=1"}
	cmd.Stderr = z.words
	runner, err := os.Open(filepath.Join(z.dir.path, "runner"))
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
	if l.ids.helped {
		return cmd, l.startHelped(ctx, cmd, stdin)
	}
	cmd.Stdin = bytes.NewReader(stdin)
	l.ids.mapOwn(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return nil, explain(err)
	}
	return cmd, nil
}

func (l launcher) config(dir string) config {
	c := config{
		Root:      filepath.Join(dir, "root"),
		Hide:      append([]string{l.o.Dir}, l.o.Hide...),
		FirstUser: l.ids.firstUser,
		Disk:      l.o.Disk,
		Output:    l.o.Output,
		PIDs:      l.o.PIDs,
		Orphan:    l.o.Orphan.Seconds(),
		Seccomp:   hex.EncodeToString(l.filter),
	}
	if !l.cgroups.limitsMemory() {
		c.Data = l.o.Memory
	}
	return c
}

// startHelped starts the gate, has its users mapped, and lets it become the zygote.
func (l launcher) startHelped(ctx context.Context, cmd *exec.Cmd, config []byte) error {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return explain(err)
	}
	err = l.ids.mapInto(ctx, cmd.Process.Pid)
	if err == nil {
		_, err = stdin.Write(append([]byte("\n"), config...))
	}
	if err = errors.Join(err, stdin.Close()); err != nil {
		err = errors.Join(fmt.Errorf("start zygote: %w", err), cmd.Process.Kill())
		_ = cmd.Wait() // It was killed.
	}
	return err
}
