package files_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fermata/engine/files"
)

// openS3 starts an S3 server for the test. open opens a store on a bucket of this server, and dir
// is the directory that contains the objects of the bucket.
func openS3(t *testing.T) (open func(files.Options) *files.Store, dir string) {
	t.Helper()
	// This server keeps objects as files in a directory.
	path, err := exec.LookPath("versitygw")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("an S3 server is missing: make bin/versitygw")
	}
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir = filepath.Join(root, "bucket")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	server := exec.Command(path, "--access", "test", "--secret", "test-secret", "--port", address, "--health", "/health", "--quiet",
		"posix", "--sidecar", t.TempDir(), root)
	server.Dir = t.TempDir()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	await(t, "http://"+address+"/health")

	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
	q := url.Values{"endpoint": {"http://" + address}, "region": {"us-east-1"}, "use_path_style": {"true"}}
	return func(o files.Options) *files.Store {
		o.URL = "s3://bucket?" + q.Encode()
		return openStore(t, o)
	}, dir
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// await waits until a server answers.
func await(t *testing.T, address string) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for late := time.After(30 * time.Second); ; {
		if response, err := http.Get(address); err == nil {
			_ = response.Body.Close()
			return
		}
		select {
		case <-ticker.C:
		case <-late:
			t.Fatal("the S3 server did not come up in 30 s")
		}
	}
}
