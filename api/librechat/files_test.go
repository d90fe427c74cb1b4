package librechat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/api/auth"
	"fermata/api/librechat"
	"fermata/engine/files"
)

const unknown = "zzzzzzzzzzzzzzzzzzzzz"

func TestDownload(t *testing.T) {
	h, _ := withFiles(t)
	for name, c := range map[string]struct{ disposition, contentType string }{
		"a.csv":          {`attachment; filename="a.csv"; filename*=UTF-8''a.csv`, "text/csv; charset=utf-8"},
		"out/ü 名.txt":    {`attachment; filename="_ _.txt"; filename*=UTF-8''%C3%BC%20%E5%90%8D.txt`, "text/plain; charset=utf-8"},
		"a';x=y+z&.html": {`attachment; filename="a';x=y+z&.html"; filename*=UTF-8''a%27%3Bx%3Dy%2Bz%26.html`, "application/octet-stream"},
	} {
		content := "<script>\x00\xff" + name
		sid, fid := put(t, h, name, content)
		for _, p := range []string{"/download/", "/v1/download/"} {
			for _, query := range []string{"", "?kind=user&id=somebody", "?entity_id=asst_1"} {
				w := call{method: "GET", path: p + sid + "/" + fid + query}.do(t, h)
				want(t, w, 200, content)
				for header, value := range map[string]string{
					"Content-Disposition": c.disposition, "Content-Type": c.contentType, "X-Content-Type-Options": "nosniff",
					"Content-Length": strconv.Itoa(len(content)), "Content-Security-Policy": "sandbox", "Cross-Origin-Resource-Policy": "same-origin",
				} {
					if got := w.Header().Get(header); got != value {
						t.Errorf("%s: %s is %q, want %q", name, header, got, value)
					}
				}
			}
		}
	}
}

// A file is sent as text or as bytes, whatever its client says that it is.
func TestDownloadsAreHarmless(t *testing.T) {
	h, _ := withFiles(t)
	for declared, want := range map[string]string{
		"text/plain": "text/plain", "Text/CSV; charset=UTF-8": "text/csv; charset=utf-8",
		"text/plain; charset=utf-7":     "text/plain",
		"text/plain; boundary=x; a=b":   "text/plain",
		"text/html":                     "application/octet-stream",
		"application/xhtml+xml":         "application/octet-stream",
		"text/xml":                      "application/octet-stream",
		"image/svg+xml":                 "application/octet-stream",
		"image/png":                     "application/octet-stream",
		"application/pdf":               "application/octet-stream",
		"text/javascript":               "application/octet-stream",
		"application/json":              "application/octet-stream",
		"text/css":                      "application/octet-stream",
		"multipart/x-mixed-replace":     "application/octet-stream",
		"text/plain, text/html":         "application/octet-stream",
		"message/rfc822":                "application/octet-stream",
		"application/x-shockwave-flash": "application/octet-stream",
	} {
		status, answer := send(t, h, "/upload", "good-key", part{"file", "a.bin", declared, "<script>"})
		if status != http.StatusOK {
			t.Fatalf("upload of %s: got %d %+v", declared, status, answer)
		}
		w := call{method: "GET", path: "/download/" + answer.SessionID + "/" + answer.Files[0].FileID}.do(t, h)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("%s is sent as %q, want %q", declared, got, want)
		}
	}
}

