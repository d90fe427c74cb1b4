package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// RunAs is no setting of the server: the harness, which must be root then, starts it as
// this user.
const (
	RunAs  = "the harness runs it as"
	Nobody = "nobody"
	// nobodyWithRange is nobody, who has users in /etc/subuid.
	NobodyWithRange = "nobody with a range"
)

// nobodyID is the user nobody and its group.
const nobodyID = 65534

// as has the server run as an ordinary user, whose are its directories and cgroups.
func (s *Server) as(user string) error {
	// It must get to its program and its directories, which lie in ours.
	errs := []error{os.Chmod(filepath.Dir(s.Dir), 0o711)}
	own := []string{s.Dir, filepath.Join(s.Dir, "state"), filepath.Join(s.Dir, "tmp")}
	for _, group := range s.Groups {
		own = append(own, group)
		for _, file := range []string{"cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
			if _, err := os.Stat(filepath.Join(group, file)); err == nil {
				own = append(own, filepath.Join(group, file))
			}
		}
	}
	for _, path := range own {
		errs = append(errs, os.Chown(path, nobodyID, nobodyID))
	}
	id := strconv.Itoa(nobodyID)
	s.Become = []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--"}
	// In a mount namespace of its own it sees other files than the machine has.
	ranges := filepath.Join(s.Dir, "ranges")
	text := ""
	if user == NobodyWithRange {
		text = "nobody:400000:5000\n"
	}
	errs = append(errs, os.WriteFile(ranges, []byte(text), 0o644))
	s.Attributes = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	see := fmt.Sprintf(`mount --bind %[1]s /etc/subuid && mount --bind %[1]s /etc/subgid && exec "$@"`, ranges)
	s.Become = append([]string{"/bin/sh", "-c", see, "sh"}, s.Become...)
	return errors.Join(errs...)
}
