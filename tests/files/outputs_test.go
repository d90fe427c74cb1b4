package files

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestFilesLeft runs programs that leave files, and checks which ones the answer has.
func TestFilesLeft(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		t.Run("new files", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: harness.Py(`
				os.makedirs("out/empty")
				open("out/a.csv", "w").write("a,b\n")
				open("ü 名` + "\u200d" + `.txt", "w").write("x")
				open("nothing", "w")
			`)})
			a.Completes(t, "")
			a.Leaves(t, "nothing", "out/a.csv", "out/empty/.dirkeep", "ü 名\u200d.txt")
			f := a.File(t, "out/a.csv")
			if f.Session != a.Session || f.Storage != a.Session || !harness.IDForm.MatchString(f.ID) {
				t.Errorf("got %v, want the session of the answer under both names, and an id of 21 characters", a)
			}
			if got := c.Download(t, f.FileRef); got != "a,b\n" {
				t.Errorf("downloaded %q, want %q", got, "a,b\n")
			}
		})
		t.Run("files that are still open", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: harness.Py(`
				import gzip
				class Report:
				    def __init__(self):
				        self.text, self.packed = open("out.csv", "w"), gzip.open("out.gz", "wb")
				        self.add = self.write
				    def write(self, text):
				        self.text.write(text)
				        self.packed.write(text.encode())
				    def __del__(self):
				        self.text.write(json.dumps(end()))
				        print("removed")
				def end(): return "end"
				report = Report()
				report.add("a,b\n")
			`)})
			a.Completes(t, "removed\n")
			a.Leaves(t, "out.csv", "out.gz")
			if got := c.Download(t, a.File(t, "out.csv").FileRef); got != "a,b\n\"end\"" {
				t.Errorf("downloaded %q, want all that was written", got)
			}
			packed, err := gzip.NewReader(strings.NewReader(c.Download(t, a.File(t, "out.gz").FileRef)))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(packed); err != nil || string(got) != "a,b\n" {
				t.Errorf("unpacked %q, %v, want all that was written", got, err)
			}
		})
		t.Run("sizes, types and addresses", func(t *testing.T) { testDescribedFiles(t, c) })
		t.Run("what happened to inputs", func(t *testing.T) { testInputsAfterwards(t, c) })
		t.Run("read-only inputs", func(t *testing.T) { testReadOnly(t, c) })
		t.Run("endings", func(t *testing.T) { testFilesOfEndings(t, c) })
		t.Run("files that are left out", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: harness.Py(`
				os.makedirs(".cache/deep")
				open(".cache/deep/x", "w")
				open(".hidden", "w")
				open("mine.py", "w").write("x = 1")
				import py_compile
				py_compile.compile("mine.py")
				import mine
			`)})
			a.Completes(t, "")
			a.Leaves(t, ".hidden", "mine.py")
		})
	})
}

// testDescribedFiles checks size, type and address of new and of inherited files, on both routes and
// below both prefixes.
func testDescribedFiles(t *testing.T, c harness.Client) {
	inputs := []harness.FileRef{c.Upload(t, harness.OneFile("given.csv", "a,b\n"))}
	skill := c.Upload(t, harness.OneFile("SKILL", "how").With("kind", "skill").With("id", "s:1").With("version", "2"))
	skill.Kind, skill.Resource, skill.Version = "skill", "s:1", 2
	inputs = append(inputs, skill)
	for _, path := range []string{"/exec", "/v1/exec", "/exec/programmatic", "/v1/exec/programmatic"} {
		a, err := c.Request(t.Context(), http.MethodPost, path, nil, map[string]any{
			"lang": "py", "files": inputs,
			"code": "open('plot', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n')\nopen('empty.csv', 'w')",
		})
		if err != nil || a.HTTPStatus != http.StatusOK {
			t.Fatalf("%s: got %v, %v", path, a, err)
		}
		for name, want := range map[string]struct {
			size       int64
			mime, text string
		}{
			"plot":      {8, "image/png", "\x89PNG\r\n\x1a\n"},
			"empty.csv": {0, "text/csv; charset=utf-8", ""},
			"given.csv": {4, "text/csv; charset=utf-8", "a,b\n"},
			"SKILL":     {3, "text/plain; charset=utf-8", "how"},
		} {
			f := a.File(t, name)
			if f.Size == nil || *f.Size != want.size || f.Mime != want.mime {
				t.Errorf("%s: got %v, want %s with the size %d and the type %s", path, a, name, want.size, want.mime)
			}
			if prefix := strings.TrimSuffix(strings.TrimSuffix(path, "/programmatic"), "/exec"); !strings.HasPrefix(f.URL, prefix+"/download/"+f.Storage+"/"+f.ID) {
				t.Errorf("%s: %s is at %q, want %s/download/…", path, name, f.URL, prefix)
			}
			if got := c.Files(t, http.MethodGet, f.URL); got.HTTPStatus != http.StatusOK || got.Body != want.text {
				t.Errorf("%s: GET %s: got %v, want %q", path, f.URL, got, want.text)
			}
		}
	}
}

