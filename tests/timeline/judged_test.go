package timeline

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// everything is a program that leaves something of every kind. The directory of the turn is there.
var everything = harness.Py(`
	import os, socket
	open("turn_1/files/good.txt", "w").write("hello")
	open("plain.txt", "w").write("hello")
	open("small", "w").write("x")
	for name in "empty", "bare", "zero":
	    open(name, "w")
	os.makedirs("directory/x")
	os.symlink("plain.txt", "link")
	os.symlink("/etc/passwd", "elsewhere")
	os.symlink("/etc", "etc")
	socket.socket(socket.AF_UNIX).bind("socket")
	open("one", "w").write("x")
	os.link("one", "two")
	open("closed", "w").write("x")
	os.chmod("closed", 0)
	os.mkdir("dark")
	open("dark/x", "w").write("x")
	os.chmod("dark", 0)
	with open("sparse", "wb") as file:
	    file.truncate(2_000_001)
	os.makedirs(".hidden/__pycache__")
	open(".hidden/__pycache__/x", "w").write("x")
	open("Upper", "w").write("x")
	open("e\u0301", "w").write("x")
	os.rename("plain.txt", "renamed")
	open("plain.txt", "w").write("again")
	if os.fork() == 0:
	    while True:
	        open("leftover", "a").write("x")
`)

// want are the outputs of everything, and what becomes of them.
var want = []struct {
	path, state, error string
	size               int64
	least              int
}{
	{"turn_1/files/good.txt", "produced", "", 5, 1},
	{"plain.txt", "produced", "", 5, 1},
	{"renamed", "produced", "", 5, 1},
	{"small", "too_small", "file has 1 of at least 100 bytes", 1, 100},
	{"empty", "empty", "file is empty", 0, 1},
	{"bare", "empty", "file is empty", 0, 100},
	{"zero", "produced", "", 0, 0},
	{"directory", "not_regular", "not a regular file", 0, 1},
	{"directory/x/y", "missing", "file not produced", 0, 1},
	{"plain.txt/x", "missing", "file not produced", 0, 1},
	{"link", "not_regular", "not a regular file", 0, 1},
	{"elsewhere", "not_regular", "not a regular file", 0, 1},
	{"etc/passwd", "not_regular", "not a regular file", 0, 1},
	{"socket", "not_regular", "not a regular file", 0, 1},
	{"two", "not_regular", "not a regular file", 0, 1},
	{"closed", "unreadable", "file cannot be read", 0, 1},
	{"dark/x", "unreadable", "file cannot be read", 0, 1},
	{"sparse", "too_large", "file is too large", 2_000_001, 1},
	{".hidden/__pycache__/x", "produced", "", 1, 1},
	{"upper", "missing", "file not produced", 0, 1},
	{"\u00e9", "missing", "file not produced", 0, 1},
	{"turn_1/files/never", "missing", "file not produced", 0, 1},
}

func TestStates(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, harness.Settings{"OUTPUT_FILE_SIZE": "2MB"})
		for _, p := range paths {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				var asked []map[string]any
				var missing []string
				for _, w := range want {
					asked = append(asked, map[string]any{"path": w.path, "min_bytes": w.least})
					if w.state != "produced" && w.state != "too_small" {
						missing = append(missing, w.path)
					}
				}
				a := p.post(t, c, body(everything, map[string]any{"outputs": asked}))
				if len(a.Outputs) != len(want) {
					t.Fatalf("got %v, want %d outputs", a, len(want))
				}
				for i, w := range want {
					got := a.Outputs[i]
					if got.Path != w.path || got.State != w.state || got.Error != w.error || got.Size != w.size {
						t.Errorf("got %+v, want %+v", got, w)
					}
					if stored := w.state == "produced" || w.state == "too_small"; stored != (got.ID != "") {
						t.Errorf("%s is %s and has the id %q", w.path, got.State, got.ID)
					} else if stored {
						if f := a.File(t, w.path); f.ID != got.ID || f.Storage == "" {
							t.Errorf("%s has the id %s, and is listed as %+v", w.path, got.ID, f)
						}
					}
				}
				if a.Reason != "outputs_missing" || a.Detail != "" {
					t.Errorf("got reason %q, %q, want outputs_missing", a.Reason, a.Detail)
				}
				if text := "Missing output files: " + strings.Join(missing, ", "); p.name == "programmatic" && a.Error != text {
					t.Errorf("got error %q, want %q", a.Error, text)
				}
				for _, name := range []string{"turn_1/files/.dirkeep", "turn_1/.dirkeep", "directory/x/.dirkeep"} {
					for _, f := range a.Names() {
						if f == name {
							t.Errorf("%s is kept, which nobody has made", name)
						}
					}
				}
			})
		}
	})
}

