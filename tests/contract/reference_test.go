package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// exchange sends a request and returns the answer as it was sent: http.Client would unpack it.
func exchange(t *testing.T, s *harness.Server, method, path string, header http.Header, body string) harness.Reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	response, err := plain.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Reply{HTTPStatus: response.StatusCode, Header: response.Header, Body: string(text)}
}

func unpacked(t *testing.T, packed string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReferencePages reads the reference without a key: as a document, as a page, and by the links of
// the greeting.
func TestReferencePages(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
	bare := harness.Serve(t, harness.ProcessSetup(), harness.Settings{"CONSOLE": "off"})
	open := harness.Serve(t, harness.ProcessSetup(), harness.Settings{"AUTH": "off", "API_KEYS": ""})
	browser := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}
	for _, c := range []struct {
		server       *harness.Server
		method, path string
		header       http.Header
		status       int
		media        string
		has, lacks   string
	}{
		{s, "GET", "/", nil, 200, "application/json", `"docs":"/docs","openapi":"/openapi.json","console":"/console"`, ""},
		{bare, "GET", "/", nil, 200, "application/json", `"openapi":"/openapi.json"`, "console"},
		{s, "GET", "/", browser, 200, "text/html; charset=UTF-8", `href="/docs"`, "<script"},
		{bare, "GET", "/", browser, 200, "text/html; charset=UTF-8", `href="/docs"`, "/console"},
		{s, "HEAD", "/", nil, 200, "application/json", "", "service"},
		{s, "POST", "/", nil, 405, "application/json", `{"error":"Method not allowed"}`, ""},
		{s, "GET", "/openapi.json", nil, 200, "application/json", `"/exec/programmatic":`, ""},
		{s, "HEAD", "/openapi.json", nil, 200, "application/json", "", "exec"},
		{s, "GET", "/docs", nil, 200, "text/html; charset=UTF-8", "Exceeded maximum round trips", "<script"},
		{s, "HEAD", "/docs", nil, 200, "text/html; charset=UTF-8", "", "Exceeded"},
		{open, "GET", "/docs", nil, 200, "text/html; charset=UTF-8", "Exceeded maximum round trips", ""},
		{open, "GET", "/docs", http.Header{"Host": {"evil.example"}}, 403, "application/json", "FERMATA_HOSTS", ""},
		{open, "GET", "/", http.Header{"Host": {"evil.example"}}, 403, "application/json", "FERMATA_HOSTS", ""},
	} {
		got := exchange(t, c.server, c.method, c.path, c.header, "")
		if media := got.Header.Get("Content-Type"); got.HTTPStatus != c.status || media != c.media {
			t.Errorf("%s %s %v: got %d of %s, want %d of %s", c.method, c.path, c.header, got.HTTPStatus, media, c.status, c.media)
		}
		if !strings.Contains(got.Body, c.has) || c.lacks != "" && strings.Contains(got.Body, c.lacks) {
			t.Errorf("%s %s %v: got %v, want it with %q and without %q", c.method, c.path, c.header, got, c.has, c.lacks)
		}
	}
}