func testInputsAfterwards(t *testing.T, c harness.Client) {
	var files []harness.FileRef
	for _, name := range []string{"kept", "changed", "same size", "gone", ".hidden/kept", "a dir", "a socket"} {
		files = append(files, c.Upload(t, harness.OneFile(name, "old "+name)))
	}
	a := c.Post(t, harness.Program{Files: files, Code: harness.Py(`
		open("changed", "a").write("!")
		open("same size", "w").write("new same size")
		os.remove("gone")
		os.utime("kept", (0, 0))
		for name in "a dir", "a socket":
		    os.remove(name)
		os.mkdir("a dir")
		open("a dir/x", "w")
		import socket
		socket.socket(socket.AF_UNIX).bind("a socket")
		open("new", "w")
	`)})
	a.Completes(t, "")
	a.Leaves(t, ".hidden/kept inherited", "a dir/x", "changed modified", "kept inherited", "new", "same size modified")
	if want := []string{"a dir", "a socket", "gone"}; !slices.Equal(a.Deleted, want) {
		t.Errorf("deleted_files = %q, want %q", a.Deleted, want)
	}
	if a.Truncation != nil || a.Delivery != nil {
		t.Errorf("got %v, want every file kept", a)
	}
	kept, input := a.File(t, "kept"), files[0]
	if kept.ID != input.ID || kept.Storage != input.Storage || kept.Kind != "user" || kept.Resource != input.ID {
		t.Errorf("inherited = %+v, want it to be the input %+v", kept, input)
	}
	changed, input := a.File(t, "changed"), files[1]
	if from := changed.ModifiedFrom; changed.ID == input.ID || from.ID != input.ID || from.Storage != input.Storage {
		t.Errorf("modified = %+v from %+v, want a new id, and that of the input %+v", changed, from, input)
	}
	for f, want := range map[harness.FileRef]string{changed.FileRef: "old changed!", a.File(t, "same size").FileRef: "new same size", input: "old changed", files[3]: "old gone"} {
		if got := c.Download(t, f); got != want {
			t.Errorf("%s is %q, want %q", f.Name, got, want)
		}
	}
}

func testReadOnly(t *testing.T, c harness.Client) {
	// Files of agents and skills are always read-only.
	agent := c.Upload(t, harness.OneFile("agent.txt", "agent").With("kind", "agent").With("id", "agent_1"))
	agent.Kind, agent.Resource = "agent", "agent_1"
	skill := c.Upload(t, harness.OneFile("skill/SKILL.md", "skill").With("kind", "skill").With("id", "s").With("version", "3"))
	skill.Kind, skill.Resource, skill.Version = "skill", "s", 3
	own := c.Upload(t, harness.OneFile("own.txt", "own").With("read_only", "true"))
	a := c.Post(t, harness.Program{Files: []harness.FileRef{agent, skill, own}, Code: harness.Py(`
		os.remove("own.txt")
		open("own.txt", "w").write("changed")
		try:
		    open("agent.txt", "w")
		except PermissionError:
		    print("refused")
		os.chmod("agent.txt", 0o644)
		open("agent.txt", "w").write("changed")
		os.remove("skill/SKILL.md")
		os.rmdir("skill")
	`)})
	a.Completes(t, "refused\n")
	a.Leaves(t, "agent.txt inherited", "own.txt inherited", "skill/SKILL.md inherited")
	if got := a.File(t, "skill/SKILL.md").FileRef; got.Kind != "skill" || got.Resource != "s" || got.Version != 3 || got.ID != skill.ID {
		t.Errorf("inherited = %+v, want it to be the input %+v", got, skill)
	}
	if len(a.Deleted) > 0 {
		t.Errorf("deleted_files = %q, want none: it cannot be deleted", a.Deleted)
	}
}

