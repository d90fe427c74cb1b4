package differential

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"fermata/tests/harness"
)

// A server runs programs in its sandboxes, with the tools of plain/tools.py.
type server struct {
	client harness.Client
	tools  *toolbox
	inputs map[string]harness.FileRef
}

// upload stores the files that programs may read.
func upload(t *testing.T, c harness.Client) map[string]harness.FileRef {
	t.Helper()
	entries, err := os.ReadDir("inputs")
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]harness.FileRef{}
	for _, entry := range entries {
		content, err := os.ReadFile("inputs/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		stored[entry.Name()] = c.Upload(t, harness.OneFile(entry.Name(), string(content)))
	}
	return stored
}

// run runs a program and answers its calls.
func (s *server) run(t *testing.T, p program) outcome {
	t.Helper()
	request := harness.Program{Code: p.code, Tools: s.tools.definitions, Timeout: 30_000}
	for _, name := range p.inputs {
		request.Files = append(request.Files, s.inputs[name])
	}
	a, _ := s.client.Run(t, request, func(c harness.Call) harness.Result { return s.tools.answer(t, p.name, c) })
	done := outcome{exit: exitCode(t, a), stdout: asProgram(a.Stdout, workspace+"/program.py"), files: map[string]string{}, value: a.Value}
	done.stderr = asProgram(a.Stderr, workspace+"/program.py")
	for _, f := range a.Files {
		if !f.Inherited {
			done.files[f.Name] = describe(f.Name, asProgram(s.client.Download(t, f.FileRef), workspace+"/program.py"))
		}
	}
	return done
}

var exited = regexp.MustCompile(`^Sandbox exited with code (-?\d+)$`)

// exitCode returns the exit code that the answer tells. One of a program that was ended by a signal is -1,
// as in Go.
func exitCode(t *testing.T, a harness.Answer) int {
	t.Helper()
	switch found := exited.FindStringSubmatch(a.Error); {
	case a.Status == "completed":
		return 0
	case found != nil:
		code, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return max(code, -1)
	case a.HTTPStatus == 200 && a.Status == "error":
		return 1
	}
	t.Errorf("the program did not end by itself: %v", a)
	return -2
}

// A toolbox is the process of plain/tools.py, which answers calls.
type toolbox struct {
	definitions []harness.Tool

	mu    sync.Mutex
	calls io.Writer
	lines *bufio.Reader
}

func startTools(t *testing.T) *toolbox {
	t.Helper()
	python := exec.CommandContext(t.Context(), harness.Python(), here(t, "plain", "tools.py"))
	python.Stderr = t.Output()
	in, err := python.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := python.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := python.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = python.Wait() // It was ended with the test, which has told what went wrong.
	})
	box := &toolbox{calls: in, lines: bufio.NewReader(out)}
	line, err := box.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &box.definitions)
	}
	if err != nil {
		t.Fatalf("definitions of the tools: %v in %q", err, line)
	}
	return box
}

// answer calls a tool for a program.
func (b *toolbox) answer(t *testing.T, name string, c harness.Call) harness.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	call, err := json.Marshal(map[string]any{"program": name, "name": c.Name, "input": c.Input})
	if err != nil {
		t.Error(err)
	}
	var result harness.Result
	_, err = b.calls.Write(slices.Concat(call, []byte("\n")))
	if err == nil {
		var line []byte
		if line, err = b.lines.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &result)
		}
	}
	if err != nil {
		t.Error(fmt.Errorf("a call of %s: %w", c.Name, err))
	}
	return result
}
