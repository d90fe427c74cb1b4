//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/engine/sandbox"
)

// openIn returns a provider in a directory, as a server after those that had it before.
func openIn(t *testing.T, dir, server string) *Provider {
	t.Helper()
	began := time.Now()
	p, err := New(t.Context(), Options{
		Dir: dir, Server: server, Python: bare(t),
		Limits: sandbox.Limits{Memory: 512 << 20, CPUs: 2, PIDs: 32, Output: 1 << 20, Disk: 32 << 20},
		Orphan: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > startLimit {
		t.Errorf("New took %v, want at most %v", took, startLimit)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return p
}

const startLimit = 10 * time.Second

// bare is an interpreter without libraries, which starts in no time.
func bare(t *testing.T) string {
	t.Helper()
	parent, err := os.UserCacheDir() // Sandboxes cover the directory of temporary files.
	if os.Geteuid() == 0 {
		parent, err = "/var/cache", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "fermata-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	out, err := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("PYTHON"), "python3"), "-m", "venv", "--without-pip", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("make an interpreter: %v\n%s", err, out)
	}
	return filepath.Join(dir, "bin", "python3")
}

// die cuts a provider off from its zygotes as the end of its server would. They stay.
func (p *Provider) die(t *testing.T) {
	t.Helper()
	all := p.zygotes
	all.unwatch()
	all.watched.Wait()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for _, z := range all.all {
		if err := z.leave(); err != nil {
			t.Error(err)
		}
	}
}

func make1(t *testing.T, p *Provider) string {
	t.Helper()
	ref, err := p.Create(t.Context(), sandbox.Plain)
	if err != nil {
		t.Fatalf("Create = %v", err)
	}
	return ref
}

func pidOf(t *testing.T, z *zygote) int {
	t.Helper()
	pid := z.cmd.Process.Pid
	t.Cleanup(func() { _ = z.cmd.Process.Signal(syscall.SIGCONT) })
	return pid
}

// soon returns nil when check does, or its last error after a while.
func soon(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !check(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s, after 20s", what)
		}
	}
}

func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// A zygote that an earlier server left and that hangs does not hold up the next server, and
// ends when none of its sandboxes is needed any more.
func TestZygoteOfAnEarlierServerHangs(t *testing.T) {
	for _, sandboxes := range []int{0, 2} {
		dir := filepath.Join(t.TempDir(), "sandboxes")
		first := openIn(t, dir, "a.1")
		for range sandboxes {
			make1(t, first)
		}
		z := first.zygotes.newest
		if !z.answers(t.Context()) {
			t.Fatal("the zygote does not answer")
		}
		if sandboxes == 0 {
			// One that has nothing to keep ends with its server, unless it hangs before.
			if err := syscall.Kill(pidOf(t, z), syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		first.die(t)
		if err := syscall.Kill(pidOf(t, z), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		second := openIn(t, dir, "a.2")
		left, err := second.List(t.Context())
		if err != nil || len(left) != sandboxes {
			t.Errorf("List = %v, %v, want %d of the earlier server", left, err, sandboxes)
		}
		make1(t, second)
		for i, s := range left {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			err := second.Destroy(ctx, s.Ref)
			cancel()
			if err == nil && i == 0 {
				t.Error("Destroy by a zygote that hangs = nil, want an error")
			}
		}
		soon(t, "the zygote that hangs has not ended", func() bool { return !z.alive() && gone(z) })
		for _, s := range left {
			if err := second.Destroy(t.Context(), s.Ref); err != nil {
				t.Errorf("Destroy of %s = %v, want nil when its zygote has ended", s.Ref, err)
			}
		}
		if _, err := os.Stat(z.dir.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory of the zygote: %v, want it removed", err)
		}
	}
}

func gone(z *zygote) bool {
	select {
	case <-z.gone:
		return true
	default:
		return false
	}
}

// A zygote that hangs is replaced: what waits for one of its sandboxes is told, and the next
// sandbox comes from another one.
func TestZygoteHangs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandboxes")
	p := openIn(t, dir, "a.1")
	lives := make1(t, p)
	z := p.zygotes.newest
	if err := syscall.Kill(pidOf(t, z), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waits := make1(t, p)
	stream, err := p.Attach(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := stream.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) && time.Since(began) < time.Second {
		t.Errorf("Read of a sandbox that is not made = %v after %v, want an error when the zygote is given up", err, time.Since(began))
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("the zygote was given up after %v", took)
	}
	_ = stream.Close()
	next := make1(t, p)
	if strings.HasPrefix(next, z.dir.id) {
		t.Error("the next sandbox comes from the zygote that hangs")
	}
	if !gone(z) && !z.alive() {
		t.Error("the zygote has ended though a sandbox of it lives")
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 {
		t.Errorf("List = %v, want three: %s, which lives, %s, which was never made, and %s", list, lives, waits, next)
	}
	for _, s := range list {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_ = p.Destroy(ctx, s.Ref) // Those of the zygote that hangs do not end at once.
		cancel()
	}
	soon(t, "the zygote that hangs has not ended", func() bool { return gone(z) })
	for _, s := range list {
		if err := p.Destroy(t.Context(), s.Ref); err != nil {
			t.Errorf("Destroy of %s = %v", s.Ref, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if !empty(dir) {
		t.Error("something is left in the directory of sandboxes")
	}
}

// A zygote that dies with a sandbox that nobody has attached to leaves no descriptor open.
func TestDeadZygoteLeavesNoDescriptors(t *testing.T) {
	p := openIn(t, filepath.Join(t.TempDir(), "sandboxes"), "a.1")
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	die := func() {
		t.Helper()
		ref := make1(t, p)
		z := p.zygotes.newest
		if err := syscall.Kill(z.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		soon(t, "the zygote has not died", func() bool { return gone(z) })
		for _, ref := range []string{ref, make1(t, p)} {
			if err := p.Destroy(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
	}
	die()
	before := descriptors()
	for range 3 {
		die()
	}
	// The descriptor of a zygote's stdin closes when the zygote has read it.
	soon(t, "more descriptors are open after three zygotes have died", func() bool { return descriptors() <= before })
}

// What a dead zygote left and cannot be removed does not keep a server from starting: it is
// listed, and goes when it can.
func TestBusyCgroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandboxes")
	p := openIn(t, filepath.Join(t.TempDir(), "others"), "b.1")
	if p.cgroups == nil {
		t.Skip("no cgroups here")
	}
	if err := os.MkdirAll(filepath.Join(dir, "dead"), 0o700); err != nil {
		t.Fatal(err)
	}
	group, err := p.cgroups.create("leftover")
	if err != nil {
		t.Fatal(err)
	}
	group.close()
	for _, name := range []string{"leftover" + socketSuffix, serverFile} {
		if err := os.WriteFile(filepath.Join(dir, "dead", name), []byte("a.1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	for _, parent := range p.cgroups.parents {
		if err := os.WriteFile(filepath.Join(parent, "leftover", "cgroup.procs"), []byte(strconv.Itoa(sleeper.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	p = openIn(t, dir, "a.2")
	_ = sleeper.Wait() // It was killed.
	if !empty(filepath.Join(dir, "dead")) {
		t.Error("what the dead zygote left is still there")
	}
	if list, err := p.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v, want none", list, err)
	}
}
