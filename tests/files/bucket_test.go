package files

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestFilesInABucket runs two servers that keep their files in one S3 bucket.
func TestFilesInABucket(t *testing.T) {
	t.Parallel()
	gateway, err := exec.LookPath("versitygw")
	if err != nil && !harness.InCI {
		t.Skip("an S3 server is missing: make bin/versitygw")
	}
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	address := harness.FreeAddr(t)
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
	err = harness.Within(30*time.Second, func() error {
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
	clients := make([]harness.Client, 2)
	for i := range clients {
		s, err := harness.NewServer(harness.With(harness.Common, harness.Settings{"FILES_URL": "s3://files?" + parameters.Encode(), "POOL_SIZE": "1"}))
		if err != nil {
			t.Fatal(err)
		}
		// The library for S3 looks here for keys if the environment has none.
		if err := os.Mkdir(filepath.Join(s.Dir, ".aws"), 0o700); err != nil {
			t.Fatal(err)
		}
		keys := "[default]\naws_access_key_id = test\naws_secret_access_key = test-secret\n"
		if err := os.WriteFile(filepath.Join(s.Dir, ".aws", "credentials"), []byte(keys), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		harness.StopAfter(t, s)
		clients[i] = s.Alice()
	}
	content := strings.Repeat("0123456789abcdef", 1<<20)
	f := clients[0].Upload(t, harness.OneFile("in put/ü", content))
	a := clients[1].Post(t, harness.Program{Files: []harness.FileRef{f}, Code: harness.Py(`
		text = open("in put/ü").read()
		open("copy", "w").write(text)
		open("in put/ü", "w").write("changed")
		print(len(text))
	`)})
	a.Completes(t, "16777216\n")
	a.Leaves(t, "copy", "in put/ü modified")
	if got := clients[0].Download(t, a.File(t, "copy").FileRef); got != content {
		t.Errorf("downloaded %d bytes, want the %d that were uploaded", len(got), len(content))
	}
	clients[0].Post(t, harness.Program{Session: a.Session, Code: "print(open('in put/ü').read())"}).Completes(t, "changed\n")
	if got := clients[1].Files(t, http.MethodDelete, "/files/"+f.Storage+"/"+f.ID); got.HTTPStatus != 200 {
		t.Errorf("DELETE: got %v, want 200", got)
	}
	clients[0].Post(t, harness.Program{Files: []harness.FileRef{f}, Code: "print()"}).Fails(t, 403, "Unauthorized file reference")
}