// TestStaleOutputs gives files to programs: only what was made of them is a result.
func TestStaleOutputs(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		names := []string{"same", "touched", "rewritten", "changed", "longer", "replaced", "gone"}
		var files []harness.FileRef
		for _, name := range names {
			files = append(files, c.Upload(t, harness.OneFile(name, "given")))
		}
		code := harness.Py(`
			import os
			os.utime("touched")
			open("rewritten", "w").write("given")
			open("changed", "w").write("taken")
			open("longer", "a").write("given")
			os.remove("gone")
			os.remove("replaced")
			os.symlink("changed", "replaced")
		`)
		for _, p := range paths {
			a := p.post(t, c, body(code, map[string]any{"outputs": names, "files": files}))
			states := map[string]string{}
			for _, o := range a.Outputs {
				states[o.Path] = o.State
			}
			want := map[string]string{
				"same": "missing", "touched": "missing", "rewritten": "missing", "changed": "produced", "longer": "produced",
				"replaced": "not_regular", "gone": "missing",
			}
			if fmt.Sprint(states) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", p.name, states, want)
			}
			if a.Reason != "outputs_missing" {
				t.Errorf("%s: got %v, want that outputs are missing", p.name, a)
			}
		}
		// A file of the turn's directory that is given again is as stale.
		first := c.Post(t, body(`open("turn_1/files/x", "w").write("x")`, map[string]any{"outputs": []string{"turn_1/files/x"}}))
		second := c.Post(t, body("print()", map[string]any{"outputs": []string{"turn_1/files/x"}, "session_id": first.Session}))
		if first.Status != "completed" || second.Reason != "outputs_missing" {
			t.Errorf("got %v and then %v, want the second without its file", first, second)
		}
	})
}

// TestManyOutputs leaves more files than are kept, and those of the contract last.
func TestManyOutputs(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprintf("z%02d", i)
		}
		code := harness.Py(`
			for n in range(60):
			    open(f"a{n:02}", "w").write("x")
			    open(f"z{n:02}", "w").write("x")
		`)
		for _, p := range paths {
			a := p.post(t, c, body(code, map[string]any{"outputs": names}))
			for _, o := range a.Outputs {
				if o.State != "produced" {
					t.Errorf("%s: got %+v, want it produced", p.name, o)
				}
			}
			if got := a.Names(); a.Reason != "" || fmt.Sprint(got) != fmt.Sprint(names) {
				t.Errorf("%s: kept %v (%s), want the files of the contract", p.name, got, a.Reason)
			}
		}
	})
}

// TestOutputsOfFailures ends programs that have produced something before.
func TestOutputsOfFailures(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		for _, p := range []struct{ name, code, lang, reason, report string }{
			{"an error", "open('a', 'w').write('x')\nraise ValueError('no')", "python", "raised", "Runtime error: execution_failed — ValueError: no; "},
			{"a timeout", "open('a', 'w').write('x')\nwhile True: pass", "python", "timed_out", "Runtime error: timeout — "},
			{"an exit", "echo x > a; exit 3", "bash", "exited", "Runtime error: execution_failed — "},
			{"the end of Bash", "echo x > a; echo x > turn_1/files/c", "bash", "outputs_missing", "Runtime error: execution_failed — "},
		} {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				a := c.Post(t, body(p.code, map[string]any{"lang": p.lang, "timeout": 2000, "outputs": []string{"a", "b", "turn_1/files/c"}}))
				if len(a.Outputs) != 3 || a.Outputs[0].State != "produced" || a.Outputs[1].State != "missing" || a.Reason != p.reason {
					t.Fatalf("got %v, want the reason %s, and a produced", a, p.reason)
				}
				if c.Download(t, a.File(t, "a").FileRef)[0] != 'x' {
					t.Error("what was produced cannot be downloaded")
				}
				if a.Report == nil || !strings.HasPrefix(*a.Report, p.report) || !strings.Contains(*a.Report, "Missing output files: turn_1/files/b") ||
					!strings.HasSuffix(*a.Report, "- turn_1/files/a") && p.lang == "python" {
					t.Errorf("got the report %v", a.Report)
				}
			})
		}
	})
}

