package librechat_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/api"
	"fermata/engine/files"
)

// A part is a part of a form: a field if it has no file.
type part struct{ name, file, contentType, content string }

func file(name, content string) part { return part{name: "file", file: name, content: content} }

func field(name, value string) part { return part{name: name, content: value} }

func form(parts ...part) (contentType, body string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += `; filename="` + p.file + `"`
		}
		h.Set("Content-Disposition", disposition)
		if p.contentType != "" {
			h.Set("Content-Type", p.contentType)
		}
		// Writing to a buffer never fails.
		to, _ := w.CreatePart(h)
		_, _ = io.WriteString(to, p.content)
	}
	_ = w.Close()
	return w.FormDataContentType(), b.String()
}

// fileStore opens a store in a directory.
func fileStore(t *testing.T, dir string) *files.Store {
	t.Helper()
	return storeOf(t, dir, 1000)
}

// largeStore opens one that takes larger files.
func largeStore(t *testing.T, dir string) *files.Store {
	t.Helper()
	return storeOf(t, dir, 1<<20)
}

func storeOf(t *testing.T, dir string, maxFile int64) *files.Store {
	t.Helper()
	s, err := files.Open(t.Context(), files.Options{
		URL: "file://" + dir, MaxFile: maxFile, Quota: 1 << 20, MaxFiles: 300, Life: 24 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// withFiles is a handler with a store for files.
func withFiles(t *testing.T) (http.Handler, *files.Store) {
	t.Helper()
	o := options()
	store := fileStore(t, t.TempDir())
	o.Files = store
	return newHandler(completed(), o), store
}

// uploadAnswer is what a client reads of the answer to an upload.
type uploadAnswer struct {
	Message, Error    string
	StorageSessionID  string `json:"storage_session_id"`
	SessionID         string `json:"session_id"`
	Succeeded, Failed int
	FilesLimitReached bool
	MaxFiles          int
	Files             []struct{ Filename, FileID, Status, Error string }
}

func send(t *testing.T, h http.Handler, path, key string, parts ...part) (int, uploadAnswer) {
	t.Helper()
	contentType, body := form(parts...)
	w := call{path: path, body: body, header: map[string]string{"Content-Type": contentType, "X-API-Key": key}}.do(t, h)
	var answer uploadAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("the answer %q is not JSON: %v", w.Body, err)
	}
	return w.Code, answer
}

// put uploads one file as ada and returns its session and id.
func put(t *testing.T, h http.Handler, name, content string, fields ...part) (sid, fid string) {
	t.Helper()
	status, answer := send(t, h, "/upload", "good-key", append(fields, file(name, content))...)
	if status != http.StatusOK || len(answer.Files) != 1 {
		t.Fatalf("upload of %s: got %d %+v", name, status, answer)
	}
	return answer.SessionID, answer.Files[0].FileID
}

func TestUpload(t *testing.T) {
	h, store := withFiles(t)
	user := files.Owner{Tenant: "key:ada", Kind: "user", ID: "ada"}
	for _, c := range []struct {
		name  string
		parts []part
		owner files.Owner
		files []files.File
	}{
		{
			"host",
			[]part{field("kind", "user"), field("id", "u1"), {"file", "a.csv", "text/csv", "a,b\n"}},
			user,
			[]files.File{{Name: "a.csv", Size: 4, Type: "text/csv"}},
		},
		{
			"older host",
			[]part{field("entity_id", "asst_1"), file("a.txt", "x")},
			user,
			[]files.File{{Name: "a.txt", Size: 1, Type: "text/plain; charset=utf-8"}},
		},
		{
			"sub-directory, Unicode, empty",
			[]part{file("out/plot ü 名前.txt", "")},
			user,
			[]files.File{{Name: "out/plot ü 名前.txt", Type: "text/plain; charset=utf-8"}},
		},
		{
			"any names, several",
			[]part{{"files", "b", "", "1"}, {"files", "a", "", "2"}, {"x", "c", "", "3"}},
			user,
			[]files.File{
				{Name: "a", Size: 1, Type: "text/plain; charset=utf-8"},
				{Name: "b", Size: 1, Type: "text/plain; charset=utf-8"},
				{Name: "c", Size: 1, Type: "text/plain; charset=utf-8"},
			},
		},
		{
			"agent, read-only",
			[]part{field("kind", "agent"), field("id", "agent_1"), field("read_only", "true"), file("a", "x")},
			files.Owner{Tenant: "key:ada", Kind: "agent", ID: "agent_1"},
			[]files.File{{Name: "a", Size: 1, Type: "text/plain; charset=utf-8", ReadOnly: true}},
		},
		{
			"skill",
			[]part{field("kind", "skill"), field("id", "s"), field("version", "3"), field("read_only", "false"), file("a", "x")},
			files.Owner{Tenant: "key:ada", Kind: "skill", ID: "s", Version: 3},
			[]files.File{{Name: "a", Size: 1, Type: "text/plain; charset=utf-8"}},
		},
	} {
		for _, prefix := range []string{"", "/v1"} {
			t.Run(prefix+c.name, func(t *testing.T) {
				status, answer := send(t, h, prefix+"/upload", "good-key", c.parts...)
				if status != http.StatusOK || answer.Message != "success" || answer.SessionID != answer.StorageSessionID || len(answer.Files) != len(c.files) {
					t.Fatalf("got %d %+v, want 200 with %d files", status, answer, len(c.files))
				}
				got, err := store.List(t.Context(), c.owner, answer.SessionID)
				if err != nil {
					t.Fatal(err)
				}
				ids := map[string]string{}
				for _, f := range answer.Files {
					ids[f.Filename] = f.FileID
				}
				for i, f := range got {
					if f.ID != ids[f.Name] {
						t.Errorf("%s has the id %s, the answer says %s", f.Name, f.ID, ids[f.Name])
					}
					got[i] = files.File{Name: f.Name, Size: f.Size, Type: f.Type, ReadOnly: f.ReadOnly}
				}
				if diff := cmp.Diff(c.files, got); diff != "" {
					t.Errorf("stored files (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestUploadAnswer(t *testing.T) {
	h, _ := withFiles(t)
	contentType, body := form(file("a.csv", "x"))
	w := call{path: "/upload", body: body, header: map[string]string{"Content-Type": contentType}}.do(t, h)
	var ids struct {
		S string `json:"session_id"`
		F []struct {
			ID string `json:"fileId"`
		} `json:"files"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &ids); err != nil || len(ids.F) != 1 {
		t.Fatalf("got %s, %v", w.Body, err)
	}
	want(t, w, 200, `{"message":"success","storage_session_id":"`+ids.S+`","session_id":"`+ids.S+`","files":[{"filename":"a.csv","fileId":"`+ids.F[0].ID+`",`+
		`"id":"`+ids.F[0].ID+`","name":"a.csv","session_id":"`+ids.S+`"}]}`)
	if !files.ValidID(ids.S) || !files.ValidID(ids.F[0].ID) {
		t.Errorf("ids %q and %q are not of 21 characters", ids.S, ids.F[0].ID)
	}
}

func TestRefusedUploads(t *testing.T) {
	many := make([]part, 201)
	for i := range many {
		many[i] = file("a", "")
	}
	fields := make([]part, 40)
	for i := range fields {
		fields[i] = field("x", "y")
	}
	for _, c := range []struct {
		name   string
		parts  []part
		status int
		text   string
	}{
		{"nothing", nil, 400, "No file provided"},
		{"no file", []part{field("kind", "user")}, 400, "No file provided"},
		{"too large", []part{file("a", strings.Repeat("x", 1001))}, 413, "File size limit exceeded"},
		{"second too large", []part{file("a", "x"), file("b", strings.Repeat("x", 1001))}, 413, "File size limit exceeded"},
		{"unknown kind", []part{field("kind", "team"), file("a", "")}, 400, "kind must be one of: skill, agent, user"},
		{"agent without id", []part{field("kind", "agent"), file("a", "")}, 400, "id is required for kind: 'agent'"},
		{"skill without id", []part{field("kind", "skill"), field("version", "1"), file("a", "")}, 400, "id is required for kind: 'skill'"},
		{"skill without version", []part{field("kind", "skill"), field("id", "s"), file("a", "")}, 400, "version is required for kind: 'skill'"},
		{"skill with bad version", []part{field("kind", "skill"), field("id", "s"), field("version", "x"), file("a", "")}, 400, "version is required for kind: 'skill'"},
		{"version without skill", []part{field("version", "1"), file("a", "")}, 400, "version is only valid for kind: 'skill'"},
		{"late kind", []part{file("a", ""), field("kind", "agent")}, 400, "kind must come before the file"},
		{"late read_only", []part{file("a", ""), field("read_only", "true")}, 400, "read_only must come before the file"},
		{"long id", []part{field("kind", "agent"), field("id", strings.Repeat("x", 2000)), file("a", "")}, 400, "id must have at most 1024 bytes"},
		{"many fields", append(fields, file("a", "")), 400, "Too many form fields provided. Maximum is 32."},
		{"large field of nobody", []part{field("x", strings.Repeat("x", 70<<10)), file("a", "")}, 400, "a form field is larger than 65536 bytes"},
		{"small field of nobody", []part{field("x", strings.Repeat("x", 60<<10))}, 400, "No file provided"},
		{"large header of a part", []part{{"file", "a", strings.Repeat("x", 70<<10), ""}}, 400, "the header of a part of the form is larger than 65536 bytes"},
		{"many files", many, 400, "Too many files provided. Maximum is 200."},
		{"climbing name", []part{file("../a", "x")}, 400, "file name must not contain empty, . or .. segments"},
		{"absolute name", []part{file("/etc/passwd", "x")}, 400, "file name must be a relative path"},
		{"bidi name", []part{file("a\u202eb", "x")}, 400, "file name must not contain control characters or backslashes"},
		{"name not UTF-8", []part{file("a\xff", "x")}, 400, "file name must be valid UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := withFiles(t)
			status, answer := send(t, h, "/upload", "good-key", c.parts...)
			if status != c.status || answer.Error != c.text {
				t.Errorf("got %d %+v, want %d %q", status, answer, c.status, c.text)
			}
		})
	}
	for _, path := range []string{"/upload", "/upload/batch"} {
		h, _ := withFiles(t)
		for contentType, text := range map[string]string{
			"application/json":                "Invalid content type. Must be multipart/form-data.",
			"":                                "Invalid content type. Must be multipart/form-data.",
			"multipart/form-data":             "Invalid content type. Must be multipart/form-data.",
			"multipart/mixed; boundary=x":     "Invalid content type. Must be multipart/form-data.",
			"multipart/form-data; boundary=x": "request body is incomplete",
		} {
			w := call{path: path, body: "{}", header: map[string]string{"Content-Type": contentType}}.do(t, h)
			want(t, w, 400, `{"error":"`+text+`"}`)
		}
	}
}

func TestUploadNeedsAKey(t *testing.T) {
	h, _ := withFiles(t)
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/upload", unreadable{t, w})
	h.ServeHTTP(w, r)
	want(t, w, 401, `{"error":"Invalid or missing API key"}`)
}

func TestBatch(t *testing.T) {
	large := strings.Repeat("x", 1001)
	many := make([]part, 201)
	for i := range many {
		many[i] = file(fmt.Sprintf("f%d", i), "")
	}
	for _, c := range []struct {
		name              string
		parts             []part
		status            int
		message           string
		succeeded, failed int
		limit             bool
	}{
		{"all", []part{file("a", "1"), file("b", "2")}, 200, "success", 2, 0, false},
		{"some", []part{file("a", large), file("b", "2"), file("../c", "3"), file("d", "")}, 200, "partial_success", 2, 2, false},
		{"none", []part{file("a", large), file("..", "")}, 400, "error", 0, 2, false},
		{"too many", many, 200, "success", 200, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, store := withFiles(t)
			status, got := send(t, h, "/v1/upload/batch", "good-key", c.parts...)
			if status != c.status || got.Message != c.message || got.Succeeded != c.succeeded || got.Failed != c.failed ||
				got.FilesLimitReached != c.limit || (got.MaxFiles == 200) != c.limit || got.SessionID != got.StorageSessionID {
				t.Errorf("got %d %+v, want %+v", status, got, c)
			}
			kept, err := store.List(t.Context(), files.Owner{Tenant: "key:ada", Kind: "user", ID: "ada"}, got.SessionID)
			if err != nil || len(kept) != c.succeeded {
				t.Errorf("%d files are stored, %v, want %d", len(kept), err, c.succeeded)
			}
			for _, f := range got.Files {
				if (f.Status == "success") != (f.FileID != "") || (f.Status == "error") != (f.Error != "") {
					t.Errorf("a file is told of as %+v", f)
				}
			}
		})
	}
	h, _ := withFiles(t)
	status, got := send(t, h, "/upload/batch", "good-key", field("kind", "user"))
	if status != 400 || got.Error != "No files provided" {
		t.Errorf("empty batch: got %d %+v", status, got)
	}
}

// bodyUntil is a body that fails after its bytes. It counts what was read of it.
type bodyUntil struct {
	io.Reader
	err error
}

func (b bodyUntil) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

// stored returns the files in the directory of a store.
func stored(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "/claims/") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestCutUploadsLeaveNothing(t *testing.T) {
	contentType, whole := form(file("a", "one"), file("b", strings.Repeat("x", 900)))
	timeout := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	t.Run("no last boundary", func(t *testing.T) {
		dir := t.TempDir()
		o := options()
		o.Files = fileStore(t, dir)
		w := call{path: "/upload", body: strings.TrimSuffix(whole, "--\r\n"), header: map[string]string{"Content-Type": contentType}}.do(t, newHandler(completed(), o))
		want(t, w, 400, `{"error":"request body is incomplete"}`)
		if names := stored(t, dir); len(names) != 0 {
			t.Errorf("it has left %q", names)
		}
	})
	for _, path := range []string{"/upload", "/upload/batch"} {
		for _, left := range []int{1, 100, 600, len(whole) - 10} {
			for _, c := range []struct {
				err    error
				status int
				answer string
			}{
				{io.ErrUnexpectedEOF, 400, `{"error":"request body is incomplete"}`},
				{timeout, 504, `{"error":"Upload timeout"}`},
			} {
				dir := t.TempDir()
				o := options()
				o.Files = fileStore(t, dir)
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bodyUntil{strings.NewReader(whole[:len(whole)-left]), c.err})
				r.Header.Set("Content-Type", contentType)
				r.Header.Set("X-API-Key", "good-key")
				w := httptest.NewRecorder()
				newHandler(completed(), o).ServeHTTP(w, r)
				want(t, w, c.status, c.answer)
				if names := stored(t, dir); len(names) != 0 {
					t.Errorf("%s without its last %d bytes has left %q", path, left, names)
				}
			}
		}
	}
}

// A slow client may take its time, but a client that stands still may not, and neither may one that
// sends next to nothing.
func TestUploadsMayBeSlow(t *testing.T) {
	for _, c := range []struct {
		name   string
		pause  time.Duration
		status int
		answer string
	}{
		{"slow", api.FileTimeout / 15, 200, "success"},
		{"dripping", api.FileTimeout - time.Second, 504, "Upload timeout"},
		{"stalled", api.FileTimeout + time.Second, 504, "Upload timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.Files = fileStore(t, dir)
				client, conn := net.Pipe()
				listener := &oneConn{conns: make(chan net.Conn, 1)}
				listener.conns <- conn
				server := &http.Server{Handler: newHandler(completed(), o)}
				go func() { _ = server.Serve(listener) }()
				defer func() { _ = errors.Join(client.Close(), server.Close()) }()

				contentType, body := form(file("a", strings.Repeat("x", 900)))
				head := fmt.Sprintf("POST /upload HTTP/1.1\r\nHost: x\r\nX-API-Key: good-key\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", contentType, len(body))
				if _, err := io.WriteString(client, head); err != nil {
					t.Fatal(err)
				}
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for i := 0; i < len(body); i += 100 {
						time.Sleep(c.pause)
						if _, err := io.WriteString(client, body[i:min(i+100, len(body))]); err != nil {
							return // The server has answered and closed.
						}
					}
				}()
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(response.Body)
				if err := errors.Join(err, response.Body.Close()); err != nil {
					t.Fatal(err)
				}
				if response.StatusCode != c.status || !strings.Contains(string(answer), c.answer) {
					t.Errorf("got %d %s, want %d %s", response.StatusCode, answer, c.status, c.answer)
				}
				_ = client.Close()
				<-sent
			})
		})
	}
}

// A oneConn is a listener with one connection.
type oneConn struct{ conns chan net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *oneConn) Close() error {
	close(l.conns)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// An upload that fails, and one that does not, leave nothing in the budget of bodies.
func TestUploadsLeaveNothingInTheBudget(t *testing.T) {
	o := options()
	o.Files = fileStore(t, t.TempDir())
	o.BodyBudget, o.UploadMemory = 100, 20 // A principal may have 25.
	h := newHandler(completed(), o)
	for range 3 {
		for _, body := range []string{"", "x"} {
			w := call{path: "/upload", body: body, header: map[string]string{"Content-Type": "multipart/form-data; boundary=x"}}.do(t, h)
			if w.Code != http.StatusBadRequest {
				t.Errorf("the body %q: got %d %s, want 400", body, w.Code, w.Body)
			}
		}
		put(t, h, "a", "1")
	}
}
