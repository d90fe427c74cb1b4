package harness

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Quick returns the settings of a server that starts fast, since its Python has no libraries to
// import, and that has the same address after each restart.
func Quick(t *testing.T) Settings {
	t.Helper()
	python, err := BarePython()
	if err != nil {
		t.Fatal(err)
	}
	return Settings{"PYTHON": python, "ADDR": FreeAddr(t), "POOL_SIZE": "4"}
}

// BarePython returns a Python without libraries, which is made once.
var BarePython = sync.OnceValues(func() (string, error) {
	dir, err := Scratch()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "python")
	out, err := exec.Command(Common["PYTHON"], "-m", "venv", "--without-pip", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a Python without libraries: %w\n%s", err, out)
	}
	return filepath.Join(dir, "bin", "python3"), nil
})

// FreeAddr returns an address of this machine that nobody listened on a moment ago.
func FreeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}
