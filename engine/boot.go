package engine

import (
	"os"
	"strconv"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// lossOf tells why the sandbox of an execution, whose record is r, is gone.
func lossOf(r continuation.Record) string {
	if booted, known := bootTime(); known && booted.After(r.Since) {
		return journal.MachineRestarted
	}
	return core.SandboxEnded
}

// bootTime returns when this machine was started, if it tells.
func bootTime() (time.Time, bool) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.Now().Add(-time.Duration(seconds * float64(time.Second))), true
}
