package continuation_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fermata/continuation"
)

func TestCreateSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	secrets := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			var err error
			if secrets[i], err = continuation.LoadOrCreateSecret(path); err != nil {
				t.Errorf("LoadOrCreateSecret = %v, want success", err)
			}
		})
	}
	wg.Wait()
	for i, s := range secrets {
		if !bytes.Equal(s, secrets[0]) {
			t.Errorf("server %d got another secret than server 0, want the same", i)
		}
	}
	newSigner(t, secrets[0])

	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode = %v, want -rw-------", got)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v, want the secret alone", entries, err)
	}

	other, err := continuation.LoadOrCreateSecret(filepath.Join(t.TempDir(), "secret"))
	if err != nil || bytes.Equal(other, secrets[0]) {
		t.Errorf("two new files hold the same secret, %v, want two", err)
	}
}

func TestLoadSecret(t *testing.T) {
	good := strings.Repeat("hunter2.", 4)
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // empty for an error
	}{
		"bytes":          {good, 0o600, good},
		"line break":     {good + "\n", 0o400, good},
		"CRLF":           {good + "\r\n", 0o600, good},
		"inner breaks":   {good + "\n\n" + good, 0o600, good + "\n\n" + good},
		"short":          {good[1:], 0o600, ""},
		"short and line": {good[1:] + "\n", 0o600, ""},
		"empty":          {"", 0o600, ""},
		"group reads":    {good, 0o640, ""},
		"world reads":    {good, 0o604, ""},
		"world writes":   {good, 0o602, ""},
	} {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil { // past the umask
			t.Fatal(err)
		}
		got, err := continuation.LoadOrCreateSecret(path)
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: LoadOrCreateSecret = %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: LoadOrCreateSecret = %v, want no secret in it", name, err)
		}
	}

	if _, err := continuation.LoadOrCreateSecret(t.TempDir()); err == nil {
		t.Error("LoadOrCreateSecret of a directory = nil, want an error")
	}
	if _, err := continuation.LoadOrCreateSecret(filepath.Join(t.TempDir(), "none", "secret")); err == nil {
		t.Error("LoadOrCreateSecret in no directory = nil, want an error")
	}
}
