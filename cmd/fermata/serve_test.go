package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestVersion(t *testing.T) {
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"version"}, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(stdout.String()); got != version() || got == "" {
		t.Errorf("printed %q, want %q", got, version())
	}
}

func TestHelp(t *testing.T) {
	of := func(args ...string) string {
		t.Helper()
		var stdout bytes.Buffer
		if err := run(t.Context(), args, &stdout, io.Discard); err != nil {
			t.Fatalf("fermata %v: %v", args, err)
		}
		return stdout.String()
	}
	text := of("serve", "--help")
	for _, part := range []string{"--addr", "$FERMATA_API_KEYS", "Executions", "Serve the API until"} {
		if !strings.Contains(text, part) {
			t.Errorf("the help lacks %q:\n%s", part, text)
		}
	}
	if got := of("help", "serve"); got != text {
		t.Errorf("fermata help serve prints\n%s\nwant what fermata serve --help prints", got)
	}
	if got := of("help"); got != of("--help") || !strings.Contains(got, "health") {
		t.Errorf("fermata help prints\n%s\nwant what fermata --help prints, with all commands", got)
	}
	if got, want := of("--version"), of("version"); got != want {
		t.Errorf("fermata --version prints %q, want %q", got, want)
	}
}

func TestRefusesToServeWithoutKeys(t *testing.T) {
	err := run(t.Context(), []string{"serve", "--state-dir", t.TempDir()}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "FERMATA_AUTH=off") {
		t.Errorf("run = %v, want an error that tells how to go on", err)
	}
}

func TestStateDir(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, c := range []struct{ given, xdg, want string }{
		{filepath.Join(home, "given"), filepath.Join(home, "xdg"), "given"},
		{"", filepath.Join(home, "xdg"), "xdg/fermata"},
		{"", "relative", ".local/state/fermata"},
		{"", "", ".local/state/fermata"},
	} {
		t.Setenv("XDG_STATE_HOME", c.xdg)
		got, err := (&executionSettings{StateDir: c.given}).stateDir(slog.New(slog.DiscardHandler))
		if err != nil || got != filepath.Join(home, c.want) {
			t.Errorf("stateDir() with %+v = %s, %v", c, got, err)
			continue
		}
		info, err := os.Stat(got)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o, want 700", got, info.Mode().Perm())
		}
	}
}

// A state directory that other users could read is made private. One that belongs to
// another user is refused.
func TestStateDirIsOurs(t *testing.T) {
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	for _, mode := range []os.FileMode{0o700, 0o500, 0o755, 0o770, 0o701, 0o777} {
		lines.Reset()
		dir := filepath.Join(t.TempDir(), "state")
		// Mkdir alone would apply the umask.
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := (&executionSettings{StateDir: dir}).stateDir(log); err != nil {
			t.Errorf("stateDir() of mode %o = %v, want it taken", mode, err)
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		open := mode&0o077 != 0
		if info.Mode().Perm()&0o077 != 0 || strings.Contains(lines.String(), "was open") != open {
			t.Errorf("a directory of mode %o has mode %o now, and the log says %q", mode, info.Mode().Perm(), lines.String())
		}
	}
	if os.Geteuid() != 0 {
		return // Only root can give a directory to another user.
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 4321, 4321); err != nil {
		t.Fatal(err)
	}
	if _, err := (&executionSettings{StateDir: dir}).stateDir(log); err == nil || !strings.Contains(err.Error(), "FERMATA_STATE_DIR") {
		t.Errorf("stateDir() of another user's = %v, want an error that tells how to go on", err)
	}
}

// The limit on connections leaves enough descriptors for the sandboxes.
func TestRoomForConnections(t *testing.T) {
	for _, c := range []struct {
		files     uint64
		sandboxes int
		want      int
	}{
		{1024, 256, 128},
		{1024, 64, 704},
		{256, 256, 16},
		{1 << 20, 256, 1<<20 - 128 - 768},
		{1<<64 - 1, 256, 1<<30 - 128 - 768}, // no limit
	} {
		if got := room(c.files, c.sandboxes); got != c.want {
			t.Errorf("%d descriptors and %d sandboxes leave room for %d connections, want %d", c.files, c.sandboxes, got, c.want)
		}
	}
}

func TestClosersCloseTheLastFirst(t *testing.T) {
	var order []string
	var opened closers
	first, last := errors.New("first"), errors.New("last")
	opened.add("first", func(context.Context) error { order = append(order, "first"); return first })
	opened.add("last", func(context.Context) error { order = append(order, "last"); return last })
	err := opened.close(t.Context())
	if got := strings.Join(order, " "); got != "last first" {
		t.Errorf("closed %s, want last first", got)
	}
	if !errors.Is(err, first) || !errors.Is(err, last) {
		t.Errorf("close = %v, want both errors", err)
	}
}

// A part that does not close neither keeps the others open nor holds up the end of the
// process for long.
func TestClosersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		defer close(ended)
		var opened closers
		closed := false
		opened.add("first", func(context.Context) error { closed = true; return nil })
		opened.add("bucket", func(context.Context) error { <-ended; return nil })
		began := time.Now()
		err := opened.close(t.Context())
		if err == nil || !strings.Contains(err.Error(), "close bucket") || !closed {
			t.Errorf("close = %v, the other part closed: %v, want an error that names the bucket, and true", err, closed)
		}
		if took := time.Since(began); took != closeTimeout+partGrace {
			t.Errorf("it took %v, want %v", took, closeTimeout+partGrace)
		}
	})
}

// The whole program serves, logs its address, ends when it is told to, and never logs a
// key.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	t.Setenv("FERMATA_API_KEYS", "ada:very-secret-key")
	t.Setenv("FERMATA_SECRET", "very-secret-secret-of-32-bytes-or-more")
	done := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"serve", "--addr=127.0.0.1:0", "--log-format=json", "--state-dir", t.TempDir()}, io.Discard, writer)
		done <- errors.Join(err, writer.Close())
	}()

	var logged bytes.Buffer
	lines := json.NewDecoder(io.TeeReader(reader, &logged))
	var line struct{ Msg, Addr string }
	for line.Msg != "serving" {
		if err := lines.Decode(&line); err != nil {
			err = errors.Join(err, <-done)
			if os.Getenv("CI") != "" {
				t.Fatalf("the server did not start: %v", err)
			}
			t.Skipf("needs Python and namespaces: %v", err)
		}
	}
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(&logged, reader)
		drained <- err
	}()

	request := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, "http://"+line.Addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-API-Key", "very-secret-key")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(answer)
	}
	if status, answer := request(http.MethodGet, "/v1/health", ""); status != http.StatusOK {
		t.Errorf("health answered %d %s, want 200", status, answer)
	}
	if status, answer := request(http.MethodPost, "/exec/programmatic", `{"code":"print(6*7)"}`); status != http.StatusOK || !strings.Contains(answer, `"stdout":"42\n"`) {
		t.Errorf("a program was answered with %d %s, want 200 and 42", status, answer)
	}

	cancel()
	if err := <-done; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if strings.Contains(logged.String(), "very-secret") {
		t.Errorf("the log tells a secret:\n%s", logged.String())
	}
}
