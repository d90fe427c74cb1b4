//go:build linux

package seccomp

import (
	"encoding/json"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func readProfile(t *testing.T) profile {
	t.Helper()
	data, err := Profile()
	if err != nil {
		t.Fatal(err)
	}
	var p profile
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// run returns the answer to a call that the kernel would give if a container engine had
// installed the profile.
func (p profile) run(name string, args [6]uint64) uint32 {
	for _, g := range p.Syscalls {
		unmet := func(a argument) bool { return a.Op != masked || args[a.Index]&a.Value != a.ValueTwo }
		if !slices.Contains(g.Names, name) || slices.ContainsFunc(g.Args, unmet) {
			continue
		}
		if g.Action == allow {
			return retAllow
		}
		return errno(unix.Errno(*g.Errno))
	}
	return errno(unix.EPERM)
}

// TestProfileRefuses checks which calls the profile allows, which it allows only under a
// condition, and which it refuses.
func TestProfileRefuses(t *testing.T) {
	p := readProfile(t)
	if p.DefaultAction != refuse {
		t.Errorf("default action is %s, want %s", p.DefaultAction, refuse)
	}
	allowed := func(name string) (plainly, conditionally bool) {
		for _, r := range p.Syscalls {
			if r.Action == allow && slices.Contains(r.Names, name) {
				plainly, conditionally = plainly || len(r.Args) == 0, conditionally || len(r.Args) > 0
			}
		}
		return plainly, conditionally
	}
	for _, tt := range []struct {
		name                   string
		plainly, conditionally bool
	}{
		{"read", true, false},
		{"clone", false, true},
		{"socket", false, true},
		{"personality", false, true},
		{"prlimit64", false, true},
		{"fcntl", false, true},
		{"clone3", false, false},
		{"ioprio_set", false, false},
		{"io_setup", false, false},
		{"fanotify_init", false, false},
		{"unshare", false, false},
		{"setns", false, false},
		{"mount", false, false},
		{"move_mount", false, false},
		{"ptrace", false, false},
		{"process_vm_readv", false, false},
		{"pidfd_getfd", false, false},
		{"bpf", false, false},
		{"perf_event_open", false, false},
		{"userfaultfd", false, false},
		{"io_uring_setup", false, false},
		{"keyctl", false, false},
		{"add_key", false, false},
		{"open_by_handle_at", false, false},
		{"init_module", false, false},
		{"kexec_load", false, false},
	} {
		plainly, conditionally := allowed(tt.name)
		if plainly != tt.plainly || conditionally != tt.conditionally {
			t.Errorf("%s: allowed plainly %t, on a condition %t; want %t, %t",
				tt.name, plainly, conditionally, tt.plainly, tt.conditionally)
		}
	}
}
