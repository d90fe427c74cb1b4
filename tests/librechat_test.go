package tests

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// clientTests are what the client does: all that it has to run programs with.
var clientTests = []string{"python.test.js", "bash.test.js", "exec.test.js", "files.test.js"}

// TestLibreChat drives the server with LibreChat's own client, which is large: 346
// packages of npm. The client is told of failures by status, or within a 200.
func TestLibreChat(t *testing.T) {
	installLibreChat(t)
	overSetups(t, func(t *testing.T, s setup) {
		for _, style := range []string{"http", "inline"} {
			driveLibreChat(t, serve(t, s, with(settings{"ERROR_STYLE": style}, s.libraries())), style)
		}
	})
}

// driveLibreChat has the client try a server that tells of failures in this style.
func driveLibreChat(t *testing.T, server *server, style string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{"--test", "--test-reporter=spec"}, clientTests...)...)
	cmd.Dir = "librechat"
	cmd.Env = append(os.Environ(), "FERMATA_URL="+server.url, "FERMATA_KEY=key-a", "FERMATA_ERRORS="+style)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("client, error style %s: %v\n%s\nlog of the server:\n%s", style, err, out, server.log.tail())
		return
	}
	t.Logf("client, error style %s:\n%s", style, bytes.TrimSpace(out))
}

// installLibreChat installs the client if it is not there as the lock file wants it.
func installLibreChat(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing, and this is CI: %v", program, err)
			}
			t.Skipf("needs Node 20 and npm: %v", err)
		}
	}
	// npm writes this file last, when everything else is in place.
	installed, err := os.Stat(filepath.Join("librechat", "node_modules", ".package-lock.json"))
	if err == nil {
		lock, err := os.Stat(filepath.Join("librechat", "package-lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !lock.ModTime().After(installed.ModTime()) {
			return
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts")
	cmd.Dir = "librechat"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install the client: %v\n%s", err, out)
	}
}
