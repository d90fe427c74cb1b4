package files_test

import (
	"path/filepath"
	"testing"

	"fermata/engine/files"
	"fermata/tests/harness"
)

// openS3 starts an S3 server for the test. open opens a store on a bucket of this server, and dir
// is the directory that contains the objects of the bucket.
func openS3(t *testing.T) (open func(files.Options) *files.Store, dir string) {
	t.Helper()
	root := t.TempDir()
	url := harness.BucketIn(t, root)
	t.Setenv("AWS_ACCESS_KEY_ID", harness.BucketAccess)
	t.Setenv("AWS_SECRET_ACCESS_KEY", harness.BucketSecret)
	return func(o files.Options) *files.Store {
		o.URL = url
		return openStore(t, o)
	}, filepath.Join(root, "files")
}
