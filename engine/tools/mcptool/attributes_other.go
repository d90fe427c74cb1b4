//go:build !linux

package mcptool

import "syscall"

// attributes give a command a session of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
