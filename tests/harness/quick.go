package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Quick returns the settings of a server that has the same address after each restart.
func Quick(t *testing.T) Settings {
	t.Helper()
	return Settings{"ADDR": FreeAddr(t), "POOL_SIZE": "4"}
}

// BarePython returns a Python without libraries, which is made once. Servers start fast with it, since the
// import of the libraries takes two seconds of processor time. It is not in a directory of temporary files,
// since each sandbox has one of its own.
var BarePython = sync.OnceValues(func() (string, error) {
	parent, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		parent, err = "/var/cache", nil // where servers of other users find it, too
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	if barePythonDir, err = os.MkdirTemp(parent, "fermata-tests-"); err != nil {
		return "", err
	}
	if err := os.Chmod(barePythonDir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command(Python(), "-m", "venv", "--without-pip", barePythonDir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a Python without libraries: %w\n%s", err, out)
	}
	return filepath.Join(barePythonDir, "bin", "python3"), nil
})

// barePythonDir is where BarePython is, once it is made.
var barePythonDir string

// FreeAddr returns an address of this machine that nobody listened on a moment ago. Linux does not
// give its port to whoever asks for any port, so that no other test takes it meanwhile.
func FreeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp4", addr); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}
