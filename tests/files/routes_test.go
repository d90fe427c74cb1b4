package files

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// unknownID is a valid id that does not exist.
const unknownID = "aaaaaaaaaaaaaaaaaaaaa"

// TestFileRoutes uploads, lists, downloads and deletes files by every route.
func TestFileRoutes(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, prefix := range []string{"", "/v1"} {
			t.Run("one"+prefix, func(t *testing.T) { testOneFile(t, c, prefix) })
		}
		t.Run("shapes of lists", func(t *testing.T) { testLists(t, c) })
		t.Run("batch", func(t *testing.T) { testBatch(t, c) })
		t.Run("refused uploads", func(t *testing.T) { testRefusedUploads(t, c) })
		t.Run("owners", func(t *testing.T) { testScopes(t, c) })
	})
}

func testOneFile(t *testing.T, c harness.Client, prefix string) {
	f := c.Upload(t, harness.OneFile("sub/ü 1.csv", "a,b\n"))
	if !harness.IDForm.MatchString(f.ID) || !harness.IDForm.MatchString(f.Storage) || f.Name != "sub/ü 1.csv" {
		t.Errorf("uploaded %+v, want two ids of 21 characters and the name", f)
	}
	download := c.Files(t, http.MethodGet, prefix+"/download/"+f.Storage+"/"+f.ID)
	if download.HTTPStatus != 200 || download.Body != "a,b\n" {
		t.Errorf("download: got %v, want what was uploaded", download)
	}
	for header, want := range map[string]string{
		"Content-Disposition": `attachment; filename="_ 1.csv"; filename*=UTF-8''%C3%BC%201.csv`, "Content-Length": "4",
		"Content-Type": "text/csv; charset=utf-8", "X-Content-Type-Options": "nosniff",
	} {
		if got := download.Header.Get(header); got != want {
			t.Errorf("download: %s is %q, want %q", header, got, want)
		}
	}
	object := prefix + "/sessions/" + f.Storage + "/objects/" + f.ID
	info := c.Files(t, http.MethodGet, object+"?kind=user&id=somebody")
	var properties struct {
		Modified time.Time `json:"lastModified"`
		Original string    `json:"originalFilename"`
		Size     int
		ReadOnly *bool
	}
	if err := json.Unmarshal([]byte(info.Body), &properties); err != nil || properties.Original != f.Name || properties.Size != 4 ||
		properties.ReadOnly == nil || time.Since(properties.Modified).Abs() > time.Minute {
		t.Errorf("object: got %v (%v), want name, size, age and readOnly", info, err)
	}
	for _, path := range []string{object, prefix + "/files/" + f.Storage + "/" + f.ID} {
		g := c.Upload(t, harness.OneFile("x", "x"))
		path = strings.NewReplacer(f.Storage, g.Storage, f.ID, g.ID).Replace(path)
		want := fmt.Sprintf(`{"message":"File deleted successfully","session_id":"%s","fileId":"%s"}`, g.Storage, g.ID)
		if got := c.Files(t, http.MethodDelete, path); got.HTTPStatus != 200 || got.Body != want {
			t.Errorf("DELETE %s: got %v, want %s", path, got, want)
		}
		for _, again := range []struct{ method, path string }{
			{http.MethodDelete, path}, {http.MethodGet, "/sessions/" + g.Storage + "/objects/" + g.ID}, {http.MethodGet, "/download/" + g.Storage + "/" + g.ID},
		} {
			if got := c.Files(t, again.method, again.path); got.HTTPStatus != 404 || !strings.HasPrefix(got.Body, `{"error":"File not found"`) {
				t.Errorf("%s %s of a deleted file: got %v, want 404", again.method, again.path, got)
			}
		}
	}
}

func testLists(t *testing.T, c harness.Client) {
	f := c.Upload(t, harness.OneFile("b/a.csv", "a,b\n"))
	name := f.Storage + "/" + f.ID + ".csv"
	for detail, want := range map[string][]string{
		"":           nil,
		"simple":     nil,
		"summary":    {"name", "size", "lastModified", "etag", "filename"},
		"full":       {"name", "id", "session_id", "storage_session_id", "size", "lastModified", "etag", "contentType", "metadata", "filename"},
		"normalized": {"id", "name", "storage_session_id", "size", "contentType", "lastModified"},
	} {
		got := c.Files(t, http.MethodGet, "/files/"+f.Storage+"?detail="+detail)
		if want == nil {
			if got.HTTPStatus != 200 || got.Body != `["`+name+`"]` {
				t.Errorf("detail %q: got %v, want the name %s", detail, got, name)
			}
			continue
		}
		var list []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(got.Body), &list); err != nil || got.HTTPStatus != 200 || len(list) != 1 {
			t.Errorf("detail %q: got %v, want one object", detail, got)
			continue
		}
		var members []string
		for member := range list[0] {
			members = append(members, member)
		}
		slices.Sort(members)
		slices.Sort(want)
		if !slices.Equal(members, want) {
			t.Errorf("detail %q: got the members %q, want %q", detail, members, want)
		}
	}
	if got := c.Files(t, http.MethodGet, "/files/"+unknownID+"?detail=full"); got.HTTPStatus != 200 || got.Body != "[]" {
		t.Errorf("list of an unknown session: got %v, want []", got)
	}
	if got := c.Files(t, http.MethodGet, "/files/short"); got.HTTPStatus != 400 {
		t.Errorf("list of what is no id: got %v, want 400", got)
	}
}

