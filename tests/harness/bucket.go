package harness

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The keys of the buckets that Bucket makes.
const (
	BucketAccess = "test"
	BucketSecret = "test-secret"
)

// Bucket starts an S3 server with a bucket, and returns what FILES_URL is for servers that keep
// their files there.
func Bucket(t *testing.T) string {
	t.Helper()
	return BucketIn(t, t.TempDir())
}

// BucketIn is Bucket for a bucket whose objects are files in the directory files of root.
func BucketIn(t *testing.T, root string) string {
	t.Helper()
	gateway, err := exec.LookPath("versitygw")
	if err != nil && !InCI {
		t.Skip("an S3 server is missing: make bin/versitygw")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	address := FreeAddr(t)
	server := exec.Command(gateway, "--access", BucketAccess, "--secret", BucketSecret, "--port", address, "--health", "/health", "--quiet",
		"posix", "--sidecar", t.TempDir(), root)
	server.Dir = t.TempDir()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	err = Within(30*time.Second, func() error {
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
	return "s3://files?" + parameters.Encode()
}

// giveBucketKeys lets a server with this home find the keys of the tests' buckets: it looks there if
// its environment has none.
func giveBucketKeys(home string) error {
	dir := filepath.Join(home, ".aws")
	keys := "[default]\naws_access_key_id = " + BucketAccess + "\naws_secret_access_key = " + BucketSecret + "\n"
	return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "credentials"), []byte(keys), 0o600))
}
