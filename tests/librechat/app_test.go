package librechat

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// appKeyID is the id of the key that signs the tokens of LibreChat's app.
const appKeyID = "lc-codeapi-2026-05"

// appKey returns the key that signs the tokens of LibreChat's app.
var appKey = sync.OnceValue(func() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("tests of the app"))
	return ed25519.NewKeyFromSeed(seed[:])
})

// appSettings returns the settings of a server for LibreChat's app, which identifies itself with an
// API key in older versions and with tokens in newer ones.
func appSettings() harness.Settings {
	public := appKey().Public().(ed25519.PublicKey)
	return harness.Settings{"JWT_JWKS": fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":%q,"x":%q}]}`,
		appKeyID, base64.RawURLEncoding.EncodeToString(public))}
}

// A visitor returns a client for one request: each request has a token of its own.
type visitor func() harness.Client

// visitorOf returns a user of the app, which signs a new token for each request.
func visitorOf(t testing.TB, s *harness.Server, key ed25519.PrivateKey, tenant, user string) visitor {
	return func() harness.Client {
		now := time.Now().Unix()
		claims := map[string]any{
			"iss": "librechat", "aud": "codeapi", "sub": user, "jti": uuid.NewString(), "iat": now, "nbf": now, "exp": now + 300,
			"tenant_id": tenant, "role": "USER", "principal_source": "librechat_jwt",
		}
		context := map[string]any{
			"chc_user_id": "", "org_id": "", "principal_source": "librechat_jwt", "role": "USER", "service_id": "", "sub": user, "tenant_id": tenant,
		}
		raw, err := json.Marshal(context)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(raw)
		claims["auth_context_hash"] = hex.EncodeToString(hash[:])
		if raw, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		text := encode([]byte(`{"alg":"EdDSA","typ":"JWT","kid":"`+appKeyID+`"}`)) + "." + encode(raw)
		return harness.Client{URL: s.URL, Key: text + "." + encode(ed25519.Sign(key, []byte(text)))}
	}
}

// An app is a version of LibreChat's app: how it uploads files and asks for them.
type app struct {
	// fields precede the file in an upload.
	fields map[string]string
	// query follows the path of a file.
	query string
	// age asks how old a file is. The app does so before each run.
	age func(t testing.TB, c harness.Client, f harness.FileRef, query string) time.Duration
	// refer returns how the app refers to a file in a request.
	refer func(harness.FileRef) harness.FileRef
}

var (
	// olderApp is a version that does not name the owner of a file.
	olderApp = app{
		fields: map[string]string{"entity_id": "asst_1"},
		query:  "?entity_id=asst_1",
		age:    ageInList,
		refer: func(f harness.FileRef) harness.FileRef {
			return harness.FileRef{ID: f.ID, Name: f.Name, Session: f.Storage}
		},
	}
	// newerApp names the owner of a file by kind and id.
	newerApp = app{
		fields: map[string]string{"kind": "user", "id": "ada"},
		query:  "?kind=user&id=ada",
		age:    ageOfObject,
		refer: func(f harness.FileRef) harness.FileRef {
			return harness.FileRef{ID: f.ID, Name: f.Name, Storage: f.Storage, Resource: "ada", Kind: "user"}
		},
	}
)

// ageOfObject asks for the properties of a file.
func ageOfObject(t testing.TB, c harness.Client, f harness.FileRef, query string) time.Duration {
	t.Helper()
	r := c.Files(t, http.MethodGet, "/sessions/"+f.Storage+"/objects/"+f.ID+query)
	var object struct {
		Modified time.Time `json:"lastModified"`
	}
	if err := json.Unmarshal([]byte(r.Body), &object); err != nil || r.HTTPStatus != 200 {
		t.Fatalf("object: got %v (%v), want its properties", r, err)
	}
	return time.Since(object.Modified)
}

