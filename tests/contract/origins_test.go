package contract

import (
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// fromPage sends what a browser sends for a web page, and returns status and header of the answer.
func fromPage(t *testing.T, method, url, contentType, body string, header http.Header) (int, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	maps.Copy(r.Header, header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header
}

// TestForeignPages has a page of another site use the credentials that a browser sends by itself, on
// every sort of route. It causes nothing, and no answer is for it to read.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	const friend = "https://friend.example"
	s := harness.Serve(t, harness.ProcessSetup(), harness.Settings{"CORS_ORIGINS": friend + ",http://localhost:3000"})
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("key-a:"))
	file := s.Alice().Upload(t, harness.OneFile("a", "x"))
	const form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"
	routes := []struct {
		method, path, contentType, body string
		status                          int // without a page
	}{
		{"POST", harness.Programmatic, "application/json", `{"code":"print(1)"}`, 200},
		{"POST", harness.Programmatic, "text/plain", `{"code":"print(1)"}`, 415},
		{"POST", "/exec", "application/json", `{"lang":"py","code":"print(1)"}`, 200},
		{"POST", harness.Programmatic + "/cancel", "application/json", `{"request_id":"0123456789abcdef"}`, 202},
		{"POST", "/upload", "multipart/form-data; boundary=x", form, 200},
		{"GET", "/files/" + file.Storage, "", "", 200},
		{"GET", "/download/" + file.Storage + "/" + file.ID, "", "", 200},
		{"GET", "/health", "", "", 200},
		{"GET", "/nowhere", "", "", 404},
	}
	for _, page := range []struct {
		name   string
		header http.Header
		let    bool
	}{
		{"another site", http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}, false},
		{"another site, as an image or a form", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}, false},
		{"another site, in an old browser", http.Header{"Origin": {"http://evil.example"}}, false},
		{"a page without an origin", http.Header{"Origin": {"null"}}, false},
		{"the server's own page", http.Header{"Origin": {s.URL}, "Sec-Fetch-Site": {"same-origin"}}, true},
		{"a friend's page", http.Header{"Origin": {friend}, "Sec-Fetch-Site": {"cross-site"}}, true},
		{"no page", nil, true},
	} {
		header := http.Header{"Authorization": {basic}}
		maps.Copy(header, page.header)
		for _, r := range routes {
			status, got := fromPage(t, r.method, s.URL+r.path, r.contentType, r.body, header)
			want := r.status
			if !page.let {
				want = http.StatusForbidden
			}
			if status != want {
				t.Errorf("%s: %s %s: got %d, want %d", page.name, r.method, r.path, status, want)
			}
			origin := ""
			if page.name == "a friend's page" {
				origin = friend
			}
			if got.Get("Access-Control-Allow-Origin") != origin || got.Get("Vary") != "Origin" || got.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s: %s %s: got the headers %v, want the origin %q let in", page.name, r.method, r.path, got, origin)
			}
			for name, value := range map[string]string{
				"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got.Get(name) != value {
					t.Errorf("%s: %s %s: %s is %q, want %q", page.name, r.method, r.path, name, got.Get(name), value)
				}
			}
		}
	}

	preflight := http.Header{
		"Origin": {friend}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type"},
	}
	status, got := fromPage(t, http.MethodOptions, s.URL+harness.Programmatic, "", "", preflight)
	if status != http.StatusNoContent || got.Get("Access-Control-Allow-Origin") != friend ||
		!strings.Contains(got.Get("Access-Control-Allow-Methods"), "POST") || !strings.Contains(got.Get("Access-Control-Allow-Headers"), "authorization") {
		t.Errorf("a friend asks what it may: got %d %v, want 204 that lets it post", status, got)
	}
	preflight.Set("Origin", "https://evil.example")
	if status, _ := fromPage(t, http.MethodOptions, s.URL+harness.Programmatic, "", "", preflight); status != http.StatusForbidden {
		t.Errorf("another site asks what it may: got %d, want 403", status)
	}
}

// TestDownloadsAreHarmless downloads files whose programs and clients would like browsers to run them.
func TestDownloadsAreHarmless(t *testing.T) {
	t.Parallel()
	alice := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	a := alice.Post(t, harness.Program{Code: harness.Py(`
		for name in ("a.html", "a.svg", "a.js", "a.pdf", "a.png", "a.css", "a.xml", "a"):
			open(name, "w").write("<script>alert(1)</script>")
	`)})
	if len(a.Files) != 8 {
		t.Fatalf("got %v, want eight files", a)
	}
	for _, f := range a.Files {
		got := alice.Files(t, http.MethodGet, "/download/"+f.Storage+"/"+f.ID)
		for name, value := range map[string]string{
			"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox",
			"Cross-Origin-Resource-Policy": "same-origin", "Content-Disposition": `attachment; filename="` + f.Name + `"; filename*=UTF-8''` + f.Name,
		} {
			if f.Name == "a" && name == "Content-Type" {
				continue // Text without a name that tells otherwise is text.
			}
			if got.Header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", f.Name, name, got.Header.Get(name), value)
			}
		}
	}
}
