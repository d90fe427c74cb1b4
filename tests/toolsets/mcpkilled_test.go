package toolsets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// deafServer begins an MCP server that goes on when its input ends, and ignores SIGTERM.
const deafServer = `
import signal, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(120,)).start()
`

// TestKilledWithAnMCPServer kills the server alone. The command of its MCP server ends with it; what another command has
// started goes on, until the next server has started, which starts others.
func TestKilledWithAnMCPServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends commands with the server that has started them")
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		script := filepath.Join(t.TempDir(), "server.py")
		if err := os.WriteFile(script, []byte(deafServer+mcpServer), 0o600); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("toolsets:\n  sums:\n    trusted: true\n    mcp: {command: [%[1]s, -I, %[2]s]}\n"+
			"  deep:\n    trusted: true\n    mcp: {command: [/bin/sh, -c, 'exec 3<&0; %[1]s -I %[2]s <&3 & wait']}\n", harness.Python(), script)
		server := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, harness.NewUpstream(t), text)})
		look := harness.Program{Toolsets: []string{"sums", "deep"}, Code: "from fermata_tools import sums, deep\nprint(sums.Sums.look()['pid'], deep.Deep.look()['pid'])"}
		pids := func() (command, child int) {
			a := server.Alice().Post(t, look)
			if n, err := fmt.Sscan(a.Stdout, &command, &child); n != 2 {
				t.Fatalf("got %v, %v, want two process ids", a, err)
			}
			return command, child
		}
		command, child := pids()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := harness.Within(5*time.Second, func() error { return ended(command) }); err != nil {
			t.Error(err)
		}
		if ended(child) == nil {
			t.Errorf("process %d has ended with the server: it is not deaf", child)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		if err := harness.Within(5*time.Second, func() error { return ended(child) }); err != nil {
			t.Error(err)
		}
		if c, d := pids(); c == command || d == child {
			t.Errorf("the processes %d and %d serve the next server, too", c, d)
		}
	})
}

// ended returns an error if a process goes on.
func ended(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
		return nil
	}
	return fmt.Errorf("process %d of an MCP server goes on", pid)
}