// TestReferenceExamples sends the examples of requests that the reference has.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	raw := c.Files(t, http.MethodGet, "/openapi.json").Body
	type operations struct {
		Post struct {
			Body struct {
				Content map[string]struct {
					Examples map[string]struct {
						Value map[string]any `json:"value"`
					} `json:"examples"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"post"`
	}
	var all struct {
		Paths map[string]operations `json:"paths"`
	}
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for path, o := range all.Paths {
		examples := o.Post.Body.Content["application/json"].Examples
		for name, example := range examples {
			if example.Value["continuation_token"] != nil {
				start := all.Paths[harness.Programmatic].Post.Body.Content["application/json"].Examples["start"]
				example.Value["continuation_token"] = c.Pause(t, start.Value).Token
			}
			a, err := c.Request(t.Context(), http.MethodPost, path, nil, example.Value)
			// The example of an id is that of no execution.
			unknown := strings.HasSuffix(path, "/cancel") && a.HTTPStatus == http.StatusNotFound
			if err != nil || a.HTTPStatus/100 != 2 && !unknown {
				t.Errorf("POST %s, the example %s: got %v %v, want an answer with 2xx", path, name, a, err)
			}
			sent++
		}
	}
	if sent < 5 {
		t.Errorf("found %d examples, want more", sent)
	}
}

// TestCompressedAnswers asks for answers of all sorts, compressed and not.
func TestCompressedAnswers(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
	file := s.Alice().Upload(t, harness.OneFile("a", strings.Repeat("text\n", 5000)))
	small, large := `{"lang":"py","code":"print('small')"}`, `{"lang":"py","code":"print('large ' * 10000)"}`
	ended := exchange(t, s, "POST", "/exec", http.Header{"X-Api-Key": {"key-a"}, "Content-Type": {"application/json"}}, large)
	events := "/executions/" + ended.Header.Get("Fermata-Execution") + "/events"
	for _, c := range []struct {
		name, method, path, body, encodings string
		more                                http.Header
		packed, has                         string
	}{
		{"large", "POST", "/exec", large, "gzip", nil, "gzip", "large large"},
		{"large, among others", "POST", "/exec", large, "br;q=1.0, gzip;q=0.5, *;q=0.1", nil, "gzip", "large large"},
		{"large, any", "POST", "/exec", large, "*", nil, "gzip", "large large"},
		{"large, refused", "POST", "/exec", large, "gzip;q=0, *", nil, "", "large large"},
		{"large, other", "POST", "/exec", large, "br", nil, "", "large large"},
		{"large, none", "POST", "/exec", large, "", nil, "", "large large"},
		{"small", "POST", "/exec", small, "gzip", nil, "", "small"},
		{"live", "POST", "/exec", large, "gzip", http.Header{"Accept": {"text/event-stream"}}, "", "large large"},
		{"events", "GET", events, "", "gzip", nil, "gzip", "large large"},
		{"stream", "GET", events, "", "gzip", http.Header{"Accept": {"application/x-ndjson"}}, "", "large large"},
		{"download", "GET", "/download/" + file.Storage + "/" + file.ID, "", "gzip", nil, "", "text\ntext"},
		{"console", "GET", "/console", "", "gzip", nil, "gzip", "<html"},
		{"docs", "GET", "/docs", "", "gzip", nil, "gzip", "<html"},
	} {
		header := http.Header{"X-Api-Key": {"key-a"}, "Content-Type": {"application/json"}}
		if c.encodings != "" {
			header.Set("Accept-Encoding", c.encodings)
		}
		maps.Copy(header, c.more)
		r := exchange(t, s, c.method, c.path, header, c.body)
		got, encoding := r.Body, r.Header.Get("Content-Encoding")
		if encoding == "gzip" {
			got = unpacked(t, got)
		}
		if r.HTTPStatus != http.StatusOK || encoding != c.packed || !strings.Contains(got, c.has) {
			t.Errorf("%s: got %d, Content-Encoding %q, %.200s, want %q and %q", c.name, r.HTTPStatus, encoding, got, c.packed, c.has)
		}
		if varies := r.Header.Values("Vary"); c.packed != "" && (len(r.Body) > len(got)/2 || !slices.Contains(varies, "Accept-Encoding")) {
			t.Errorf("%s: got %d bytes for %d, Vary %q, want less than half, and Accept-Encoding", c.name, len(r.Body), len(got), varies)
		}
	}
}

// TestEncodedBodies sends bodies with a Content-Encoding. They are refused, whatever they are and
// wherever they go, and the answer names the encoding.
func TestEncodedBodies(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
	const program = `{"code":"print(1)","lang":"py"}`
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(program)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	refusal := func(coding string) string {
		return `"error":"Content-Encoding \"` + coding + `\" is not understood: send the body as it is, without a Content-Encoding"`
	}
	for _, c := range []struct {
		path, coding, body string
		status             int
		has                string
	}{
		{"/exec", "gzip", b.String(), 415, refusal("gzip")},
		{"/exec", "gzip", program, 415, refusal("gzip")},
		{"/exec", "gzip, br", program, 415, refusal("gzip, br")},
		{"/exec", strings.Repeat("x", 1000), program, 415, refusal(strings.Repeat("x", 60))},
		{"/exec", "identity", program, 200, `"stdout":"1\n"`},
		{"/exec", "IDENTITY", program, 200, `"stdout":"1\n"`},
		{harness.Programmatic, "deflate", program, 415, `{"status":"error",` + refusal("deflate")},
		{harness.Programmatic + "/cancel", "zstd", "{}", 415, refusal("zstd")},
		{"/upload", "gzip", "", 400, "Must be multipart/form-data"},
		{"/upload", "gzip", "x", 415, refusal("gzip")},
	} {
		header := http.Header{"X-Api-Key": {"key-a"}, "Content-Type": {"application/json"}, "Content-Encoding": {c.coding}}
		r := exchange(t, s, http.MethodPost, c.path, header, c.body)
		if r.HTTPStatus != c.status || !strings.Contains(r.Body, c.has) {
			t.Errorf("%.20s to %s: got %v, want %d %s", c.coding, c.path, r, c.status, c.has)
		}
		if takes := r.Header.Get("Accept-Encoding"); c.status == 415 && takes != "identity" {
			t.Errorf("%.20s to %s: Accept-Encoding = %q, want identity", c.coding, c.path, takes)
		}
	}
}
