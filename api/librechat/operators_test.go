package librechat_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"fermata/api"
	"fermata/api/auth"
)

// withOperator returns a server that has an operator with the key "operator-key", with files.
func withOperator(t *testing.T, e executions, log *slog.Logger) http.Handler {
	t.Helper()
	o := options()
	o.Keys = append(o.Keys, auth.Key{Name: "ops", Key: "operator-key", Operator: true})
	o.JWT = tokens(t)
	o.Files = fileStore(t, t.TempDir())
	if log != nil {
		o.Log = log
	}
	return newHandler(e, o)
}

const operatorsAreRefused = `"error":"This key is an operator's (FERMATA_OPERATOR_KEYS): it may look at executions and files and cancel executions, ` +
	`but not start, continue, upload or delete anything"`

// Of all routes that there are, an operator may use those that only show something. A new route is
// not for operators until this list has it.
func TestOperatorsChangeNothing(t *testing.T) {
	e := completed()
	h := withOperator(t, e, nil)
	sid, fid := put(t, h, "a", "x")
	router, ok := h.(*api.Router)
	if !ok {
		t.Fatalf("the server is a %T, want a router", h)
	}
	open := map[string]bool{
		"GET /health": true, "GET /ready": true, "HEAD /health": true, "HEAD /ready": true,
		"GET /files/:session": true, "GET /sessions/:session/objects/:file": true, "GET /download/:session/:file": true,
		"HEAD /download/:session/:file": true,
	}
	refused := 0
	for _, r := range router.Routes() {
		path := strings.NewReplacer(":session", sid, ":file", fid).Replace(r.Path) + "?principal=ada"
		w := call{method: r.Method, path: path, body: `{"code":"#"}`, header: map[string]string{"X-API-Key": "operator-key"}}.do(t, h)
		if open[r.Method+" "+strings.TrimPrefix(r.Path, "/v1")] {
			if w.Code != http.StatusOK {
				t.Errorf("%s %s: got %d %s, want 200", r.Method, r.Path, w.Code, w.Body)
			}
			continue
		}
		refused++
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), operatorsAreRefused) {
			t.Errorf("%s %s: got %d %s, want 403 with a text about operators", r.Method, r.Path, w.Code, w.Body)
		}
	}
	if refused != 14 || len(e.starts)+len(e.resumes)+len(e.cancels) > 0 {
		t.Errorf("%d routes were refused, want 14; asked the engine for %+v %+v %+v, want nothing", refused, e.starts, e.resumes, e.cancels)
	}
	want(t, call{method: "GET", path: "/download/" + sid + "/" + fid}.do(t, h), 200, "x")
}

// An operator reads the files of every principal that it names, and the log tells which.
func TestOperatorsReadFiles(t *testing.T) {
	var lines bytes.Buffer
	h := withOperator(t, completed(), slog.New(slog.NewTextHandler(&lines, nil)))
	own, ownFile := put(t, h, "a", "of ada")
	agent, agentFile := put(t, h, "b", "of an agent", field("kind", "agent"), field("id", "g"))
	form, body := form(file("c", "of a user"))
	bearer := "Bearer " + token(t, map[string]any{"sub": "u 1"})
	w := call{path: "/upload", body: body, header: map[string]string{"Content-Type": form, "X-API-Key": "", "Authorization": bearer}}.do(t, h)
	var uploaded uploadAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &uploaded); err != nil || len(uploaded.Files) != 1 {
		t.Fatalf("upload: got %d %s, %v", w.Code, w.Body, err)
	}
	user, userFile := uploaded.SessionID, uploaded.Files[0].FileID
	for _, c := range []struct {
		name, path, answer string
		status             int
	}{
		{"a key's", own + "/" + ownFile + "?principal=ada", "of ada", 200},
		{"an agent's", agent + "/" + agentFile + "?principal=ada&kind=agent&id=g", "of an agent", 200},
		{"a user's of LibreChat", user + "/" + userFile + "?principal=jwt%3Aacme%3Au%2B1", "of a user", 200},
		{"nobody's", own + "/" + ownFile, `{"error":"principal must name the principal whose files to read: an operator has no files"}`, 400},
		{"of a malformed name", own + "/" + ownFile + "?principal=jwt%3Aacme", `{"error":"principal must name the principal whose files to read: an operator has no files"}`, 400},
		{"of another principal", own + "/" + ownFile + "?principal=bob", `{"error":"Unauthorized"}`, 403},
	} {
		lines.Reset()
		w := call{method: "GET", path: "/download/" + c.path, header: map[string]string{"X-API-Key": "operator-key"}}.do(t, h)
		if w.Code != c.status || w.Body.String() != c.answer {
			t.Errorf("%s: got %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.answer)
		}
		if line := lines.String(); c.status == 200 && (!strings.Contains(line, "principal=ops") || !strings.Contains(line, " of=") || !strings.Contains(line, " session="+c.path[:21])) {
			t.Errorf("%s: the log has %q, want who has looked at whose files", c.name, line)
		}
	}
	// The parameter is for operators. To anybody else it is one that has no meaning.
	w = call{method: "GET", path: "/download/" + own + "/" + ownFile + "?principal=ada", header: map[string]string{"X-API-Key": "other-key"}}.do(t, h)
	want(t, w, 403, `{"error":"Unauthorized"}`)
}