// ageInList lists the session of a file and finds the file by the beginning of its name.
func ageInList(t testing.TB, c harness.Client, f harness.FileRef, _ string) time.Duration {
	t.Helper()
	r := c.Files(t, http.MethodGet, "/files/"+f.Storage+"?detail=summary")
	var list []struct {
		Name     string
		Modified time.Time `json:"lastModified"`
	}
	if err := json.Unmarshal([]byte(r.Body), &list); err != nil || r.HTTPStatus != 200 {
		t.Fatalf("list: got %v (%v), want an array", r, err)
	}
	for _, item := range list {
		if strings.HasPrefix(item.Name, f.Storage+"/"+f.ID) {
			return time.Since(item.Modified)
		}
	}
	t.Fatalf("list: got %v, want %s/%s in it", r, f.Storage, f.ID)
	return 0
}

// TestApp replays the requests that LibreChat's app itself makes, besides those of its client.
func TestApp(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, appSettings())
		for _, tc := range []struct {
			name string
			app  app
			user visitor
		}{
			{"older, with a key", olderApp, server.Alice},
			{"newer, with tokens", newerApp, visitorOf(t, server, appKey(), "one", "ada")},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				f := tc.app.upload(t, tc.user, "städte.csv", "city,degrees\nParis,5\n")
				tc.app.reads(t, tc.user, f)
				tc.app.runs(t, tc.user, f)
				tc.app.writes(t, tc.user)
				tc.app.deletes(t, tc.user, f)
			})
		}
	})
}

// upload uploads a file and checks that the answer suits both versions of the app.
func (v app) upload(t *testing.T, user visitor, name, content string) harness.FileRef {
	t.Helper()
	form := harness.OneFile(name, content)
	form.Fields = v.fields
	r := user().UploadTo(t, "/upload", form)
	var body struct {
		Message string
		Session string `json:"session_id"`
		Storage string `json:"storage_session_id"`
		Files   []struct{ FileName, FileID string }
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil || r.HTTPStatus != 200 || body.Message != "success" ||
		body.Session != body.Storage || len(body.Files) != 1 || body.Files[0].FileName != name {
		t.Fatalf("upload: got %v (%v), want success, a session by both names, and the file", r, err)
	}
	return harness.FileRef{ID: body.Files[0].FileID, Name: name, Storage: body.Storage}
}

// reads asks for the age of a file, as the app does before a run, and reads files in a sandbox.
func (v app) reads(t *testing.T, user visitor, f harness.FileRef) {
	t.Helper()
	if age := v.age(t, user(), f, v.query); age.Abs() >= 23*time.Hour {
		t.Errorf("age = %v, want less than 23 hours", age)
	}
	files := []harness.FileRef{v.refer(f)}
	e := user().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "cat -- '/mnt/data/" + f.Name + "'", Files: files})
	if e.HTTPStatus != 200 || e.Stdout != "city,degrees\nParis,5\n" || e.Stderr != "" {
		t.Errorf("cat: got %v, want the file", e)
	}
	missing := user().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "cat -- '/mnt/data/missing.csv'", Files: files})
	if missing.HTTPStatus != 200 || missing.Stdout != "" || !strings.Contains(strings.ToLower(missing.Stderr), "no such file or directory") {
		t.Errorf("cat of a missing file: got %v, want no output, and an error that says so", missing)
	}
}

