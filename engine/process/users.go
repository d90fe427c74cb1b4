//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The users of sandboxes where the server is root: the number of the first one on the host,
// and how many there are.
const (
	firstUser = 200_000
	userCount = 60_000
)

// identities are the users and groups of the host that sandboxes run as: number n of
// the zygote's namespace, from 1 to count, is firstUser+n-1 and firstGroup+n-1 there.
// Number 0 is the server's own user, and the only one if count is 0.
type identities struct {
	firstUser, firstGroup, count int
	// helped says that newuidmap and newgidmap map the identities, since the server may not.
	helped bool
}

// findIdentities returns the identities that this server may use. If there are not enough
// for so many sandboxes it returns none, and an error that tells why.
func findIdentities(ctx context.Context, sandboxes int) (identities, error) {
	if os.Geteuid() == 0 {
		return identities{firstUser: firstUser, firstGroup: firstUser, count: userCount}, nil
	}
	own, err := user.Current()
	if err != nil {
		return identities{}, fmt.Errorf("look up the server's user: %w", err)
	}
	users, errUsers := subordinates("/etc/subuid", own.Username, own.Uid)
	// Ranges of groups stand under the name of the user, too: newgidmap looks for no other.
	groups, errGroups := subordinates("/etc/subgid", own.Username, own.Uid)
	if err := errors.Join(errUsers, errGroups); err != nil {
		return identities{}, err
	}
	i := identities{firstUser: users.first, firstGroup: groups.first, count: min(users.count, groups.count, userCount), helped: true}
	if i.count < max(sandboxes, 1) {
		return identities{}, fmt.Errorf("/etc/subuid and /etc/subgid have %d users and %d groups for %s, %d of both are needed",
			users.count, groups.count, own.Username, max(sandboxes, 1))
	}
	return i, i.try(ctx)
}

// A span is a range of users or groups.
type span struct{ first, count int }

// subordinates returns the largest range that a file such as /etc/subuid has for a user,
// whom the file may call by name or number. It is no error if there is none.
func subordinates(path, name, id string) (largest span, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return span{}, nil
	}
	if err != nil {
		return span{}, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// name:first:count
		f := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(f) != 3 || f[0] != name && f[0] != id {
			continue
		}
		first, errFirst := strconv.Atoi(f[1])
		count, errCount := strconv.Atoi(f[2])
		if errFirst == nil && errCount == nil && count > largest.count {
			largest = span{first, count}
		}
	}
	return largest, lines.Err()
}

// mapTimeout bounds newuidmap and newgidmap, which may ask a directory service.
const mapTimeout = 10 * time.Second

// mapInto has newuidmap and newgidmap map the identities into the user namespace of a
// process that the server has started.
func (i identities) mapInto(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, mapTimeout)
	defer cancel()
	for _, helper := range []struct {
		name       string
		own, first int
	}{
		{"newuidmap", os.Geteuid(), i.firstUser},
		{"newgidmap", os.Getegid(), i.firstGroup},
	} {
		args := []string{strconv.Itoa(pid), "0", strconv.Itoa(helper.own), "1", "1", strconv.Itoa(helper.first), strconv.Itoa(i.count)}
		if out, err := exec.CommandContext(ctx, helper.name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", helper.name, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// mapOwn maps the identities into the user namespace of a process that the server is about
// to start.
func (i identities) mapOwn(attr *syscall.SysProcAttr) {
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	if i.count > 0 {
		attr.UidMappings = append(attr.UidMappings, syscall.SysProcIDMap{ContainerID: 1, HostID: i.firstUser, Size: i.count})
		attr.GidMappings = append(attr.GidMappings, syscall.SysProcIDMap{ContainerID: 1, HostID: i.firstGroup, Size: i.count})
		attr.GidMappingsEnableSetgroups = true
	}
}

// gate is a shell script that waits for a line on stdin and then executes its arguments. A
// process whose identities are mapped before it executes has all rights in its namespace.
const gate = `read -r _ && exec "$@"`

// try maps the identities into a namespace that is made for the trial.
func (i identities) try(ctx context.Context) (err error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", gate, "sh", "/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("make a user namespace: %w", err)
	}
	err = i.mapInto(ctx, cmd.Process.Pid)
	// Without a line the shell ends by itself.
	closed := stdin.Close()
	_ = cmd.Wait()
	return errors.Join(err, closed)
}

// users gives every sandbox a user of its own, if there are users to give.
type users struct {
	count uint32

	mu    sync.Mutex
	last  uint32
	taken map[uint32]bool
}

// newUsers returns users of whom none is taken. It begins with a random one, since another
// server on the machine, with a state directory of its own, may use the same range.
func newUsers(count int) *users {
	u := &users{count: uint32(count), taken: map[uint32]bool{}}
	if count > 0 {
		u.last = rand.Uint32N(u.count) //nolint:gosec // it need not be hard to guess
	}
	return u
}

// take returns a user that no sandbox has, by its number in the zygote's namespace; 0 is the
// server's own user.
func (u *users) take() (uint32, error) {
	if u.count == 0 {
		return 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.count {
		u.last = u.last%u.count + 1
		if !u.taken[u.last] {
			u.taken[u.last] = true
			return u.last, nil
		}
	}
	return 0, fmt.Errorf("all %d users of sandboxes are taken", u.count)
}

// userSeparator stands before the user in a sandbox's name. By that name later servers know
// which users are taken.
const userSeparator = "-"

// keep notes that the user of the sandbox with this name is taken.
func (u *users) keep(sandbox string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken[userOf(sandbox)] = true
}

// free gives the user of a sandbox back. Nothing may be left of the sandbox.
func (u *users) free(sandbox string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.taken, userOf(sandbox))
}

// userOf returns the number in a sandbox's name, 0 if it has none.
func userOf(sandbox string) uint32 {
	_, number, _ := strings.Cut(sandbox, userSeparator)
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}
