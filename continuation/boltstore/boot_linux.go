package boltstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// bootClock counts from the boot of the machine, and goes on while the machine sleeps.
const bootClock = unix.CLOCK_BOOTTIME

// bootID returns the name of this boot of the machine.
func bootID() ([]byte, error) { return os.ReadFile("/proc/sys/kernel/random/boot_id") }
