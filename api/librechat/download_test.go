package librechat_test

import (
	"testing"

	"fermata/engine/files"
)

func TestRanges(t *testing.T) {
	h, _ := withFiles(t)
	sid, fid := put(t, h, "a.csv", "0123456789")
	path := "/download/" + sid + "/" + fid
	etag := call{method: "GET", path: path}.do(t, h).Header().Get("ETag")
	for _, c := range []struct {
		wanted, condition string
		status            int
		body, content     string
	}{
		{"bytes=0-0", "", 206, "0", "bytes 0-0/10"},
		{"bytes=2-4", "", 206, "234", "bytes 2-4/10"},
		{"bytes=7-", "", 206, "789", "bytes 7-9/10"},
		{"bytes=7-99", "", 206, "789", "bytes 7-9/10"},
		{"bytes=-3", "", 206, "789", "bytes 7-9/10"},
		{"bytes=-99", "", 206, "0123456789", "bytes 0-9/10"},
		{"bytes=0-99999999999999999999", "", 206, "0123456789", "bytes 0-9/10"},
		{"bytes=2-4", etag, 206, "234", "bytes 2-4/10"},
		{"bytes=2-4", `"another"`, 200, "0123456789", ""},
		{"bytes=0-1,3-4", "", 200, "0123456789", ""},
		{"bytes=4-2", "", 200, "0123456789", ""},
		{"bytes=a-b", "", 200, "0123456789", ""},
		{"bytes=-", "", 200, "0123456789", ""},
		{"bytes=5", "", 200, "0123456789", ""},
		{"bytes=+1-2", "", 200, "0123456789", ""},
		{"lines=1-2", "", 200, "0123456789", ""},
		{"", "", 200, "0123456789", ""},
		{"bytes=10-", "", 416, `{"error":"The range begins behind the end of the file"}`, "bytes */10"},
		{"bytes=99999999999999999999-", "", 416, `{"error":"The range begins behind the end of the file"}`, "bytes */10"},
		{"bytes=-0", "", 416, `{"error":"The range begins behind the end of the file"}`, "bytes */10"},
	} {
		w := call{method: "GET", path: path, header: map[string]string{"Range": c.wanted, "If-Range": c.condition}}.do(t, h)
		if w.Code != c.status || w.Body.String() != c.body || w.Header().Get("Content-Range") != c.content {
			t.Errorf("Range %q, If-Range %q: got %d %s with Content-Range %q, want %d %s with %q",
				c.wanted, c.condition, w.Code, w.Body, w.Header().Get("Content-Range"), c.status, c.body, c.content)
		}
		if c.status == 416 {
			continue
		}
		for header, value := range map[string]string{"Accept-Ranges": "bytes", "ETag": etag, "Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff"} {
			if got := w.Header().Get(header); got != value {
				t.Errorf("Range %q: %s is %q, want %q", c.wanted, header, got, value)
			}
		}
	}
	w := call{method: "HEAD", path: path, header: map[string]string{"Range": "bytes=2-4"}}.do(t, h)
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "10" || w.Header().Get("Accept-Ranges") != "bytes" {
		t.Errorf("HEAD: got %d %s %v, want the headers of the whole file", w.Code, w.Body, w.Header())
	}
	if w := (call{method: "HEAD", path: "/download/" + sid + "/" + unknown}).do(t, h); w.Code != 404 {
		t.Errorf("HEAD of an unknown file: got %d, want 404", w.Code)
	}
}

func TestDownloadByName(t *testing.T) {
	h, store := withFiles(t)
	sid, fid := put(t, h, "out/ü 1.csv", "first")
	ada := files.Owner{Tenant: "key:ada", Kind: "user", ID: "ada"}
	add := func(name, content string) {
		status, answer := send(t, h, "/upload", "good-key", field("session_id", sid), file(name, content))
		if status != 200 || answer.SessionID != sid {
			t.Fatalf("upload of %s: got %d %+v, want it in session %s", name, status, answer, sid)
		}
	}
	add("out/ü 1.csv", "latest")
	// A name that looks like an id counts only if no file has the id.
	add(unknown, "named like an id")
	add(fid, "named like the first file's id")
	for path, content := range map[string]string{
		"out%2F%C3%BC%201.csv": "latest", fid: "first", unknown: "named like an id",
	} {
		want(t, call{method: "GET", path: "/download/" + sid + "/" + path}.do(t, h), 200, content)
	}
	for _, path := range []string{"1.csv", "out", "%C3%BC%201.csv"} {
		want(t, call{method: "GET", path: "/download/" + sid + "/" + path}.do(t, h), 404, `{"error":"File not found","details":"The file may have expired or does not exist"}`)
	}
	want(t, call{method: "GET", path: "/download/" + sid + "/..%2Fx"}.do(t, h), 400, `{"error":"Bad request"}`)
	w := call{method: "GET", path: "/download/" + sid + "/" + unknown, header: map[string]string{"X-API-Key": "other-key"}}.do(t, h)
	want(t, w, 403, `{"error":"Unauthorized"}`)
	if list, err := store.List(t.Context(), ada, sid); err != nil || len(list) != 4 {
		t.Errorf("List = %v, %v, want four files", list, err)
	}
}

func TestUploadIntoASession(t *testing.T) {
	h, store := withFiles(t)
	sid, fid := put(t, h, "a", "x")
	ada := files.Owner{Tenant: "key:ada", Kind: "user", ID: "ada"}
	for _, path := range []string{"/upload?session_id=" + sid, "/upload/batch?session_id=" + sid, "/v1/upload?session_id=" + unknown + "&x=1"} {
		session := sid
		if path[1] == 'v' {
			session = unknown
		}
		status, answer := send(t, h, path, "good-key", file("b", "y"))
		if status != 200 || answer.SessionID != session || len(answer.Files) != 1 {
			t.Errorf("%s: got %d %+v, want a file in session %s", path, status, answer, session)
		}
	}
	for _, path := range []string{"/upload", "/upload/batch"} {
		if status, answer := send(t, h, path, "other-key", field("session_id", sid), file("b", "y")); status != 403 || answer.Error != "Unauthorized" {
			t.Errorf("%s of another principal: got %d %+v, want 403", path, status, answer)
		}
		if status, answer := send(t, h, path, "good-key", field("session_id", "short"), file("b", "y")); status != 400 ||
			answer.Error != "session_id must be 21 characters of A-Z, a-z, 0-9, _ and -" {
			t.Errorf("%s into no session: got %d %+v, want 400", path, status, answer)
		}
		if status, answer := send(t, h, path, "good-key", file("b", "y"), field("session_id", sid)); status != 400 || answer.Error != "session_id must come before the file" {
			t.Errorf("%s with the session too late: got %d %+v, want 400", path, status, answer)
		}
	}
	// An upload that fails leaves the session as it was.
	if status, answer := send(t, h, "/upload", "good-key", field("session_id", sid), file("c", "z"), file("../d", "z")); status != 400 {
		t.Errorf("a bad name: got %d %+v, want 400", status, answer)
	}
	list, err := store.List(t.Context(), ada, sid)
	if err != nil || len(list) != 3 || list[0].ID != fid {
		t.Errorf("List = %v, %v, want the first file and two others", list, err)
	}
	// No session at all is a new one, as it always was.
	if status, answer := send(t, h, "/upload", "good-key", field("session_id", ""), file("c", "z")); status != 200 || answer.SessionID == sid {
		t.Errorf("an empty session_id: got %d %+v, want a new session", status, answer)
	}
}
