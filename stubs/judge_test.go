package stubs

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// A stub describes a generated stub as Python sees it.
type stub struct {
	Name        string          `json:"name"`
	Identifier  string          `json:"identifier"`
	ObjectFirst bool            `json:"object_first"`
	Others      map[string]bool `json:"others"` // properties that are not parameters, and whether they are required
	// Names are the parameters with other names than their properties.
	Names      map[string]string `json:"names"`
	Anything   bool              `json:"anything"`
	Also       string            `json:"also"`
	Closed     bool              `json:"closed"`
	Parameters []string          `json:"parameters"`
	Signature  string            `json:"signature"`
	Doc        string            `json:"doc"`
}

// A judge is a Python process that reads one source after the other and describes the
// stubs in it.
type judge struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

// newJudge starts a judge of the stubs of plain tools, which ends with the test.
func newJudge(tb testing.TB) *judge {
	tb.Helper()
	return startJudge(tb, "testdata/judge.py")
}

// startJudge starts a judge that runs this script.
func startJudge(tb testing.TB, script string) *judge {
	tb.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("no judge: %v", err)
		}
		tb.Skipf("no judge: %v", err)
	}
	// The process is not bound to the context of tb, which ends before the cleanup and would
	// kill the process before it can end by itself.
	cmd := exec.Command("python3", "-I", script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := in.Close(); err != nil {
			tb.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			tb.Errorf("judge: %v", err)
		}
	})
	return &judge{in: in, out: bufio.NewReader(out)}
}

// judge returns the stubs that source defines.
func (j *judge) judge(tb testing.TB, source string) []stub {
	tb.Helper()
	var verdict struct {
		Stubs []stub `json:"stubs"`
		Error string `json:"error"`
	}
	j.ask(tb, source, &verdict)
	if verdict.Error != "" {
		tb.Fatalf("Python refuses the stubs: %s\n%s", verdict.Error, source)
	}
	return verdict.Stubs
}

// ask sends a question to the judge and decodes its verdict.
func (j *judge) ask(tb testing.TB, question, verdict any) {
	tb.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	line, err := json.Marshal(question)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := j.in.Write(append(line, '\n')); err != nil {
		tb.Fatalf("write to the judge: %v", err)
	}
	answer, err := j.out.ReadBytes('\n')
	if err != nil {
		tb.Fatalf("read from the judge: %v", err)
	}
	if err := json.Unmarshal(answer, verdict); err != nil {
		tb.Fatalf("the judge's verdict: %v", err)
	}
}
