package files

import (
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestFilesInABucket runs two servers that keep their files in one S3 bucket.
func TestFilesInABucket(t *testing.T) {
	t.Parallel()
	bucket := harness.Bucket(t)
	clients := make([]harness.Client, 2)
	for i := range clients {
		s, err := harness.NewServer(harness.With(harness.Common, harness.Settings{"FILES_URL": bucket, "POOL_SIZE": "1"}))
		if err != nil {
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
	if got := ranged(t, clients[1], "/download/"+f.Storage+"/in%20put%2F%C3%BC", "bytes=16777212-"); got.HTTPStatus != 206 || got.Body != "cdef" {
		t.Errorf("the last bytes by name: got %v, want cdef", got)
	}
	written := clients[1].Post(t, inline{Session: f.Storage, Code: "print(open('a').read())", Files: []map[string]any{{"name": "a", "content": "written out"}}})
	written.Completes(t, "written out\n")
	if got := clients[0].Download(t, written.File(t, "a").FileRef); got != "written out" || written.Session != f.Storage {
		t.Errorf("a file of a request: downloaded %q from session %s, want it in %s", got, written.Session, f.Storage)
	}
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