// TestOutputsOverAPause keeps a contract over a pause, and over the death of the server in it.
func TestOutputsOverAPause(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		start := body(`open("turn_1/files/a", "w").write(str(await ask()))`+"\nopen('b', 'w')", map[string]any{
			"outputs": []string{"turn_1/files/a", "b"}, "tools": harness.Tools("ask"),
		})
		paused := server.Alice().Pause(t, start)
		if paused.Report != nil || paused.Outputs != nil {
			t.Errorf("the pause is %v, want nothing about outputs in it", paused)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		c := server.Alice()
		a := c.Post(t, paused.Continue(harness.Value("5")))
		again := c.Post(t, paused.Continue(harness.Value("5")))
		const report = "Runtime error: execution_failed — Missing output files: turn_1/files/b\nFile errors:\n- turn_1/files/b: file is empty\n" +
			"Succeeded:\n- turn_1/files/a"
		if a.Report == nil || *a.Report != report || again.Raw != a.Raw {
			t.Errorf("got %v and again %v, want the report\n%s", a, again, report)
		}
	})
}

// TestOutputsWithoutRoom fills the quota: what cannot be stored is undelivered, and the rest of the
// contract is stored before other files.
func TestOutputsWithoutRoom(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, harness.Settings{"FILE_SIZE": "1MB", "OUTPUT_FILE_SIZE": "1MB", "FILES_QUOTA": "1500kB"}).Alice()
		code := harness.Py(`
			for name in "a", "y", "z":
			    open(name, "w").write("x" * 1_000_000)
		`)
		a := c.Post(t, body(code, map[string]any{"outputs": []string{"z", "y"}}))
		if len(a.Outputs) != 2 || a.Reason != "outputs_missing" {
			t.Fatalf("got %v, want that an output is missing", a)
		}
		states := map[string]int{}
		for _, o := range a.Outputs {
			states[o.State]++
		}
		if states["produced"] != 1 || states["undelivered"] != 1 {
			t.Errorf("got %+v, want one output stored and one undelivered", a.Outputs)
		}
	})
}

// TestLargeOutput produces 200 MB, which the server never has in memory.
func TestLargeOutput(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("moves 200 MB")
		}
		large := harness.Settings{"FILE_SIZE": "256MiB", "OUTPUT_FILE_SIZE": "256MiB", "FILES_QUOTA": "1GiB", "DISK": "300MiB", "MEMORY": "512MiB"}
		server := harness.ServeAlone(t, s, large)
		server.PeakMemory(t) // Fails early if the peak cannot be read.
		c := server.Alice()
		a := c.Post(t, body(harness.Py(`
			with open("large", "wb") as file:
			    for _ in range(200):
			        file.write(b"x" * 1_000_000)
		`), map[string]any{"outputs": []string{"large"}, "timeout": 60_000}))
		if len(a.Outputs) != 1 || a.Outputs[0].State != "produced" || a.Outputs[0].Size != 200_000_000 {
			t.Fatalf("got %v, want 200 MB produced", a)
		}
		if peak := server.PeakMemory(t); peak > 100<<20 {
			t.Errorf("the server has had %d MiB in memory, want less than 100", peak>>20)
		}
		if got := c.Files(t, http.MethodDelete, "/files/"+a.Session+"/"+a.Outputs[0].ID); got.HTTPStatus != http.StatusOK {
			t.Errorf("DELETE: got %v, want 200", got)
		}
	})
}
