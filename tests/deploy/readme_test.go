package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestREADME runs the first commands in the README and compares their output, except for ids and
// tokens, with what the README says.
func TestREADME(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil && !harness.InCI {
		t.Skip("curl is not installed")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(sh|json)\n(.*?)```").FindAllStringSubmatch(string(text), 5)
	if len(blocks) != 5 || !strings.Contains(blocks[0][2], "serve --auth off") {
		t.Fatalf("the README begins with %v, want a command that serves, and two commands with an answer each", blocks)
	}
	s, err := harness.StartServer(harness.With(harness.Common, harness.Settings{"AUTH": "off", "API_KEYS": ""}))
	if err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	dir := t.TempDir()
	for i := 1; i < 5; i += 2 {
		command, want := blocks[i], blocks[i+1]
		if command[1] != "sh" || want[1] != "json" {
			t.Fatalf("got a %s block and a %s block, want a command and its answer", command[1], want[1])
		}
		script := strings.ReplaceAll(command[2], "localhost:8000", strings.TrimPrefix(s.URL, "http://"))
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
		cmd.Dir = dir
		got, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command[2], err)
		}
		ids := regexp.MustCompile(`("session_id"|"continuation_token"):"[^"]*"`)
		if got, want := strings.TrimSpace(ids.ReplaceAllString(string(got), `$1:"…"`)), strings.TrimSpace(want[2]); got != want {
			t.Errorf("%s\nprints\n%s\nthe README says\n%s", command[2], got, want)
		}
	}
}
