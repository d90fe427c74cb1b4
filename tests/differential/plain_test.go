package differential

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// workspace is the working directory of programs in the server's sandboxes.
const workspace = "/mnt/data"

// runPlain runs a program as python3 does: by name if it is a script, otherwise by plain/run.py.
func runPlain(t *testing.T, p program) outcome {
	t.Helper()
	root := t.TempDir()
	work, tmp := filepath.Join(root, "data"), filepath.Join(root, "tmp")
	for _, directory := range []string{work, tmp} {
		if err := os.Mkdir(directory, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range p.inputs {
		content, err := os.ReadFile(filepath.Join("inputs", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path, value := filepath.Join(work, "program.py"), filepath.Join(root, "value")
	if err := os.WriteFile(path, []byte(p.code), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The output is unbuffered, as in the server: otherwise that of child processes would come first.
	args := []string{"-u", path}
	if p.way != "script" {
		args = []string{"-u", here(t, "plain", "run.py"), p.way, value, path}
	}
	python := exec.CommandContext(ctx, harness.Python(), args...)
	python.Dir = work
	python.Env = []string{
		"PYTHONPATH=" + here(t, "plain"), "PYTHONDONTWRITEBYTECODE=1", "HOME=" + work, "TMPDIR=" + tmp, "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
		"PATH=" + os.Getenv("PATH"), "MPLBACKEND=Agg", "MPLCONFIGDIR=" + fontCache(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
	}
	var stdout, stderr bytes.Buffer
	python.Stdout, python.Stderr = &stdout, &stderr
	python.WaitDelay = time.Second
	var exit *exec.ExitError
	if err := python.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("plain Python: %v\n%s", err, &stderr)
	}
	done := outcome{exit: python.ProcessState.ExitCode(), files: leftBehind(t, p, work), valued: p.way != "script"}
	if content, err := os.ReadFile(value); err == nil {
		done.value = content
	}
	ours := []string{here(t, "plain") + "/"}
	if p.way != "script" {
		// run.py runs the program's coroutine with them.
		ours = append(ours, "/asyncio/runners.py", "/asyncio/base_events.py")
	}
	clean := func(b *bytes.Buffer) string {
		return strings.ReplaceAll(asProgram(withoutFrames(b.String(), ours), path), work, workspace)
	}
	done.stdout, done.stderr = clean(&stdout), clean(&stderr)
	return done
}

// frame matches the first line of a frame in a traceback, also in one of a group of errors.
var frame = regexp.MustCompile(`^([ |+]*)  File "([^"\n]*)", line`)

// withoutFrames returns text without the frames of tracebacks whose file has one of these words in its path.
func withoutFrames(text string, files []string) string {
	var b strings.Builder
	hidden := ""
	for line := range strings.Lines(text) {
		if found := frame.FindStringSubmatch(line); found != nil {
			hidden = ""
			if slices.ContainsFunc(files, func(file string) bool { return strings.Contains(found[2], file) }) {
				hidden = found[1] + "    "
			}
			if hidden != "" {
				continue
			}
		}
		if hidden != "" && strings.HasPrefix(line, hidden) {
			continue
		}
		hidden = ""
		b.WriteString(line)
	}
	return b.String()
}

// asProgram replaces the path of the program by the one word that both sides have in tracebacks.
func asProgram(text, path string) string { return strings.ReplaceAll(text, path, "<program>") }

// fontCache is where matplotlib keeps its list of fonts, which takes seconds to make.
func fontCache() string { return filepath.Join(os.TempDir(), "fermata-tests-matplotlib") }

// leftBehind returns the files that the server would collect, as outcome.files has them.
func leftBehind(t *testing.T, p program, work string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(work, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, work+"/")
		switch {
		case err != nil:
			return err
		case path == work || name == "program.py":
			return nil
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "__pycache__"):
			return filepath.SkipDir
		case entry.IsDir():
			inside, err := os.ReadDir(path)
			if err == nil && len(inside) == 0 {
				files[name+"/.dirkeep"] = describe(name, "")
			}
			return err
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil {
			files[name] = describe(name, asProgram(string(content), filepath.Join(work, "program.py")))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// An input that has not changed is no file that the program leaves.
	for _, input := range p.inputs {
		content, err := os.ReadFile(filepath.Join("inputs", input))
		if err != nil {
			t.Fatal(err)
		}
		if files[input] == describe(input, string(content)) {
			delete(files, input)
		}
	}
	return files
}

// describe returns the size and digest of a file. Of a picture it says only that it is one: drawing
// libraries write their versions and times into it.
func describe(name, content string) string {
	if strings.HasPrefix(content, "\x89PNG\r\n") {
		return "a picture"
	}
	if strings.HasSuffix(name, ".xlsx") && strings.HasPrefix(content, "PK") {
		return "a workbook" // with the time at which it was made
	}
	return fmt.Sprintf("%d bytes, %.8x", len(content), sha256.Sum256([]byte(content)))
}
