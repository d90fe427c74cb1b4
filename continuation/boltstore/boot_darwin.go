package boltstore

import "golang.org/x/sys/unix"

// bootClock counts from the boot of the machine, and goes on while the machine sleeps.
const bootClock = unix.CLOCK_MONOTONIC

// bootID returns the name of this boot of the machine.
func bootID() ([]byte, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	return []byte(id), err
}
