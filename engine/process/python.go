package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// An interpreter is a Python that is recent enough for the runner.
type interpreter struct {
	path    string
	version string
}

// The oldest minor version of Python 3 that the runner works with, and the newest one that it is tested with.
const (
	oldestPython = 11
	newestPython = 14
)

const (
	// pythonTimeout bounds the start of an interpreter.
	pythonTimeout = 8 * time.Second
	// maxSaid bounds what an error tells of the words of a program that is no Python.
	maxSaid = 300
)

// covered are the directories that each sandbox covers with its own: root.py does.
var covered = []string{"/tmp", "/var/tmp", "/dev/shm", "/mnt/data", "/proc"}

// introduce prints the path of an interpreter, its version, and the directories that it needs.
const introduce = `import os, sys
print(sys.executable, ".".join(map(str, sys.version_info[:3])), sep="\n")
for path in (sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))):
    print(os.path.realpath(path))`

// findPython finds the interpreter behind a name, which may be a wrapper such as
// those of version managers.
func findPython(ctx context.Context, name string) (interpreter, error) {
	asking, cancel := context.WithTimeout(ctx, pythonTimeout)
	defer cancel()
	cmd := exec.CommandContext(asking, name, "-I", "-c", introduce) //nolint:gosec // the operator names the interpreter
	// A process that a wrapper has started may keep the pipe open.
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if asking.Err() != nil && ctx.Err() == nil {
		return interpreter{}, fmt.Errorf("run Python interpreter %q (FERMATA_PYTHON): it does not start within %s, which a "+
			"sitecustomize or a .pth file of its site-packages may cause", name, pythonTimeout)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return interpreter{}, fmt.Errorf("run Python interpreter %q (FERMATA_PYTHON): %w: %s", name, err, firstWords(exit.Stderr))
	}
	if err != nil {
		return interpreter{}, fmt.Errorf("run Python interpreter %q (FERMATA_PYTHON): %w", name, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	const known = 2 // lines before those of the directories
	if len(lines) <= known {
		return interpreter{}, fmt.Errorf("%q (FERMATA_PYTHON) is not a Python interpreter: it says %s", name, firstWords(out))
	}
	found := interpreter{path: lines[0], version: lines[1]}
	major, rest, _ := strings.Cut(found.version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if n, err := strconv.Atoi(minor); err != nil || major != "3" || n < oldestPython {
		return interpreter{}, fmt.Errorf("%s (FERMATA_PYTHON) is Python %s, 3.%d or later is needed", found.path, found.version, oldestPython)
	}
	return found, found.visible(lines[known:])
}

// visible returns an error if a sandbox covers one of the directories that the interpreter needs.
func (i interpreter) visible(needed []string) error {
	for _, directory := range needed {
		for _, cover := range covered {
			if directory == cover || strings.HasPrefix(directory, cover+"/") {
				return fmt.Errorf("%s (FERMATA_PYTHON) needs %s, but each sandbox has a %s of its own, so programs would not find its packages: "+
					"make the environment somewhere else, for example `%s -m venv /opt/fermata-python`, install the packages there, "+
					"and set FERMATA_PYTHON=/opt/fermata-python/bin/python3", i.path, directory, cover, filepath.Base(i.path))
			}
		}
	}
	return nil
}

// firstWords returns the beginning of what a program has said, as one quoted line.
func firstWords(said []byte) string {
	text := strings.Join(strings.Fields(string(said)), " ")
	if len(text) > maxSaid {
		text = text[:maxSaid] + "…"
	}
	return strconv.Quote(text)
}
