package tests

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFileLimits stores too much.
func TestFileLimits(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, settings{"FILE_SIZE": "1MB", "OUTPUT_FILE_SIZE": "1MB", "FILES_QUOTA": "1500kB"})
		c := server.alice()
		refused := func(f form, text string) {
			t.Helper()
			before, err := server.storedFiles()
			if err != nil {
				t.Fatal(err)
			}
			if got := c.uploadTo(t, "/upload", f); got.code != 413 || got.body != `{"error":"`+text+`"}` {
				t.Errorf("got %v, want 413 %s", got, text)
			}
			after, err := server.storedFiles()
			if err != nil || !slices.Equal(before, after) {
				t.Errorf("the store has %q (%v), want %q as before", after, err, before)
			}
		}
		mega := strings.Repeat("x", 1_000_000)
		refused(one("x", mega+"x"), "File size limit exceeded")
		first := c.upload(t, one("x", mega))
		refused(one("x", mega), "Storage quota exceeded")
		server.bob().upload(t, one("x", mega))

		// Made-up agents are no way around it.
		agent := func(id string) form { return one("x", mega[:800_000]).with("kind", "agent").with("id", id) }
		c.upload(t, agent("a"))
		refused(agent("b"), "Storage quota exceeded")

		// A restart forgets nothing.
		if err := errors.Join(server.kill(), server.start()); err != nil {
			t.Fatal(err)
		}
		c = server.alice()
		refused(one("x", mega), "Storage quota exceeded")
		if got := c.files(t, http.MethodDelete, "/files/"+first.Storage+"/"+first.ID); got.code != 200 {
			t.Errorf("DELETE: got %v, want 200", got)
		}
		c.upload(t, one("x", mega))
	})
}

// TestFilesExpire waits for the end of a file's life.
func TestFilesExpire(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, settings{"FILES_LIFE": "3s"}).alice()
		f := c.upload(t, one("x", "x"))
		object := "/sessions/" + f.Storage + "/objects/" + f.ID
		if got := c.files(t, http.MethodGet, object); got.code != 200 {
			t.Errorf("a young file: got %v, want 200", got)
		}
		err := within(20*time.Second, func() error {
			if got := c.files(t, http.MethodGet, object); got.code != 404 {
				return fmt.Errorf("an old file: got %v, want 404", got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.post(t, program{Files: []fileRef{f}, Code: "print()"}).fails(t, 403, "Unauthorized file reference")
		c.post(t, program{Session: f.Storage, Code: "print(os.listdir())"}).completes(t, "[]\n")
	})
}

// TestCutUploads leaves in the middle of an upload.
func TestCutUploads(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		c := server.alice()
		c.upload(t, one("x", "x"))
		before, err := server.storedFiles()
		if err != nil {
			t.Fatal(err)
		}
		body, contentType, err := form{files: []formFile{{"whole", "x"}, {"half", strings.Repeat("x", 20<<20)}}}.encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/upload", "/upload/batch"} {
			connection, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, c.key, contentType, body.Len())
			if _, err := connection.Write(append([]byte(head), body.Bytes()[:body.Len()/2]...)); err != nil {
				t.Fatal(err)
			}
			// The first file is there already; then the client leaves.
			arrived := within(10*time.Second, func() error {
				now, err := server.storedFiles()
				if err == nil && len(now) <= len(before) {
					err = fmt.Errorf("the store has %q, want more than %q", now, before)
				}
				return err
			})
			if err := errors.Join(arrived, connection.Close()); err != nil {
				t.Fatal(err)
			}
			err = within(10*time.Second, func() error {
				now, err := server.storedFiles()
				now = slices.DeleteFunc(now, func(name string) bool {
					return strings.HasPrefix(name, "claims/") // Of a session that nobody knows.
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

// TestLargeFiles takes a file of 150 MiB up, into a sandbox and down. The server never
// has it in memory.
func TestLargeFiles(t *testing.T) {
	const size = 150 << 20
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		if testing.Short() {
			t.Skip("moves half a gigabyte")
		}
		server := serveAlone(t, s, settings{"MEMORY": "600MiB"})
		c := server.alice()
		server.peak(t) // It can be read.
		pipe, body := io.Pipe()
		w := multipart.NewWriter(body)
		go func() {
			part, err := w.CreateFormFile("file", "large")
			if err == nil {
				_, err = io.CopyN(part, zeros{}, size)
			}
			body.CloseWithError(errors.Join(err, w.Close()))
		}()
		got, err := c.sendFiles(http.MethodPost, "/upload", w.FormDataContentType(), pipe)
		if err != nil || got.code != 200 {
			t.Fatalf("POST /upload: got %v, %v; want 200", got, err)
		}
		var ids []string
		for field := range strings.SplitSeq(got.body, `"`) {
			if sessionForm.MatchString(field) {
				ids = append(ids, field)
			}
		}
		f := fileRef{Storage: ids[0], ID: ids[len(ids)-1], Name: "large"}
		a := c.post(t, program{Files: []fileRef{f}, Code: "print(os.path.getsize('large'))"})
		a.completes(t, strconv.Itoa(size)+"\n")
		a.leaves(t, "large inherited")

		r, err := http.NewRequest(http.MethodGet, server.url+"/download/"+f.Storage+"/"+f.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.authorize(r)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if n, err := io.Copy(io.Discard, response.Body); n != size || err != nil {
			t.Errorf("downloaded %d bytes, %v; want %d", n, err, size)
		}
		if peak := server.peak(t); peak > 100<<20 {
			t.Errorf("the server has had %d MiB in memory, want less than 100", peak>>20)
		}
	})
}

// zeros is a file without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// peak returns the most memory that the server has had, in bytes.
func (s *server) peak(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest + " none")[0])
	if err != nil {
		t.Fatalf("read the peak of memory: %v", err)
	}
	return kilobytes << 10
}