// testFilesOfEndings runs programs that leave a file and then fail in some way.
func testFilesOfEndings(t *testing.T, c harness.Client) {
	for name, tc := range map[string]struct {
		code    string
		status  int
		error   string
		timeout int
	}{
		"raised":    {"1/0", 200, "ZeroDivisionError: division by zero", 0},
		"exited":    {"sys.exit(3)", 200, "Sandbox exited with code 3", 0},
		"killed":    {"os.kill(os.getpid(), 9)", 200, "Sandbox exited with code -9", 0},
		"flood":     {"print('x' * (2 << 20))", 200, "stdout length exceeded", 0},
		"timeout":   {"while True: pass", 408, "Execution timeout", 1000},
		"no syntax": {"x = ", 200, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			input := c.Upload(t, harness.OneFile("input", "x"))
			a := c.Post(t, harness.Program{Code: "open('left', 'w').write('it')\n" + tc.code, Timeout: tc.timeout, Files: []harness.FileRef{input}})
			if name == "no syntax" {
				// This program has not run.
				a.Leaves(t, "input inherited")
				return
			}
			a.Fails(t, tc.status, tc.error)
			a.Leaves(t, "input inherited", "left")
			if got := c.Download(t, a.File(t, "left").FileRef); got != "it" {
				t.Errorf("downloaded %q, want %q", got, "it")
			}
		})
	}
}

// TestFilesOfTooManyRounds checks that a program that the limit of rounds ends leaves its files.
func TestFilesOfTooManyRounds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		a, _ := c.Run(t, harness.Program{Tools: harness.Tools("ask"), Code: harness.Py(`
			open("left", "w").write("it")
			for n in range(21):
			    await ask(n=n)
		`)}, harness.Echo)
		a.Fails(t, 400, "Exceeded maximum round trips (20)")
		a.Leaves(t, "left")
	})
}

