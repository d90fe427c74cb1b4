package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tests/harness"
)

// agent returns the command fermata mcp.
func agent(t *testing.T, environ ...string) *exec.Cmd {
	t.Helper()
	program, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "mcp")
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "FERMATA_PYTHON=" + harness.Python(), "FERMATA_POOL_SIZE=2",
	}, environ...)
	return cmd
}

// startPiped starts a command, and returns its input and its output.
func startPiped(t *testing.T, cmd *exec.Cmd) (stdin io.WriteCloser, stdout io.Reader) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if stdout, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return stdin, stdout
}

// TestStdio speaks with fermata mcp over stdin and stdout, with programs of its own and with a running
// server behind it.
func TestStdio(t *testing.T) {
	server := harness.Serve(t, harness.ProcessSetup(), nil)
	for name, environ := range map[string][]string{
		"own programs": nil,
		"a server":     {"FERMATA_URL=" + server.URL, "FERMATA_API_KEY=key-a"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := agent(t, environ...)
			var log bytes.Buffer
			cmd.Stderr = &log
			session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			r := run(t, session, "run_program", map[string]any{"code": "open('a.txt', 'w').write('of the file')\nprint(6 * 7)"})
			if r.Status != "completed" || r.Stdout != "42\n" {
				t.Errorf("a program: %+v", r)
			}
			if file := run(t, session, "read_file", map[string]any{"session": r.Session, "path": "a.txt"}); !strings.Contains(file.Text, "of the file") {
				t.Errorf("its file: %+v", file)
			}
			if err := session.Close(); err != nil {
				t.Errorf("close: %v\n%s", err, log.String())
			}
			if state := cmd.ProcessState; state == nil || state.ExitCode() != 0 {
				t.Errorf("it ended with %v\n%s", state, log.String())
			}
		})
	}
}

// TestStdout sends what is no message, and looks for anything but messages on stdout.
func TestStdout(t *testing.T) {
	server := harness.Serve(t, harness.ProcessSetup(), nil)
	for name, environ := range map[string][]string{
		"own programs":   {"FERMATA_NOSUCH=1"},
		"a server":       {"FERMATA_URL=" + server.URL, "FERMATA_API_KEY=key-a"},
		"a wrong key":    {"FERMATA_URL=" + server.URL, "FERMATA_API_KEY=wrong"},
		"no such server": {"FERMATA_URL=http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := agent(t, environ...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdin, stdout := startPiped(t, cmd)
			if _, err := io.WriteString(stdin, initialize+"\n"+list+"\n"); err != nil {
				t.Fatal(err)
			}
			hangs := time.AfterFunc(time.Minute, func() { _ = stdin.Close() })
			defer hangs.Stop()
			var lines []string
			for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
				if lines = append(lines, scanner.Text()); len(lines) == 2 {
					_ = stdin.Close() // It may have ended already.
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if len(lines) != 2 {
				t.Errorf("%d lines on stdout, want the answers to two messages: %q\n%s", len(lines), lines, stderr.String())
			}
			for _, line := range lines {
				var message struct{ JSONRPC string }
				if err := json.Unmarshal([]byte(line), &message); err != nil || message.JSONRPC != "2.0" {
					t.Errorf("stdout has %q", line)
				}
			}
			if strings.Contains(stderr.String(), "key-a") {
				t.Errorf("the log has the key:\n%s", stderr.String())
			}
		})
	}
}
