package process

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// libraries are the ones that programs find ready where they are installed.
var libraries = []string{"numpy", "pandas", "matplotlib", "scipy", "sklearn"}

// libraries returns which of the libraries an interpreter has and which it lacks. It does not
// import them.
func (p interpreter) libraries(ctx context.Context) (found, missing []string, err error) {
	const absent = `import sys, importlib.util; print(*[name for name in sys.argv[1:] if not importlib.util.find_spec(name)])`
	ctx, cancel := context.WithTimeout(ctx, pythonTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.path, append([]string{"-I", "-c", absent}, libraries...)...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("look for libraries: %w", err)
	}
	missing = strings.Fields(string(out))
	for _, name := range libraries {
		if !slices.Contains(missing, name) {
			found = append(found, name)
		}
	}
	return found, missing, nil
}

// Python returns the path and the version of the interpreter that runs programs.
func (p *Provider) Python() (path, version string) { return p.python.path, p.python.version }

// Libraries returns which libraries programs find ready, and which ones they do without.
func (p *Provider) Libraries(ctx context.Context) (found, missing []string, err error) {
	return p.python.libraries(ctx)
}