// TestHostileFilesLeft runs programs that leave files which could harm whoever looks at them:
// links, pipes, odd names, huge files.
func TestHostileFilesLeft(t *testing.T) {
	cases := []struct {
		name, code string
		files      []string
		reasons    map[string]int
		skipped    []string
	}{
		{name: "symbolic links", files: []string{"good"}, code: `
			for n, target in enumerate(["/etc/passwd", "/proc/1/environ", "/", "good", "nowhere", "../../etc", "5"]):
			    os.symlink(target, str(n))
			open("good", "w").write("good")
		`},
		{name: "hard links", files: []string{"good"}, reasons: map[string]int{"unreadable": 2}, skipped: []string{"a", "b"}, code: `
			open("a", "w")
			os.link("a", "b")
			open("good", "w").write("good")
			try:
			    os.link("/etc/passwd", "c")
			except OSError:
			    print(end="")
		`},
		{name: "pipes, sockets and devices", files: []string{"good"}, reasons: map[string]int{"unreadable": 1}, skipped: []string{"socket"}, code: `
			import socket, stat
			socket.socket(socket.AF_UNIX).bind("socket")
			for kind in stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK:
			    try:
			        os.mknod("device", kind | 0o666, os.makedev(1, 3))
			    except PermissionError:
			        continue
			open("good", "w").write("good")
		`},
		{
			name: "names", files: []string{"good"}, reasons: map[string]int{"path": 7},
			skipped: []string{`a\x1b[2J`, `a\nb`, `a\u2028`, `back\\slash`, `x\u202egpj.exe`, `\udcff`, `\u061cx`},
			code: `
			for name in "a\x1b[2J", "a\nb", "a\u2028", "back\\slash", "x\u202egpj.exe", b"\xff", "\u061cx":
			    open(name, "w")
			for name in "..", ".", "../out", "/mnt/out":
			    try:
			        open(name, "w")
			        print("made", name)
			    except OSError:
			        continue
			open("good", "w").write("good")
		`,
		},
		{name: "long names", files: []string{"good"}, reasons: map[string]int{"path": 1, "depth": 1}, code: `
			os.makedirs("d" * 200)
			open("d" * 200 + "/" + "e" * 200, "w")
			os.makedirs("/".join("abcdefghijk"))
			open("/".join("abcdefghijkl"), "w")
			open("good", "w").write("good")
		`},
		{name: "names that differ little", files: []string{"A", "a", "e\u0301", "good", "\u00e9"}, code: `
			for name in "A", "a", "\u00e9", "e\u0301":
			    open(name, "w").write(name)
			open("good", "w").write("good")
		`},
		{name: "sparse", files: []string{"good"}, reasons: map[string]int{"size": 1}, skipped: []string{"big"}, code: `
			try:
			    open("huge", "wb").truncate(1 << 40)
			    print("made")
			except OSError:
			    os.remove("huge")
			open("big", "wb").truncate(200 << 20)
			open("good", "w").write("good")
		`},
		{name: "a full disk", files: nil, reasons: map[string]int{"size": 1}, code: `
			try:
			    with open("full", "wb", 0) as file:
			        while True:
			            file.write(bytes(1 << 20))
			except OSError:
			    print(end="")
		`},
		{name: "rights", files: []string{"good"}, reasons: map[string]int{"unreadable": 2}, skipped: []string{"closed", "dark"}, code: `
			open("closed", "w")
			os.chmod("closed", 0)
			os.mkdir("dark")
			open("dark/x", "w")
			os.chmod("dark", 0)
			open("good", "w").write("good")
		`},
		{name: "no right at all", reasons: map[string]int{"unreadable": 1}, skipped: []string{"."}, code: `
			open("good", "w").write("good")
			os.chmod(".", 0)
		`},
		{name: "written until the end", files: []string{"good", "log"}, code: `
			open("log", "w").write("begun\n")
			ready, begun = os.pipe()
			if os.fork() == 0:
			    import signal
			    signal.signal(signal.SIGTERM, signal.SIG_IGN)
			    os.setsid()
			    while True:
			        open("log", "a").write("more\n")
			        os.write(begun, b".") if begun else None
			        begun = 0
			os.read(ready, 1)
			open("good", "w").write("good")
			os._exit(0)
		`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				a := c.Post(t, harness.Program{Code: harness.Py(tc.code)})
				a.Completes(t, "")
				a.Leaves(t, tc.files...)
				var reasons map[string]int
				var skipped []string
				if a.Truncation != nil {
					reasons, skipped = a.Truncation.Reasons, a.Truncation.Skipped
					maps.DeleteFunc(reasons, func(_ string, n int) bool { return n == 0 })
				}
				slices.Sort(skipped)
				slices.Sort(tc.skipped)
				if !maps.Equal(reasons, tc.reasons) || tc.skipped != nil && !slices.Equal(skipped, tc.skipped) {
					t.Errorf("left out %v, %q; want %v, %q", reasons, skipped, tc.reasons, tc.skipped)
				}
				for _, f := range a.Files {
					// The log was still being written, so its length is not known.
					if got := c.Download(t, f.FileRef); got != f.Name && f.Name != "log" {
						t.Errorf("%s has the contents %q, want its name", f.Name, got)
					}
				}
			})
		}
		t.Run("100,000 files", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: harness.Py(`
				os.makedirs("deep/er")
				made = 0
				try:
				    for made in range(100_000):
				        os.close(os.open(f"{'deep/er/' * (made % 2)}{made:06}", os.O_CREAT))
				except OSError:
				    print(end="")
			`)})
			a.Completes(t, "")
			harness.Contains(t, "stderr", a.Stderr, " files are not kept: a program may leave at most 50 (FERMATA_OUTPUT_FILES)\n")
			if len(a.Files) != 50 || a.Truncation == nil || a.Truncation.Reasons["max_files"] < 10_000 || len(a.Truncation.Skipped) != 20 {
				t.Errorf("got %d files of %v, want 50, the others left out, and 20 names of them", len(a.Files), a)
			}
		})
		t.Run("inputs that are not files any more", func(t *testing.T) {
			var files []harness.FileRef
			for i := range 3 {
				files = append(files, c.Upload(t, harness.OneFile(strconv.Itoa(i), "x")))
			}
			a := c.Post(t, harness.Program{Files: files, Code: harness.Py(`
				for n in range(3):
				    os.remove(str(n))
				os.symlink("/etc/passwd", "0")
				open("a", "w")
				os.link("a", "1")
				os.chmod("a", 0)
			`)})
			a.Completes(t, "")
			a.Leaves(t)
			if want := []string{"0", "2"}; !slices.Equal(a.Deleted, want) || a.Truncation == nil || !slices.Equal(a.Truncation.Skipped, []string{"1", "a"}) {
				t.Errorf("got %v, want %q deleted, and 1 and a left out", a, want)
			}
		})
	})
}