// runs runs a program that calls a tool, reads the file and leaves another file, and downloads
// that one.
func (v app) runs(t *testing.T, user visitor, f harness.FileRef) {
	t.Helper()
	paused := user().Pause(t, harness.Program{Tools: harness.Tools("ask"), Files: []harness.FileRef{v.refer(f)}, Code: harness.Py(`
		rows = open("städte.csv").read().splitlines()
		os.mkdir("out")
		open("out/größe 1.txt", "w").write(await ask(rows=len(rows)))
	`)})
	a := user().Post(t, paused.Continue(harness.Value(`"two rows"`)))
	a.Completes(t, "")
	a.Leaves(t, "out/größe 1.txt", "städte.csv inherited")
	left := a.File(t, "out/größe 1.txt").FileRef
	if left.Storage != left.Session {
		t.Errorf("got %+v, want one session by both names", left)
	}
	r := user().Files(t, http.MethodGet, "/download/"+left.Storage+"/"+left.ID+v.query)
	if r.HTTPStatus != 200 || r.Body != "two rows" {
		t.Errorf("download: got %v, want what the program wrote", r)
	}
	for header, want := range map[string]string{
		"Content-Disposition": "attachment; filename=\"gr__e 1.txt\"; filename*=UTF-8''gr%C3%B6%C3%9Fe%201.txt", "Content-Length": "8",
		"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff",
	} {
		if got := r.Header.Get(header); got != want {
			t.Errorf("download: %s is %q, want %q", header, got, want)
		}
	}
	// Older versions list a session to find the names of its files.
	var list []struct {
		Name, ID string
		Metadata map[string]string
	}
	full := user().Files(t, http.MethodGet, "/files/"+left.Storage+"?detail=full")
	if err := json.Unmarshal([]byte(full.Body), &list); err != nil || len(list) != 1 || list[0].ID != left.ID ||
		list[0].Name != left.Storage+"/"+left.ID+".txt" || list[0].Metadata["original-filename"] != left.Name {
		t.Errorf("list: got %v (%v), want the file that the program left", full, err)
	}
}

// writes writes a file in the way that the app does for its models, and reads it in the next run.
func (v app) writes(t *testing.T, user visitor) {
	t.Helper()
	e := user().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: harness.Py(`
		python3 - <<'LIBRECHAT'
		import base64, pathlib
		path = pathlib.Path("/mnt/data/notes/plan.md")
		path.parent.mkdir(parents=True, exist_ok=True)
		path.write_bytes(base64.b64decode("IyBQbGFuCg=="))
		print("written")
		LIBRECHAT
	`)})
	if e.HTTPStatus != 200 || e.Stdout != "written\n" || e.Stderr != "" {
		t.Fatalf("here-document: got %v, want it to run", e)
	}
	left := e.File(t, "notes/plan.md").FileRef
	next := user().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "cat notes/plan.md", Session: e.Session, Files: []harness.FileRef{v.refer(left)}})
	if next.Stdout != "# Plan\n" {
		t.Errorf("the next run: got %v, want the file that was written", next)
	}
}

// deletes deletes a file and checks that no route finds it any more.
func (v app) deletes(t *testing.T, user visitor, f harness.FileRef) {
	t.Helper()
	file, object := "/files/"+f.Storage+"/"+f.ID+v.query, "/sessions/"+f.Storage+"/objects/"+f.ID+v.query
	if r := user().Files(t, http.MethodDelete, file); r.HTTPStatus != 200 {
		t.Errorf("delete: got %v, want 200", r)
	}
	for _, gone := range []struct{ method, path, body string }{
		{http.MethodDelete, file, `{"error":"File not found"}`},
		{http.MethodDelete, object, `{"error":"File not found"}`},
		{http.MethodGet, object, `{"error":"File not found"}`},
		{http.MethodGet, "/download/" + f.Storage + "/" + f.ID + v.query, `{"error":"File not found","details":"The file may have expired or does not exist"}`},
	} {
		if r := user().Files(t, gone.method, gone.path); r.HTTPStatus != 404 || r.Body != gone.body {
			t.Errorf("%s %s after it: got %v, want 404 %s", gone.method, gone.path, r, gone.body)
		}
	}
	if r := user().Files(t, http.MethodGet, "/files/"+f.Storage); r.HTTPStatus != 200 || r.Body != "[]" {
		t.Errorf("list after it: got %v, want []", r)
	}
	user.mayNotRefer(t, v.refer(f))
}

