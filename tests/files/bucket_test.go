package tests

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFilesInABucket keeps the files in an S3 bucket that two servers share.
func TestFilesInABucket(t *testing.T) {
	t.Parallel()
	gateway, err := exec.LookPath("versitygw")
	if err != nil && !inCI {
		t.Skip("an S3 server is missing: make bin/versitygw")
	}
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	address := freeAddr(t)
	bucket := exec.Command(gateway, "--access", "test", "--secret", "test-secret", "--port", address, "--health", "/health", "--quiet",
		"posix", "--sidecar", t.TempDir(), root)
	bucket.Dir = t.TempDir()
	if err := bucket.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = bucket.Process.Kill()
		_ = bucket.Wait()
	})
	err = within(30*time.Second, func() error {
		a, err := http.Get("http://" + address + "/health")
		if err == nil {
			err = a.Body.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	parameters := url.Values{"endpoint": {"http://" + address}, "region": {"us-east-1"}, "use_path_style": {"true"}}
	clients := make([]client, 2)
	for i := range clients {
		s, err := newServer(with(common, settings{"FILES_URL": "s3://files?" + parameters.Encode(), "POOL_SIZE": "1"}))
		if err != nil {
			t.Fatal(err)
		}
		// Where the library looks for keys if the environment has none.
		if err := os.Mkdir(filepath.Join(s.dir, ".aws"), 0o700); err != nil {
			t.Fatal(err)
		}
		keys := "[default]\naws_access_key_id = test\naws_secret_access_key = test-secret\n"
		if err := os.WriteFile(filepath.Join(s.dir, ".aws", "credentials"), []byte(keys), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		stopAfter(t, s)
		clients[i] = s.alice()
	}
	content := strings.Repeat("0123456789abcdef", 1<<20)
	f := clients[0].upload(t, one("in put/ü", content))
	a := clients[1].post(t, program{Files: []fileRef{f}, Code: py(`
		text = open("in put/ü").read()
		open("copy", "w").write(text)
		open("in put/ü", "w").write("changed")
		print(len(text))
	`)})
	a.completes(t, "16777216\n")
	a.leaves(t, "copy", "in put/ü modified")
	if got := clients[0].download(t, a.file(t, "copy").fileRef); got != content {
		t.Errorf("downloaded %d bytes, want the %d that were uploaded", len(got), len(content))
	}
	clients[0].post(t, program{Session: a.Session, Code: "print(open('in put/ü').read())"}).completes(t, "changed\n")
	if got := clients[1].files(t, http.MethodDelete, "/files/"+f.Storage+"/"+f.ID); got.code != 200 {
		t.Errorf("DELETE: got %v, want 200", got)
	}
	clients[0].post(t, program{Files: []fileRef{f}, Code: "print()"}).fails(t, 403, "Unauthorized file reference")
}
