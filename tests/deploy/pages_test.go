package deploy

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestPages runs the commands that pages of the documentation show, each page's in one shell, and
// looks in what they print for what the page says. It does the same with the client in Python.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"curl", "jq"} {
		if _, err := exec.LookPath(program); err != nil && !harness.InCI {
			t.Skip(program, " is not installed")
		}
	}
	s, err := harness.StartServer(harness.With(harness.Common, harness.Settings{
		"AUTH": "off", "API_KEYS": "", "TOOLSETS": localToolset(t),
	}))
	if err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	for _, tc := range []struct {
		page    string
		prints  []string
		without string // Commands with this word are not run.
	}{
		{"files.md", []string{`"name":"sales.csv"`, `"stdout":"counted\n"`, `"name":"count.txt"`, "2 rows\n"}, ""},
		{"writing-programs.md", []string{`"stdout":"hello\n"`, `"message":"Exited with error status 3"`}, ""},
		{"live.md", []string{
			"retry: 1000\n\nid: 1\nevent: execution.started\n", "\nid: 2\nevent: output\n", `"text":"hello`, "event: answer\n",
		}, ""},
		{"timeline.md", []string{
			`"status":"tool_call_required"`, `"state":"produced"`, `"error":"file not produced"`, `"path":"tc:turn_1.abc.call_001.result"`,
			`"type":"react.notes"`, `"missing":[]`,
		}, ""},
		{"mcp.md", []string{`"stdout":"42\n"`}, "claude"},
		{"api.md", []string{`'status': 'completed'`, `'stdout': '3\n'`}, "approvals"},
		{"toolsets.md", []string{`"stdout":"{'city': 'Paris', 'celsius': 21}\n"`}, "serve"},
	} {
		t.Run(tc.page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../docs/" + tc.page)
			if err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			for _, block := range regexp.MustCompile("(?s)\n```(sh|python)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
				switch language, code := block[1], block[2]; {
				case language == "python" && strings.Contains(code, "def post("):
					script.WriteString(harness.Python() + " - <<'END'\n" + code + "END\n")
				case language == "sh" && (tc.without == "" || !strings.Contains(code, tc.without)):
					script.WriteString(code)
				}
			}
			cmd := exec.Command("bash", "-euo", "pipefail", "-c", strings.ReplaceAll(script.String(), "localhost:8000", strings.TrimPrefix(s.URL, "http://")))
			cmd.Dir = t.TempDir()
			got, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %v", script.String(), err)
			}
			for _, want := range tc.prints {
				if !strings.Contains(string(got), want) {
					t.Errorf("%s\nprints\n%s\nwhich lacks\n%s", script.String(), got, want)
				}
			}
		})
	}
}

// localToolset writes the file local.yaml of docs/toolsets.md, with an endpoint, and returns its path.
func localToolset(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/toolsets.md")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("(?s)write this into `local.yaml`:\n\n```yaml\n(.*?)```").FindSubmatch(text)
	if file == nil {
		t.Fatal("docs/toolsets.md has no local.yaml")
	}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok": true, "ret": {"city": "Paris", "celsius": 21}}`))
	}))
	t.Cleanup(endpoint.Close)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // The umask may let others write.
		t.Fatal(err)
	}
	path := filepath.Join(dir, "local.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(file[1]), "http://127.0.0.1:8765", endpoint.URL, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
