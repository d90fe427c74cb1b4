package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"fermata/engine/tools/config"
)

// TestStamp changes the files of a toolset, one after the other.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, secret := filepath.Join(dir, "toolsets.yaml"), filepath.Join(dir, "secret")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() config.Stamp {
		t.Helper()
		_, stamp, _ := config.ReadStamped(path, os.LookupEnv) // There is a stamp even if there are mistakes.
		if !stamp.Unchanged() {
			t.Fatal("it has changed at once")
		}
		return stamp
	}
	changed := func(stamp config.Stamp, what string) {
		t.Helper()
		if stamp.Unchanged() {
			t.Errorf("nothing has changed after %s", what)
		}
	}
	stamp := read()
	write(path, "toolsets: {w: {http: {base_url: \"https://example.com\", headers: {X-Key: \"${file:"+secret+"}\"}, tools: [{name: a, method: GET, path: /a}]}}}\n")
	changed(stamp, "the file came")
	stamp = read()
	write(secret, "a secret with 24 letters")
	changed(stamp, "the secret came")
	if _, err := config.Read(path, os.LookupEnv); err != nil {
		t.Fatal(err)
	}
	stamp = read()
	write(secret, "a secret with 27 characters")
	changed(stamp, "another secret")
	stamp = read()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	changed(stamp, "everybody may write the file")
	stamp = read()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	changed(stamp, "the file is gone")
}
