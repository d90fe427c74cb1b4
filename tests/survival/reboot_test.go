package survival

import (
	"os"
	"path/filepath"
	"testing"

	"fermata/tests/harness"
)

// TestMachineRestarted kills a server with a paused program, and has the next one believe that the
// machine was restarted in between. The owner of the token is told so, nobody else is.
func TestMachineRestarted(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), harness.JSONLog)
	pause := server.Alice().Pause(t, harness.AskOnce)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	boots, err := filepath.Glob(filepath.Join(server.Dir, "state", "*.boot"))
	if err != nil || len(boots) != 1 {
		t.Fatalf("the state directory has the files %v (%v), want one that names the boot", boots, err)
	}
	if err := os.WriteFile(boots[0], []byte("00000000-0000-0000-0000-000000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	server.Log.AwaitLines(t, 1, harness.LogLine{
		"msg": "an execution has ended with its machine, which was restarted", "execution": executionOf(t, pause), "principal": "alice", "round": 1.0,
	})
	a := server.Alice().Post(t, pause.Continue(harness.Echo))
	a.Fails(t, 400, "Execution expired")
	if a.Reason != "sandbox_lost" || a.Detail != "The server's machine was restarted" {
		t.Errorf("got %v, want to be told of the machine", a)
	}
	server.Bob().Post(t, pause.Continue(harness.Echo)).Fails(t, 403, "Forbidden")
	server.Alice().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
}
