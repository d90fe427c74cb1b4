//go:build !linux

package harness

import "syscall"

// dieWithParent and ownMounts have no meaning here: the tests of the server need Linux, and elsewhere
// they are only compiled.
func dieWithParent() *syscall.SysProcAttr { return nil }

func ownMounts() *syscall.SysProcAttr { return nil }
