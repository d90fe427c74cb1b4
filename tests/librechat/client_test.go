package librechat

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

	"fermata/tests/harness"
)

// TestLibreChat runs LibreChat's own client, 346 packages of npm, against servers of both error
// styles: failures by the HTTP status, or in answers with status 200.
func TestLibreChat(t *testing.T) {
	installLibreChat(t)
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		http, inline := harness.Settings{"ERROR_STYLE": "http"}, harness.Settings{"ERROR_STYLE": "inline"}
		driveLibreChat(t, harness.Serve(t, s, http), "python", "bash", "exec", "files")
		driveLibreChat(t, harness.Serve(t, s, inline), "python", "bash")
		driveLibreChat(t, harness.Serve(t, s, harness.With(http, s.Libraries())), "image")
	})
}

// driveLibreChat runs these test files of the client against a server.
func driveLibreChat(t *testing.T, server *harness.Server, things ...string) {
	t.Helper()
	// With Docker each of a hundred programs may have to wait for a container.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := []string{"--test", "--test-reporter=spec"}
	for _, thing := range things {
		args = append(args, thing+".test.js")
	}
	cmd := exec.CommandContext(ctx, "node", args...)
	style := server.Settings["ERROR_STYLE"]
	cmd.Env = append(os.Environ(), "FERMATA_URL="+server.URL, "FERMATA_KEY=key-a", "FERMATA_OTHER_KEY=key-b", "FERMATA_ERRORS="+style)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("client, error style %s: %v\n%s\nlog of the server:\n%s", style, err, out, server.Log.Tail())
		return
	}
	t.Logf("client, error style %s:\n%s", style, bytes.TrimSpace(out))
}

// installLibreChat installs the client unless the version of the lock file is already installed.
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
	// npm writes this file last, so it is there only after a complete installation.
	installed, err := os.Stat(filepath.Join("node_modules", ".package-lock.json"))
	if err == nil {
		lock, err := os.Stat("package-lock.json")
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
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install the client: %v\n%s", err, out)
	}
}