func testBatch(t *testing.T, c harness.Client) {
	got := c.UploadTo(t, "/upload/batch", harness.Form{Files: []harness.FormFile{{Name: "a", Content: "1"}, {Name: "../b", Content: "2"}, {Name: "c", Content: "3"}}})
	var body struct {
		Message, Error    string
		Storage           string `json:"storage_session_id"`
		Succeeded, Failed int
		Files             []struct{ Status, Filename, FileID, Error string }
	}
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
		t.Fatal(got, err)
	}
	if got.HTTPStatus != 200 || body.Message != "partial_success" || body.Succeeded != 2 || body.Failed != 1 || len(body.Files) != 3 ||
		body.Files[1].Status != "error" || body.Files[1].Error != "file name must not contain empty, . or .. segments" {
		t.Errorf("got %v, want two of three files stored", got)
	}
	for i, want := range map[int]string{0: "1", 2: "3"} {
		if got := c.Download(t, harness.FileRef{Storage: body.Storage, ID: body.Files[i].FileID}); got != want {
			t.Errorf("file %d is %q, want %q", i, got, want)
		}
	}
}

func testRefusedUploads(t *testing.T, c harness.Client) {
	for name, tc := range map[string]struct {
		path string
		form harness.Form
		code int
		text string
	}{
		"no file":                 {"/upload", harness.Form{}, 400, "No file provided"},
		"no files":                {"/upload/batch", harness.Form{}, 400, "No files provided"},
		"unknown kind":            {"/upload", harness.OneFile("a", "").With("kind", "session"), 400, "kind must be one of: skill, agent, user"},
		"agent without id":        {"/upload", harness.OneFile("a", "").With("kind", "agent"), 400, "id is required for kind: 'agent'"},
		"skill without version":   {"/upload", harness.OneFile("a", "").With("kind", "skill").With("id", "s"), 400, "version is required for kind: 'skill'"},
		"version without a skill": {"/upload", harness.OneFile("a", "").With("version", "1"), 400, "version is only valid for kind: 'skill'"},
		"absolute":                {"/upload", harness.OneFile("/etc/passwd", ""), 400, "file name must be a relative path"},
		"upwards":                 {"/upload", harness.OneFile("a/../../b", ""), 400, "file name must not contain empty, . or .. segments"},
		"backslash":               {"/upload", harness.OneFile(`a\b`, ""), 400, "file name must not contain control characters or backslashes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.UploadTo(t, tc.path, tc.form); got.HTTPStatus != tc.code || got.Body != `{"error":"`+tc.text+`"}` {
				t.Errorf("got %v, want %d %s", got, tc.code, tc.text)
			}
		})
	}
	got, err := c.SendFiles(http.MethodPost, "/upload", "application/json", strings.NewReader("{}"))
	if err != nil || got.HTTPStatus != 400 || got.Body != `{"error":"Invalid content type. Must be multipart/form-data."}` {
		t.Errorf("JSON: got %v, %v; want 400", got, err)
	}
}

// testScopes checks that a file of an agent or a skill is found only by its kind, id and version.
func testScopes(t *testing.T, c harness.Client) {
	for _, query := range []url.Values{
		{"kind": {"user"}},
		{"kind": {"agent"}, "id": {"agent_1"}},
		{"kind": {"skill"}, "id": {"s"}, "version": {"1"}},
		{"kind": {"skill"}, "id": {"s"}, "version": {"2"}},
	} {
		form := harness.OneFile("a", "x")
		for name, value := range query {
			form = form.With(name, value[0])
		}
		f := c.Upload(t, form)
		path := "/sessions/" + f.Storage + "/objects/" + f.ID
		for _, other := range []string{"kind=user", "kind=agent&id=agent_1", "kind=agent&id=agent_2", "kind=skill&id=s&version=1", "kind=skill&id=s&version=2"} {
			want := 403
			if values, err := url.ParseQuery(other); err == nil && values.Encode() == query.Encode() {
				want = 200
			}
			if got := c.Files(t, http.MethodGet, path+"?"+other); got.HTTPStatus != want {
				t.Errorf("a file of %s as one of %s: got %v, want %d", query.Encode(), other, got, want)
			}
		}
	}
}
