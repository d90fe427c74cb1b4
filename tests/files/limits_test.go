package files

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestFileLimits uploads a file that is too large, and more files than the quota allows.
func TestFileLimits(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"FILE_SIZE": "1MB", "OUTPUT_FILE_SIZE": "1MB", "FILES_QUOTA": "1500kB"})
		c := server.Alice()
		refused := func(f harness.Form, text string) {
			t.Helper()
			before, err := server.StoredFiles()
			if err != nil {
				t.Fatal(err)
			}
			if got := c.UploadTo(t, "/upload", f); got.HTTPStatus != 413 || got.Body != `{"error":"`+text+`"}` {
				t.Errorf("got %v, want 413 %s", got, text)
			}
			after, err := server.StoredFiles()
			if err != nil || !slices.Equal(before, after) {
				t.Errorf("the store has %q (%v), want %q as before", after, err, before)
			}
		}
		mega := strings.Repeat("x", 1_000_000)
		refused(harness.OneFile("x", mega+"x"), "File size limit exceeded")
		first := c.Upload(t, harness.OneFile("x", mega))
		refused(harness.OneFile("x", mega), "Storage quota exceeded")
		server.Bob().Upload(t, harness.OneFile("x", mega))

		// Files of invented agents count towards the same quota.
		agent := func(id string) harness.Form {
			return harness.OneFile("x", mega[:800_000]).With("kind", "agent").With("id", id)
		}
		c.Upload(t, agent("a"))
		refused(agent("b"), "Storage quota exceeded")

		// The quota still counts everything after a restart.
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		c = server.Alice()
		refused(harness.OneFile("x", mega), "Storage quota exceeded")
		if got := c.Files(t, http.MethodDelete, "/files/"+first.Storage+"/"+first.ID); got.HTTPStatus != 200 {
			t.Errorf("DELETE: got %v, want 200", got)
		}
		c.Upload(t, harness.OneFile("x", mega))
	})
}

// TestFilesExpire waits until a file expires.
func TestFilesExpire(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.Settings{"FILES_LIFE": "3s"}).Alice()
		f := c.Upload(t, harness.OneFile("x", "x"))
		object := "/sessions/" + f.Storage + "/objects/" + f.ID
		if got := c.Files(t, http.MethodGet, object); got.HTTPStatus != 200 {
			t.Errorf("a young file: got %v, want 200", got)
		}
		err := harness.Within(20*time.Second, func() error {
			if got := c.Files(t, http.MethodGet, object); got.HTTPStatus != 404 {
				return fmt.Errorf("an old file: got %v, want 404", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Post(t, harness.Program{Files: []harness.FileRef{f}, Code: "print()"}).Fails(t, 403, "Unauthorized file reference")
		c.Post(t, harness.Program{Session: f.Storage, Code: "print(os.listdir())"}).Completes(t, "[]\n")
	})
}

// TestCutUploads closes the connection in the middle of an upload: nothing of it stays.
func TestCutUploads(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		c := server.Alice()
		c.Upload(t, harness.OneFile("x", "x"))
		before, err := server.StoredFiles()
		if err != nil {
			t.Fatal(err)
		}
		body, contentType, err := harness.Form{Files: []harness.FormFile{{Name: "whole", Content: "x"}, {Name: "half", Content: strings.Repeat("x", 20<<20)}}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/upload", "/upload/batch"} {
			connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, c.Key, contentType, body.Len())
			if _, err := connection.Write(append([]byte(head), body.Bytes()[:body.Len()/2]...)); err != nil {
				t.Fatal(err)
			}
			// When the first file has been stored, the client leaves.
			arrived := harness.Within(10*time.Second, func() error {
				now, err := server.StoredFiles()
				if err == nil && len(now) <= len(before) {
					err = fmt.Errorf("the store has %q, want more than %q", now, before)
				}
				return err
			})
			if err := errors.Join(arrived, connection.Close()); err != nil {
				t.Fatal(err)
			}
			err = harness.Within(10*time.Second, func() error {
				now, err := server.StoredFiles()
				now = slices.DeleteFunc(now, func(name string) bool {
					return strings.HasPrefix(name, "claims/") // These belong to a session that nobody knows.
				})
				want := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return strings.HasPrefix(name, "claims/") })
				if err == nil && !slices.Equal(now, want) {
					err = fmt.Errorf("after a cut POST %s the store has %q, want %q", path, now, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLargeFiles uploads a file of 150 MiB, gives it to a program and downloads it. The server
// must not hold all of it in memory.
func TestLargeFiles(t *testing.T) {
	const size = 150 << 20
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("moves half a gigabyte")
		}
		server := harness.ServeAlone(t, s, harness.Settings{"MEMORY": "600MiB"})
		c := server.Alice()
		server.PeakMemory(t) // Fails early if the peak cannot be read.
		pipe, body := io.Pipe()
		w := multipart.NewWriter(body)
		go func() {
			part, err := w.CreateFormFile("file", "large")
			if err == nil {
				_, err = io.CopyN(part, zeros{}, size)
			}
			body.CloseWithError(errors.Join(err, w.Close()))
		}()
		got, err := c.SendFiles(http.MethodPost, "/upload", w.FormDataContentType(), pipe)
		if err != nil || got.HTTPStatus != 200 {
			t.Fatalf("POST /upload: got %v, %v; want 200", got, err)
		}
		var ids []string
		for field := range strings.SplitSeq(got.Body, `"`) {
			if harness.IDForm.MatchString(field) {
				ids = append(ids, field)
			}
		}
		f := harness.FileRef{Storage: ids[0], ID: ids[2], Name: "large"} // Two members name the session.
		a := c.Post(t, harness.Program{Files: []harness.FileRef{f}, Code: "print(os.path.getsize('large'))"})
		a.Completes(t, strconv.Itoa(size)+"\n")
		a.Leaves(t, "large inherited")

		r, err := http.NewRequest(http.MethodGet, server.URL+"/download/"+f.Storage+"/"+f.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Authorize(r)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if n, err := io.Copy(io.Discard, response.Body); n != size || err != nil {
			t.Errorf("downloaded %d bytes, %v; want %d", n, err, size)
		}
		if peak := server.PeakMemory(t); peak > 100<<20 {
			t.Errorf("the server has had %d MiB in memory, want less than 100", peak>>20)
		}
	})
}

// zeros reads as zero bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
