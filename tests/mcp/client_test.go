package mcp

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestTypeScript runs the client of the official SDK for TypeScript (client.mjs), in both of its
// generations.
func TestTypeScript(t *testing.T) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing, and this is CI: %v", program, err)
			}
			t.Skipf("needs Node 20 and npm: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	// What is installed already stays.
	if out, err := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-save", "--prefer-offline").CombinedOutput(); err != nil {
		t.Fatalf("install the client: %v\n%s", err, out)
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := shop(t, s)
		for _, generation := range []string{"1", "2"} {
			cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-concurrency=1", "client.mjs")
			cmd.Env = append(os.Environ(), "FERMATA_URL="+server.URL, "FERMATA_KEY=key-a", "FERMATA_CLIENT="+generation)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("client of generation %s: %v\n%s\nlog of the server:\n%s", generation, err, out, server.Log.Tail())
			}
		}
	})
}
