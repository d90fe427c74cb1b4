package files

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestDownloads downloads files by id and by name, whole and in parts.
func TestDownloads(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		a := c.Post(t, harness.Program{Code: "import os\nos.mkdir('out')\nopen('out/ü.csv', 'w').write('0123456789')\nopen('plot', 'w').write('first')"})
		a.Completes(t, "")
		c.Post(t, harness.Program{Session: a.Session, Code: "open('plot', 'w').write('second')"}).Completes(t, "")
		testDownloadByName(t, server, a)
		testRanges(t, c, a.File(t, "out/ü.csv").URL)
	})
}

func testDownloadByName(t *testing.T, server *harness.Server, a harness.Answer) {
	c := server.Alice()
	for _, prefix := range []string{"", "/v1"} {
		for name, want := range map[string]string{"plot": "second", "out%2F%C3%BC.csv": "0123456789", a.File(t, "plot").ID: "first"} {
			path := prefix + "/download/" + a.Session + "/" + name
			got := c.Files(t, http.MethodGet, path)
			if got.HTTPStatus != 200 || got.Body != want {
				t.Errorf("GET %s: got %v, want %s", path, got, want)
			}
			head := c.Files(t, http.MethodHead, path)
			if head.HTTPStatus != 200 || head.Body != "" {
				t.Errorf("HEAD %s: got %v, want headers alone", path, head)
			}
			for _, header := range []string{"Content-Length", "Content-Type", "Content-Disposition", "Accept-Ranges", "ETag", "X-Content-Type-Options", "Content-Security-Policy"} {
				if h, g := head.Header.Get(header), got.Header.Get(header); h != g || h == "" {
					t.Errorf("%s: %s is %q for HEAD and %q for GET", path, header, h, g)
				}
			}
		}
		path := prefix + "/download/" + a.Session + "/plots"
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if got := c.Files(t, method, path); got.HTTPStatus != 404 {
				t.Errorf("%s %s: got %v, want 404", method, path, got)
			}
			if got := server.Bob().Files(t, method, prefix+"/download/"+a.Session+"/plot"); got.HTTPStatus != 403 {
				t.Errorf("%s of another's file by name: got %v, want 403", method, got)
			}
		}
	}
}

// ranged is a download of a part of a file.
func ranged(t *testing.T, c harness.Client, path, part string) harness.Reply {
	t.Helper()
	a, err := c.SendRange(path, part)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func testRanges(t *testing.T, c harness.Client, path string) {
	for _, tc := range []struct {
		part         string
		status       int
		body, served string
	}{
		{"bytes=0-3", 206, "0123", "bytes 0-3/10"},
		{"bytes=4-", 206, "456789", "bytes 4-9/10"},
		{"bytes=-2", 206, "89", "bytes 8-9/10"},
		{"bytes=0-0,2-3", 200, "0123456789", ""},
		{"bytes=10-", 416, `{"error":"The range begins behind the end of the file"}`, "bytes */10"},
	} {
		got := ranged(t, c, path, tc.part)
		if got.HTTPStatus != tc.status || got.Body != tc.body || got.Header.Get("Content-Range") != tc.served {
			t.Errorf("Range %s: got %v with Content-Range %q, want %d %s with %q", tc.part, got, got.Header.Get("Content-Range"), tc.status, tc.body, tc.served)
		}
	}
}

// TestUploadsIntoSessions uploads files into the session of a program.
func TestUploadsIntoSessions(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		first := c.Post(t, harness.Program{Code: "open('a', 'w').write('made')"})
		var upload struct {
			Session string           `json:"session_id"`
			Files   []map[string]any `json:"files"`
		}
		into := func(path string, f harness.Form) {
			t.Helper()
			got := c.UploadTo(t, path, f)
			if err := json.Unmarshal([]byte(got.Body), &upload); err != nil || got.HTTPStatus != 200 || upload.Session != first.Session {
				t.Fatalf("POST %s: got %v, %v, want a file in session %s", path, got, err, first.Session)
			}
		}
		into("/upload", harness.OneFile("b", "by field").With("session_id", first.Session))
		into("/upload?session_id="+first.Session, harness.OneFile("c", "by query"))
		into("/v1/upload/batch", harness.OneFile("d", "in a batch").With("session_id", first.Session))
		c.Post(t, inline{Session: first.Session, Code: show}).Completes(t, "a b'made'\nb b'by field'\nc b'by query'\nd b'in a batch'\n")
		// What an upload answers can be sent as it is.
		delete(upload.Files[0], "status")
		c.Post(t, inline{Code: show, Files: upload.Files}).Completes(t, "d b'in a batch'\n")

		before := c.Files(t, http.MethodGet, "/files/"+first.Session).Body
		for _, tc := range []struct {
			client  harness.Client
			session string
			code    int
			text    string
		}{
			{server.Bob(), first.Session, 403, "Unauthorized"},
			{c, "my session", 400, "session_id must be 21 characters of A-Z, a-z, 0-9, _ and -"},
		} {
			for _, path := range []string{"/upload", "/upload/batch"} {
				got := tc.client.UploadTo(t, path, harness.OneFile("x", "x").With("session_id", tc.session))
				if got.HTTPStatus != tc.code || got.Body != `{"error":"`+tc.text+`"}` {
					t.Errorf("%s into %s: got %v, want %d %s", path, tc.session, got, tc.code, tc.text)
				}
			}
		}
		if after := c.Files(t, http.MethodGet, "/files/"+first.Session).Body; after != before || strings.Count(after, ",") != 3 {
			t.Errorf("the session has %s, want the four files that it had", after)
		}
	})
}