// TestLimitsOfFilesLeft leaves more and larger files than the server keeps.
func TestLimitsOfFilesLeft(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.Settings{"OUTPUT_FILES": "2", "OUTPUT_FILE_SIZE": "2MB", "FILES_QUOTA": "5MB", "FILE_SIZE": "3MB"}).Alice()
		large := c.Upload(t, harness.OneFile("large", strings.Repeat("x", 2_500_000)))
		a := c.Post(t, harness.Program{Files: []harness.FileRef{large}, Code: harness.Py(`
			for name in "abc":
			    open(name, "w").write(name)
			open("0", "wb").write(bytes(2_000_000))
			open("00", "wb").write(bytes(2_000_001))
		`)})
		a.Leaves(t, "0", "a", "large inherited")
		if got := a.Truncation; got == nil || got.Reasons["max_files"] != 2 || got.Reasons["size"] != 1 || got.Count != 3 || got.Code != "artifact_truncated" {
			t.Errorf("got %v, want one file too large and two too many", a)
		}
		// The quota has room for about half a megabyte now.
		b := c.Post(t, harness.Program{Code: harness.Py(`
			open("a", "w").write("a")
			open("b", "wb").write(bytes(1_000_000))
		`)})
		b.Completes(t, "")
		b.Leaves(t, "a")
		if got := b.Delivery; got == nil || got.Code != "artifact_delivery_failed" || got.Status != "partial" || got.Attempted != 2 || got.Delivered != 1 || got.Failed != 1 {
			t.Errorf("got %v, want one of two files delivered", b)
		}
		if r := c.Files(t, http.MethodDelete, "/files/"+large.Storage+"/"+large.ID); r.HTTPStatus != 200 {
			t.Fatalf("DELETE: got %v, want it deleted", r)
		}
		if a := c.Post(t, harness.Program{Code: "open('b', 'wb').write(bytes(1_000_000))"}); a.Delivery != nil {
			t.Errorf("got %v, want it kept where there is room again", a)
		}
		holes := harness.Serve(t, s, harness.Settings{"DISK": "4MB"}).Alice().Post(t, harness.Program{Code: harness.Py(`
			for name in "abcde":
			    open(name, "wb").truncate(1_500_000)
		`)})
		holes.Leaves(t, "a", "b")
		if got := holes.Truncation; got == nil || got.Reasons["size"] != 3 {
			t.Errorf("got %v, want the holes that are larger than the disk left out", holes)
		}
	})
}
