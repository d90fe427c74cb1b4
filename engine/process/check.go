//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"fermata/engine/sandbox"
)

// Check looks for everything that New and its sandboxes need of this machine. It leaves
// nothing behind but the cgroup in which the groups of sandboxes are made, as a server does.
func Check(ctx context.Context, o Options) []sandbox.Finding {
	findings := []sandbox.Finding{checkKernel()}
	python, err := findPython(ctx, o.Python)
	if err != nil {
		findings = append(findings, sandbox.Finding{
			What: "Python", State: sandbox.Missing, Detail: err.Error(),
			Remedy: fmt.Sprintf("install Python 3.%d or later, or set FERMATA_PYTHON to one", oldestPython),
		})
	} else {
		findings = append(findings, checkPython(ctx, python)...)
	}
	findings = append(findings, checkSeccomp())
	findings = append(findings, checkCgroups(o)...)
	return append(findings, checkUsers(ctx, o), checkCores(), checkDescriptors(o), checkProcesses(o))
}

// The oldest kernel that counts processes for each user namespace; the limit on processes
// of a sandbox relies on that.
const oldestMajor, oldestMinor = 5, 14

// kernel returns the release of this machine's Linux, and an error if it is too old.
func kernel() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("ask for the version of Linux: %w", err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return release, fmt.Errorf("read the version of Linux, %q: %w", release, err)
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return release, fmt.Errorf("this is Linux %s, %d.%d or later is needed", release, oldestMajor, oldestMinor)
	}
	return release, nil
}

func checkKernel() sandbox.Finding {
	release, err := kernel()
	return sandbox.Found("Linux", err == nil, sandbox.Missing, release,
		fmt.Sprintf("use a machine with Linux %d.%d or later, or FERMATA_SANDBOX=docker", oldestMajor, oldestMinor))
}

// checkPython looks at what an interpreter has for the runner, and for programs.
func checkPython(ctx context.Context, python interpreter) []sandbox.Finding {
	found := sandbox.Finding{What: "Python", State: sandbox.OK, Detail: python.version + ", " + python.path}
	seen, err := python.survey(ctx)
	if err != nil {
		found.State, found.Detail, found.Remedy = sandbox.Weaker, found.Detail+": "+err.Error(), "see whether it works"
		return []sandbox.Finding{found, checkNamespaces(ctx, python)}
	}
	if !seen.Ctypes {
		found.State, found.Detail = sandbox.Missing, found.Detail+": it was built without ctypes, which the server needs to make sandboxes"
		found.Remedy = "install libffi-dev and build it again, or set FERMATA_PYTHON to another one"
		return []sandbox.Finding{found}
	}
	if why := python.untested(seen); why != "" {
		found.State, found.Detail = sandbox.Weaker, found.Detail+": "+why
		found.Remedy = fmt.Sprintf("set FERMATA_PYTHON to a CPython from 3.%d to 3.%d", oldestPython, newestPython)
	}
	builtin := sandbox.Found("its modules", seen.lacks() == "", sandbox.Weaker, "nothing is left out", "set FERMATA_PYTHON to another build of it, if programs need these")
	if builtin.State != sandbox.OK {
		builtin.Detail = "it was built without " + seen.lacks() + ": programs do without them, and the server needs none of them"
	}
	return []sandbox.Finding{found, builtin, checkLibraries(python, seen), checkNamespaces(ctx, python)}
}

func checkLibraries(python interpreter, seen survey) sandbox.Finding {
	if len(seen.Libraries) > 0 {
		return sandbox.Finding{
			What: "libraries", State: sandbox.Weaker, Detail: "programs do without " + strings.Join(seen.Libraries, ", "),
			Remedy: "install them for " + python.path,
		}
	}
	return sandbox.Finding{What: "libraries", State: sandbox.OK, Detail: strings.Join(slices.Concat(libraries, expected), ", ")}
}