// mayNotRefer checks that a program of this visitor cannot get a file.
func (v visitor) mayNotRefer(t *testing.T, f harness.FileRef) {
	t.Helper()
	if e := v().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "cat *", Files: []harness.FileRef{f}}); e.HTTPStatus != 403 || e.Error != "Unauthorized file reference" {
		t.Errorf("a program with %+v: got %v, want 403", f, e)
	}
}

// TestAppSkills uploads the files of a skill in one request, for all users of a tenant.
func TestAppSkills(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, appSettings())
		ada, eve := visitorOf(t, server, appKey(), "one", "ada"), visitorOf(t, server, appKey(), "one", "eve")
		skill := "skill_" + uuid.NewString()
		r := ada().UploadTo(t, "/upload/batch", harness.Form{
			Fields: map[string]string{"kind": "skill", "id": skill, "version": "3", "read_only": "true"},
			Files:  []harness.FormFile{{Name: "pdf/SKILL.md", Content: "# PDF\n"}, {Name: "pdf/scripts/run.sh", Content: "echo run\n"}},
		})
		var body struct {
			Message string
			Storage string `json:"storage_session_id"`
			Files   []struct{ Status, FileName, FileID string }
		}
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil || r.HTTPStatus != 200 || body.Message != "success" || len(body.Files) != 2 {
			t.Fatalf("batch: got %v (%v), want two files stored", r, err)
		}
		var refs []harness.FileRef
		for _, f := range body.Files {
			refs = append(refs, harness.FileRef{ID: f.FileID, Name: f.FileName, Storage: body.Storage, Kind: "skill", Resource: skill, Version: 3})
		}
		scope := url.Values{"kind": {"skill"}, "id": {skill}, "version": {"3"}}.Encode()
		if r := eve().Files(t, http.MethodGet, "/sessions/"+body.Storage+"/objects/"+refs[0].ID+"?"+scope); r.HTTPStatus != 200 || !strings.Contains(r.Body, `"readOnly":true`) {
			t.Errorf("object: got %v, want a file that is read-only", r)
		}
		e := eve().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "bash pdf/scripts/run.sh; chmod -R u+w pdf; echo changed >pdf/SKILL.md", Files: refs})
		if e.Stdout != "run\n" {
			t.Errorf("got %v, want the skill's script to run", e)
		}
		e.Leaves(t, "pdf/SKILL.md inherited", "pdf/scripts/run.sh inherited")
		if got := e.File(t, "pdf/SKILL.md"); got.Kind != "skill" || got.Resource != skill || got.Version != 3 {
			t.Errorf("got %+v, want it to be the skill's", got)
		}
		refs[0].Version = 4
		eve.mayNotRefer(t, refs[0])
	})
}

// TestAppUsers has users of the same and of another tenant try to use each other's files, sessions
// and executions.
func TestAppUsers(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, appSettings())
		users := map[string]visitor{
			"ada of one": visitorOf(t, server, appKey(), "one", "ada"), "eve of one": visitorOf(t, server, appKey(), "one", "eve"), "ada of two": visitorOf(t, server, appKey(), "two", "ada"),
		}
		for name, owner := range users {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newerApp.upload(t, owner, "secret", "secret")
				paused := owner().Pause(t, harness.Program{Tools: harness.Tools("ask"), Files: []harness.FileRef{newerApp.refer(f)}, Code: "await ask()\nprint(open('secret').read())"})
				for other, user := range users {
					if other == name {
						continue
					}
					harness.TryForeignFile(t, user(), other, f)
					user.mayNotRefer(t, newerApp.refer(f))
					if e := user().Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "ls", Session: f.Storage}); e.Stdout != "" || e.Session == f.Storage {
						t.Errorf("the session of another, as %s: got %v, want a new one", other, e)
					}
					user().Post(t, paused.Continue(harness.Echo)).Fails(t, 403, "Forbidden")
				}
				a := owner().Post(t, paused.Continue(harness.Echo))
				a.Completes(t, "secret\n")
				if got := owner().Download(t, f); got != "secret" {
					t.Errorf("the file is %q now, want it as it was", got)
				}
			})
		}
	})
}
