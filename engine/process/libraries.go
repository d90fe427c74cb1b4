package process

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// libraries are the ones that programs find ready where they are installed.
var libraries = []string{"numpy", "pandas", "matplotlib", "scipy", "sklearn"}

// expected are libraries that programs import by themselves and that their users count on.
var expected = []string{"openpyxl"}

// A survey is what an interpreter has and lacks.
type survey struct {
	// Implementation is cpython, or another.
	Implementation string `json:"implementation"`
	FreeThreaded   bool   `json:"free_threaded"`
	// Ctypes says whether it has ctypes, without which the runner cannot do anything.
	Ctypes bool `json:"ctypes"`
	// Modules and Names are parts of the standard library that it was built without.
	Modules []string `json:"modules"`
	Names   []string `json:"names"`
	// Libraries are those of libraries and expected that are not installed.
	Libraries []string `json:"libraries"`
}

//go:embed survey.py
var surveying string

// survey looks at what the interpreter has. It does not import the libraries.
func (i interpreter) survey(ctx context.Context) (found survey, err error) {
	ctx, cancel := context.WithTimeout(ctx, pythonTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, i.path, append([]string{"-I", "-c", surveying}, slices.Concat(libraries, expected)...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, lastLine(exit.Stderr))
	}
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		return survey{}, fmt.Errorf("look at what %s has: %w", i.path, err)
	}
	return found, nil
}

// lastLine returns the last line of what a program has said, which in Python is the error.
func lastLine(said []byte) string {
	text := strings.TrimSpace(string(said))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// untested returns why an interpreter is none of those that the runner is tested with, or nothing.
func (i interpreter) untested(found survey) string {
	var minor int
	switch _, err := fmt.Sscanf(i.version, "3.%d", &minor); {
	case found.Implementation != "cpython":
		return "it is " + found.Implementation + " and not CPython"
	case found.FreeThreaded:
		return "it is a build without the global lock"
	case err != nil || minor > newestPython:
		return "it is newer than those that this version is tested with"
	default:
		return ""
	}
}

// Python returns the path and the version of the interpreter that runs programs.
func (p *Provider) Python() (path, version string) { return p.python.path, p.python.version }

// Libraries returns which libraries programs find ready, and which of those and of the libraries that
// users count on are not installed.
func (p *Provider) Libraries(ctx context.Context) (found, missing []string, err error) {
	seen, err := p.python.survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	found = slices.DeleteFunc(slices.Clone(libraries), func(name string) bool { return slices.Contains(seen.Libraries, name) })
	return found, seen.Libraries, nil
}

// lacks returns what an interpreter was built without, as one list.
func (s survey) lacks() string { return strings.Join(slices.Concat(s.Modules, s.Names), ", ") }
