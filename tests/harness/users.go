package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const (
	// RunAs is a setting for the harness and not for the server: the user that the server runs
	// as, Nobody or NobodyWithRange. Only root can start a server as another user.
	RunAs = "the harness runs it as"
	// Nobody is the user nobody, who has no other users for its sandboxes.
	Nobody = "nobody"
	// NobodyWithRange is the user nobody with a range of users in /etc/subuid.
	NobodyWithRange = "nobody with a range"
)

// nobodyID is the number of the user nobody and of its group.
const nobodyID = 65534

// as makes the server run as an ordinary user, who owns the server's directories and cgroups.
func (s *Server) as(user string) error {
	// The user must be able to reach the server's program and directories.
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
	// In its own mount namespace the server finds these files in place of /etc/subuid and
	// /etc/subgid of the machine.
	ranges := filepath.Join(s.Dir, "ranges")
	text := ""
	if user == NobodyWithRange {
		text = "nobody:400000:5000\n"
	}
	errs = append(errs, os.WriteFile(ranges, []byte(text), 0o644))
	s.Attributes = ownMounts()
	see := fmt.Sprintf(`mount --bind %[1]s /etc/subuid && mount --bind %[1]s /etc/subgid && exec "$@"`, ranges)
	s.Become = append([]string{"/bin/sh", "-c", see, "sh"}, s.Become...)
	return errors.Join(errs...)
}
