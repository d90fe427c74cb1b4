package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestBuildsOnMacOS compiles the server for macOS, where it runs programs in containers. make lint does so
// with the tests.
func TestBuildsOnMacOS(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "go", "build", "./...")
	c.Dir = "../.."
	c.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("the server does not build on macOS: %v\n%s\n"+
			"Write //go:build linux above a file that needs Linux, and beside it a file for the others, as engine/process/elsewhere.go", err, out)
	}
}
