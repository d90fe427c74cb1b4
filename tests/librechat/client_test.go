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

// TestLibreChat drives the server with LibreChat's own client, which is large: 346
// packages of npm. The client is told of failures by status, or within a 200.
func TestLibreChat(t *testing.T) {
	installLibreChat(t)
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		http, inline := settings{"ERROR_STYLE": "http"}, settings{"ERROR_STYLE": "inline"}
		driveLibreChat(t, serve(t, s, http), "python", "bash", "exec", "files")
		driveLibreChat(t, serve(t, s, inline), "python", "bash")
		driveLibreChat(t, serve(t, s, with(http, s.libraries())), "image")
	})
}

// driveLibreChat has the client try these things.
func driveLibreChat(t *testing.T, server *server, things ...string) {
	t.Helper()
	// Over Docker each of a hundred programs may wait for a container to start.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := []string{"--test", "--test-reporter=spec"}
	for _, thing := range things {
		args = append(args, thing+".test.js")
	}
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = "librechat"
	style := server.settings["ERROR_STYLE"]
	cmd.Env = append(os.Environ(), "FERMATA_URL="+server.url, "FERMATA_KEY=key-a", "FERMATA_OTHER_KEY=key-b", "FERMATA_ERRORS="+style)
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