// checkNamespaces makes namespaces and does in them what the zygote does first: a security
// module may allow to make them and still forbid all that they are needed for.
func checkNamespaces(ctx context.Context, python interpreter) sandbox.Finding {
	const private = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"none", b"/", None, ctypes.c_ulong(0x44000), None):
    raise SystemExit("make the mounts private: " + os.strerror(ctypes.get_errno()))`
	cmd := exec.CommandContext(ctx, python.path, "-I", "-c", private)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  cloneFlags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if said := lastLine(out); err != nil && strings.Contains(said, "Error: ") {
		return sandbox.Finding{What: "namespaces", State: sandbox.Missing, Detail: "not tried, since Python fails: " + said, Remedy: "see whether " + python.path + " works"}
	}
	if err != nil {
		detail := strings.TrimSpace(fmt.Sprintf("%v %s", err, out))
		return sandbox.Finding{What: "namespaces", State: sandbox.Missing, Detail: detail, Remedy: wayToNamespaces()}
	}
	return sandbox.Finding{What: "namespaces", State: sandbox.OK, Detail: "user, mount, pid, net, ipc, uts"}
}

// hurdles are settings of the kernel that keep users from making useful namespaces: the value
// that does, and one that does not. Not every system has each of them.
var hurdles = []struct{ name, bad, good string }{
	{"kernel.unprivileged_userns_clone", "0", "1"},
	{"user.max_user_namespaces", "0", "10000"},
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
}

// wayToNamespaces tells an operator how the server can come to make namespaces.
func wayToNamespaces() string {
	var ways []string
	for _, h := range hurdles {
		value, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(h.name, ".", "/")))
		if err == nil && strings.TrimSpace(string(value)) == h.bad {
			ways = append(ways, fmt.Sprintf("`sysctl %s=%s`", h.name, h.good))
		}
	}
	if len(ways) > 0 {
		return "let users make namespaces: " + strings.Join(ways, " and ")
	}
	return "run the server as root or, in a container, allow it CAP_SYS_ADMIN and an unmasked /proc"
}

func checkSeccomp() sandbox.Finding {
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil {
		return sandbox.Finding{What: "seccomp", State: sandbox.Missing, Detail: err.Error(), Remedy: "use a kernel with CONFIG_SECCOMP_FILTER"}
	}
	return sandbox.Found("seccomp", slices.Contains(strings.Fields(string(actions)), "errno"), sandbox.Missing,
		"actions "+strings.TrimSpace(string(actions)), "use a kernel with CONFIG_SECCOMP_FILTER")
}

func checkCgroups(o Options) []sandbox.Finding {
	c, err := findCgroups(o)
	if err != nil {
		state := sandbox.Missing
		if o.CgroupsOptional {
			state = sandbox.Weaker
		}
		return []sandbox.Finding{{What: "cgroups", State: state, Detail: err.Error() + ": " + o.withoutCgroups(), Remedy: wayToCgroups}}
	}
	version, swap, freezer := 2, "memory.swap.max", "cgroup.freeze"
	if c.join == "tasks" {
		version, swap, freezer = 1, "memory.memsw.limit_in_bytes", "freezer.state"
	}
	findings := []sandbox.Finding{{
		What: "cgroups", State: sandbox.OK,
		Detail: fmt.Sprintf("version %d with %s, in %s", version, strings.Join(controllers, ", "), strings.Join(c.parents, ", ")),
	}}
	_, err = os.Stat(filepath.Join(c.oom, swap))
	findings = append(findings, sandbox.Found("limit on swap", err == nil, sandbox.Weaker, swap,
		"boot with swapaccount=1, or do without swap: programs may use it beyond their memory"))
	if version == 1 && !slices.ContainsFunc(c.parents, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, freezer)); return err == nil }) {
		return append(findings, checkFreezer())
	}
	return append(findings, sandbox.Finding{What: "freezer", State: sandbox.OK, Detail: freezer})
}

// checkFreezer looks for the freezer of version 1, in which the server has no group.
func checkFreezer() sandbox.Finding {
	mounts, err := cgroupMounts("/proc/self")
	if err == nil && mounts["freezer"] != "" {
		err = syscall.Access(mounts["freezer"], unix.W_OK)
	} else if err == nil {
		err = errors.New("it is not mounted")
	}
	detail := mounts["freezer"]
	if err != nil {
		detail += " " + err.Error()
	}
	return sandbox.Found("freezer", err == nil, sandbox.Weaker, strings.TrimSpace(detail),
		"mount the cgroup controller freezer and let the server make groups there: otherwise signals stop paused programs")
}

func checkUsers(ctx context.Context, o Options) sandbox.Finding {
	ids, err := findIdentities(ctx, o.Sandboxes)
	if err != nil {
		return sandbox.Finding{
			What: "users", State: sandbox.Weaker, Detail: "all sandboxes run as the server's user: " + err.Error(),
			Remedy: "install newuidmap (Debian's uidmap) and give the server's user a range, `usermod --add-subuids 300000-365535 " +
				"--add-subgids 300000-365535`, or run the server as root",
		}
	}
	return sandbox.Finding{
		What: "users", State: sandbox.OK,
		Detail: fmt.Sprintf("one for each sandbox, from %d to %d", ids.firstUser, ids.firstUser+ids.count-1),
	}
}

func checkCores() sandbox.Finding {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	detail := strings.TrimSpace(string(pattern))
	if err != nil {
		detail = err.Error()
	}
	return sandbox.Found("core dumps", err == nil && !strings.HasPrefix(detail, "|"), sandbox.Weaker, detail,
		"`sysctl kernel.core_pattern=core`: the kernel starts this machine's handler, as root, whenever a program crashes")
}

// How many descriptors the server, or a zygote, has open at most for each sandbox, and besides.
const (
	descriptorsEach  = 4
	descriptorsBasis = 1024
)

func checkDescriptors(o Options) sandbox.Finding {
	need := uint64(descriptorsEach*o.Sandboxes + descriptorsBasis)
	return checkLimit("descriptors", unix.RLIMIT_NOFILE, need, "LimitNOFILE= of the unit, or `ulimit -Hn`")
}

func checkProcesses(o Options) sandbox.Finding {
	if os.Geteuid() == 0 {
		return sandbox.Finding{What: "processes", State: sandbox.OK, Detail: "no limit on those of root"}
	}
	need := uint64(o.Sandboxes * (o.PIDs + 1))
	return checkLimit("processes", unix.RLIMIT_NPROC, need, "LimitNPROC= of the unit, or `ulimit -Hu`")
}

// checkLimit compares a hard limit of this process with what all sandboxes together need.
func checkLimit(what string, resource int, need uint64, where string) sandbox.Finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return sandbox.Finding{What: what, State: sandbox.Weaker, Detail: err.Error(), Remedy: "see " + where}
	}
	have := strconv.FormatUint(limit.Max, 10)
	if limit.Max == unix.RLIM_INFINITY {
		have = "any number"
	}
	return sandbox.Found(what, limit.Max >= need, sandbox.Weaker,
		fmt.Sprintf("the limit is %s, FERMATA_MAX_SANDBOXES asks for %d", have, need), "raise "+where+", or lower FERMATA_MAX_SANDBOXES")
}
