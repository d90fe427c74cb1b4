package mcptool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNPMServers calls the reference servers of the protocol, which are fetched from npm. It is skipped
// without FERMATA_TEST_NPM=1.
func TestNPMServers(t *testing.T) {
	if os.Getenv("FERMATA_TEST_NPM") != "1" {
		return
	}
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir,
		"@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm: %v: %s", err, out)
	}
	bin := filepath.Join(dir, "node_modules", ".bin")

	t.Run("everything", func(t *testing.T) {
		s := newSource(t, Options{Toolset: "everything", Command: []string{filepath.Join(bin, "mcp-server-everything")}, Trusted: true, Named: []string{"echo"}})
		got, err := call(t, s, "alice", "echo", `{"message":"hello"}`)
		if got != `"Echo: hello"` || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		_, err = call(t, s, "alice", "echo", `{"message":5}`)
		wantFailure(t, err, false, "message")
		got, err = call(t, s, "alice", "get-tiny-image", `{}`)
		if err != nil || !strings.Contains(got, `"type":"image"`) {
			t.Errorf("%.200s, %v", got, err)
		}
		if st := s.State(); st.State != Ready || len(st.Changes) > 0 {
			t.Errorf("state %+v", st)
		}
	})
	t.Run("filesystem", func(t *testing.T) {
		files := t.TempDir()
		if err := os.WriteFile(filepath.Join(files, "a.txt"), []byte("of the file"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSource(t, Options{Toolset: "files", Command: []string{filepath.Join(bin, "mcp-server-filesystem"), files}, Trusted: true})
		input := func(path string) string {
			b, err := json.Marshal(map[string]string{"path": path})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		got, err := call(t, s, "alice", "read_text_file", input(filepath.Join(files, "a.txt")))
		if err != nil || !strings.Contains(got, "of the file") {
			t.Errorf("%s, %v", got, err)
		}
		_, err = call(t, s, "alice", "read_text_file", input("/etc/passwd"))
		wantFailure(t, err, false, "denied")
	})
}