// The length is right over a connection, too, and a large file comes whole.
func TestDownloadOverAConnection(t *testing.T) {
	o := options()
	store, err := files.Open(t.Context(), files.Options{
		URL: "file://" + t.TempDir(), MaxFile: 8 << 20, Quota: 8 << 20, MaxFiles: 1, Life: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	o.Files = store
	h := newHandler(completed(), o)
	content := strings.Repeat("0123456789abcdef", 1<<18)
	sid, fid := put(t, h, "a.bin", content)
	server := httptest.NewServer(h)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/download/"+sid+"/"+fid, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", "good-key")
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil || string(got) != content || response.ContentLength != int64(len(content)) {
		t.Errorf("got %d bytes of %d declared, %v; want %d", len(got), response.ContentLength, err, len(content))
	}
}

func TestListShapes(t *testing.T) {
	h, store := withFiles(t)
	sid, fid := put(t, h, "out/a.csv", "a,b\n", field("read_only", "true"))
	ada := files.Owner{Tenant: "key:ada", Kind: "user", ID: "ada"}
	f, err := store.Stat(t.Context(), ada, sid, fid)
	if err != nil {
		t.Fatal(err)
	}
	when, name := f.Modified.Format("2006-01-02T15:04:05.000Z"), sid+"/"+fid+".csv"
	simple := `["` + name + `"]`
	for query, wanted := range map[string]string{
		"":                         simple,
		"?detail=simple":           simple,
		"?detail=unknown":          simple,
		"?detail=simple&kind=user": simple,
		"?entity_id=x":             simple,
		"?detail=summary":          `[{"name":"` + name + `","size":4,"lastModified":"` + when + `","etag":"` + f.ETag + `","filename":"out/a.csv"}]`,
		"?detail=full": `[{"name":"` + name + `","id":"` + fid + `","session_id":"` + sid + `","storage_session_id":"` + sid + `","size":4,` +
			`"lastModified":"` + when + `","etag":"` + f.ETag + `","contentType":"text/csv; charset=utf-8",` +
			`"metadata":{"original-filename":"out/a.csv","content-type":"text/csv; charset=utf-8"},"filename":"out/a.csv"}]`,
		"?detail=normalized": `[{"id":"` + fid + `","name":"out/a.csv","storage_session_id":"` + sid + `","size":4,` +
			`"contentType":"text/csv; charset=utf-8","lastModified":"` + when + `","read_only":true}]`,
	} {
		for _, prefix := range []string{"", "/v1"} {
			want(t, call{method: "GET", path: prefix + "/files/" + sid + query}.do(t, h), 200, wanted)
		}
	}
	for _, prefix := range []string{"", "/v1"} {
		want(t, call{method: "GET", path: prefix + "/sessions/" + sid + "/objects/" + fid}.do(t, h), 200,
			`{"lastModified":"`+when+`","originalFilename":"out/a.csv","name":"`+name+`","size":4,"etag":"`+f.ETag+
				`","contentType":"text/csv; charset=utf-8","readOnly":true}`)
	}
	want(t, call{method: "GET", path: "/files/" + unknown}.do(t, h), 200, `[]`)
	if !strings.HasSuffix(when, "Z") || f.ETag == "" {
		t.Errorf("lastModified is %q, the etag %q", when, f.ETag)
	}
}

func TestDeleteFile(t *testing.T) {
	h, _ := withFiles(t)
	for _, prefix := range []string{"/files/%/", "/sessions/%/objects/", "/v1/files/%/", "/v1/sessions/%/objects/"} {
		sid, fid := put(t, h, "a", "x")
		c := call{method: "DELETE", path: strings.Replace(prefix, "%", sid, 1) + fid}
		want(t, c.do(t, h), 200, `{"message":"File deleted successfully","session_id":"`+sid+`","fileId":"`+fid+`"}`)
		want(t, c.do(t, h), 404, `{"error":"File not found"}`)
		want(t, call{method: "GET", path: "/files/" + sid}.do(t, h), 200, `[]`)
	}
}

// fileRoutes are all routes for a file or a session, without those for uploads.
func fileRoutes(sid, fid string) []call {
	return []call{
		{method: "GET", path: "/files/" + sid},
		{method: "GET", path: "/files/" + sid + "?detail=full"},
		{method: "GET", path: "/sessions/" + sid + "/objects/" + fid},
		{method: "GET", path: "/download/" + sid + "/" + fid},
		{method: "DELETE", path: "/files/" + sid + "/" + fid},
		{method: "DELETE", path: "/sessions/" + sid + "/objects/" + fid},
	}
}

func TestFilesOfOthers(t *testing.T) {
	h, store := withFiles(t)
	sid, fid := put(t, h, "a", "secret")
	agentSID, agentFID := put(t, h, "b", "secret", field("kind", "agent"), field("id", "g"))
	skillSID, skillFID := put(t, h, "c", "secret", field("kind", "skill"), field("id", "g"), field("version", "1"))
	for _, c := range []struct{ name, key, sid, fid, query string }{
		{"another key", "other-key", sid, fid, ""},
		{"another key that says whose", "other-key", sid, fid, "kind=user&id=ada"},
		{"another key with an agent", "other-key", sid, fid, "kind=agent&id=ada"},
		{"another key with a skill", "other-key", sid, fid, "kind=skill&id=ada&version=0"},
		{"another key, the agent's file", "other-key", agentSID, agentFID, "kind=agent&id=g"},
		{"another key, the skill's file", "other-key", skillSID, skillFID, "kind=skill&id=g&version=1"},
		{"an agent, the user's file", "good-key", sid, fid, "kind=agent&id=ada"},
		{"a user, the agent's file", "good-key", agentSID, agentFID, ""},
		{"another agent", "good-key", agentSID, agentFID, "kind=agent&id=h"},
		{"a skill of the agent's name", "good-key", agentSID, agentFID, "kind=skill&id=g&version=0"},
		{"another version", "good-key", skillSID, skillFID, "kind=skill&id=g&version=2"},
	} {
		for _, r := range fileRoutes(c.sid, c.fid) {
			for _, prefix := range []string{"", "/v1"} {
				r := r // Its path is changed.
				if r.path = prefix + r.path; c.query != "" {
					sep := "?"
					if strings.Contains(r.path, "?") {
						sep = "&"
					}
					r.path += sep + c.query
				}
				r.header = map[string]string{"X-API-Key": c.key}
				w := r.do(t, h)
				if w.Code != http.StatusForbidden || w.Body.String() != `{"error":"Unauthorized"}` {
					t.Errorf("%s: %s %s: got %d %s, want 403", c.name, r.method, r.path, w.Code, w.Body)
				}
			}
		}
	}
	// A file of the client's own session does not open another session.
	_, other := send(t, h, "/upload", "other-key", file("a", "x"))
	otherSID, otherFID := other.SessionID, other.Files[0].FileID
	for _, ids := range [][2]string{{otherSID, fid}, {unknown, fid}, {otherSID, unknown}} {
		for _, r := range fileRoutes(ids[0], ids[1])[2:] {
			r.header = map[string]string{"X-API-Key": "other-key"}
			if w := r.do(t, h); w.Code != http.StatusNotFound {
				t.Errorf("%s %s: got %d %s, want 404", r.method, r.path, w.Code, w.Body)
			}
		}
	}
	want(t, call{method: "GET", path: "/download/" + sid + "/" + otherFID}.do(t, h), 404,
		`{"error":"File not found","details":"The file may have expired or does not exist"}`)

	for _, c := range []struct {
		owner    files.Owner
		sid, fid string
	}{
		{files.Owner{Tenant: "key:ada", Kind: "user", ID: "ada"}, sid, fid},
		{files.Owner{Tenant: "key:ada", Kind: "agent", ID: "g"}, agentSID, agentFID},
		{files.Owner{Tenant: "key:ada", Kind: "skill", ID: "g", Version: 1}, skillSID, skillFID},
	} {
		if _, err := store.Stat(t.Context(), c.owner, c.sid, c.fid); err != nil {
			t.Errorf("after all attempts %+v has its file no more: %v", c.owner, err)
		}
	}
}

// A key and a token with the same name have no files in common, and neither do users of two tenants.
// The files of an agent belong to its tenant.
func TestOwnersOfPrincipals(t *testing.T) {
	owner := func(who auth.Principal, kind, id, version string) files.Owner {
		t.Helper()
		o, err := librechat.OwnerOf(who, kind, id, version)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	key := auth.Principal{ID: "a"}
	token := auth.Principal{ID: "jwt:a:a", Tenant: "a", User: "a"}
	colleague := auth.Principal{ID: "jwt:a:b", Tenant: "a", User: "b"}
	stranger := auth.Principal{ID: "jwt:b:a", Tenant: "b", User: "a"}
	for name, pair := range map[string][2]files.Owner{
		"key and token":                {owner(key, "", "", ""), owner(token, "", "", "")},
		"tenant that looks like a key": {owner(key, "", "", ""), owner(auth.Principal{Tenant: "key:a", User: "a"}, "", "", "")},
		"colleagues":                   {owner(token, "", "", ""), owner(colleague, "user", "a", "")},
		"tenants":                      {owner(token, "", "", ""), owner(stranger, "", "", "")},
		"agents of tenants":            {owner(token, "agent", "g", ""), owner(stranger, "agent", "g", "")},
		"user and agent of its name":   {owner(token, "", "", ""), owner(token, "agent", "a", "")},
		"agent and skill":              {owner(token, "agent", "g", ""), owner(token, "skill", "g", "0")},
		"agents of key and token":      {owner(key, "agent", "g", ""), owner(token, "agent", "g", "")},
	} {
		if pair[0] == pair[1] {
			t.Errorf("%s: both are %+v", name, pair[0])
		}
	}
	if a, b := owner(token, "agent", "g", ""), owner(colleague, "agent", "g", ""); a != b {
		t.Errorf("an agent of one tenant is %+v and %+v", a, b)
	}
}

func TestMalformedFileRequests(t *testing.T) {
	h, _ := withFiles(t)
	sid, fid := put(t, h, "a", "x")
	for _, ids := range [][2]string{
		{"short", fid},
		{sid, "short"},
		{sid + "x", fid},
		{sid, fid + ".csv"},
		{"..%2f..%2f..%2f..%2f..%2f", fid},
		{sid, "%00abcdefghijklmnopqrs"},
	} {
		for _, r := range fileRoutes(ids[0], ids[1]) {
			if ids[0] == sid && r.method == "GET" && strings.HasPrefix(r.path, "/files/") {
				continue // It has no file id.
			}
			if ids[0] == sid && strings.HasPrefix(r.path, "/download/") && !strings.Contains(r.path, "%00") {
				want(t, r.do(t, h), 404, `{"error":"File not found","details":"The file may have expired or does not exist"}`)
				continue // It may be a name.
			}
			want(t, r.do(t, h), 400, `{"error":"Bad request"}`)
		}
	}
	for query, text := range map[string]string{
		"kind=team":                   "kind must be one of: skill, agent, user",
		"kind=User":                   "kind must be one of: skill, agent, user",
		"kind=agent":                  "id is required for kind: 'agent'",
		"kind=skill&id=x":             "version is required for kind: 'skill'",
		"kind=skill&id=x&version=1.5": "version is required for kind: 'skill'",
		"kind=user&version=1":         "version is only valid for kind: 'skill'",
		"kind=agent&id=x&version=1":   "version is only valid for kind: 'skill'",
	} {
		for _, r := range fileRoutes(sid, fid) {
			if strings.Contains(r.path, "?") {
				continue
			}
			r.path += "?" + query
			want(t, r.do(t, h), 400, `{"error":"`+text+`"}`)
		}
	}
}

func TestFileRoutesNeedAKey(t *testing.T) {
	h, _ := withFiles(t)
	sid, fid := put(t, h, "a", "x")
	for _, key := range []string{"", "wrong"} {
		for _, r := range append(fileRoutes(sid, fid), call{path: "/upload"}, call{path: "/upload/batch"}) {
			r.header = map[string]string{"X-API-Key": key}
			want(t, r.do(t, h), 401, `{"error":"Invalid or missing API key"}`)
		}
	}
}

func TestWithoutAStoreThereAreNoFileRoutes(t *testing.T) {
	h := newHandler(completed(), options())
	for _, r := range append(fileRoutes(unknown, unknown), call{path: "/upload"}, call{path: "/v1/upload/batch"}) {
		want(t, r.do(t, h), 404, `{"error":"Not found"}`)
	}
}
