package files

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestInputFiles runs programs with input files.
func TestInputFiles(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		t.Run("before the first line", func(t *testing.T) {
			a, b := c.Upload(t, harness.OneFile("whatever", "1,2\n")), c.Upload(t, harness.OneFile("empty", ""))
			b.Session, b.Storage = b.Storage, ""
			long := strings.Repeat("0123456789", 300_000)
			big := c.Upload(t, harness.OneFile("big", long))
			got := c.Post(t, harness.Program{Files: []harness.FileRef{a.As("sub/dir/ü.csv"), b, big}, Code: harness.Py(`
				print(open("sub/dir/ü.csv").read(), os.path.getsize("empty"), sorted(os.listdir("/mnt/data")))
				content = open("big").read()
				print(len(content), content == "0123456789" * 300_000)
				open("sub/dir/ü.csv", "a").write("3,4")
			`)})
			got.Completes(t, "1,2\n 0 ['big', 'empty', 'sub']\n3000000 True\n")
			got.Leaves(t, "big inherited", "empty inherited", "sub/dir/ü.csv modified")
			if content := c.Download(t, a); content != "1,2\n" {
				t.Errorf("the upload has become %q, want it as it was", content)
			}
		})
		t.Run("with calls", func(t *testing.T) {
			// The server sends the program right after the large file; results come later.
			big := c.Upload(t, harness.OneFile("big", strings.Repeat("x", 7_000_001)))
			for range 5 {
				a, _ := c.Run(t, harness.Program{Files: []harness.FileRef{big}, Tools: harness.Tools("ask"), Code: "print(await ask(n=os.path.getsize('big')))"}, harness.Echo)
				a.Completes(t, "{'n': 7000001}\n")
			}
		})
		t.Run("several files with one name", func(t *testing.T) {
			var files []harness.FileRef
			for i, name := range []string{"a", "a", "d", "d/x", "e/x", "e"} {
				files = append(files, c.Upload(t, harness.OneFile("x", strconv.Itoa(i))).As(name))
			}
			c.Post(t, harness.Program{Files: files, Code: "print(open('a').read(), open('d/x').read(), open('e').read())"}).Completes(t, "1 3 5\n")
		})
		t.Run("many", func(t *testing.T) {
			f := c.Upload(t, harness.OneFile("x", "x"))
			var files []harness.FileRef
			for i := range 300 {
				files = append(files, f.As(strconv.Itoa(i)))
			}
			a := c.Post(t, harness.Program{Files: files, Code: "print(len(os.listdir()))"})
			a.Completes(t, "300\n")
			if len(a.Files) != 300 {
				t.Errorf("got %d files, want 300", len(a.Files))
			}
			c.Post(t, harness.Program{Files: append(files, f), Code: "print()"}).Fails(t, 400, "Too many files provided (301). Maximum is 300.")
		})
	})
}

// TestInputFilesTooLarge gives a program more files than its disk has room for.
func TestInputFilesTooLarge(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.Settings{"DISK": "4MB"}).Alice()
		f := c.Upload(t, harness.OneFile("x", strings.Repeat("x", 2_500_000)))
		c.Post(t, harness.Program{Files: []harness.FileRef{f}, Code: "print(1)"}).Completes(t, "1\n")
		c.Post(t, harness.Program{Files: []harness.FileRef{f, f.As("y")}, Code: "print(1)"}).Fails(t, 413, "session_input_too_large")
	})
}

// TestRefusedFileReferences refers to files in ways that the server refuses.
func TestRefusedFileReferences(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		f := c.Upload(t, harness.OneFile("x", "x"))
		good := fmt.Sprintf(`"id":"%s","session_id":"%s"`, f.ID, f.Storage)
		skill := c.Upload(t, harness.OneFile("x", "skill").With("kind", "skill").With("id", "s").With("version", "2"))
		ofSkill := fmt.Sprintf(`{"id":"%s","session_id":"%s","name":"x"`, skill.ID, skill.Storage)
		for name, tc := range map[string]struct {
			files string
			code  int
			text  string
		}{
			"an object":               {`{}`, 400, "files must be an array"},
			"a text in it":            {`[{` + good + `,"name":"a"},"x"]`, 400, "files[1] must be an object: id, session_id and name of a stored file, or name and content of a new one"},
			"no id":                   {`[{}]`, 400, "files[0].id is missing"},
			"short id":                {`[{"id":"x"}]`, 400, "files[0].id is invalid"},
			"no name":                 {`[{` + good + `}]`, 400, "files[0].name must be a string"},
			"name a number":           {`[{` + good + `,"name":1}]`, 400, "files[0].name must be a string"},
			"no session":              {`[{"id":"` + f.ID + `","name":"a"}]`, 400, "files[0].session_id is missing"},
			"storage session counts":  {`[{` + good + `,"storage_session_id":"x","name":"a"}]`, 400, "files[0].storage_session_id is invalid"},
			"resource":                {`[{` + good + `,"name":"a","resource_id":"a b"}]`, 400, "files[0].resource_id is invalid"},
			"kind":                    {`[{` + good + `,"name":"a","kind":"session"}]`, 400, "files[0].kind must be one of: skill, agent, user"},
			"kind a number":           {`[{` + good + `,"name":"a","kind":1}]`, 400, "files[0].kind must be one of: skill, agent, user"},
			"version missing":         {`[{` + good + `,"name":"a","kind":"skill"}]`, 400, "files[0].version is required for kind: 'skill'"},
			"version without a skill": {`[{` + good + `,"name":"a","version":1}]`, 400, "files[0].version is only valid for kind: 'skill'"},
			"version a text":          {`[{` + good + `,"name":"a","kind":"skill","version":"1"}]`, 400, "files[0].version must be an integer"},
			"absolute":                {`[{` + good + `,"name":"/etc/passwd"}]`, 400, "files[].name must be a relative path"},
			"empty":                   {`[{` + good + `,"name":""}]`, 400, "files[].name must not be empty"},
			"control characters":      {`[{` + good + `,"name":"a\u0000b"}]`, 400, "files[].name must not contain control characters or backslashes"},
			"upwards":                 {`[{` + good + `,"name":"../x"}]`, 400, `files[].name "../x" is reserved for PTC runtime and cannot be supplied by callers`},
			"history":                 {`[{` + good + `,"name":"a/_ptc_history.json"}]`, 400, `files[].name "a/_ptc_history.json" is reserved for PTC runtime and cannot be supplied by callers`},
			"a segment of dots":       {`[{` + good + `,"name":"a/./x"}]`, 400, "files[].name must not contain empty, . or .. segments"},
			"unknown file":            {`[{"id":"` + unknownID + `","session_id":"` + f.Storage + `","name":"a"}]`, 403, "Unauthorized file reference"},
			"another session":         {`[{"id":"` + f.ID + `","session_id":"` + unknownID + `","name":"a"}]`, 403, "Unauthorized file reference"},
			"a name replaced by a good one": {
				`[{"id":"` + unknownID + `","session_id":"` + f.Storage + `","name":"a"},{` + good + `,"name":"a"}]`,
				403, "Unauthorized file reference",
			},
			"another kind":       {`[{` + good + `,"name":"a","kind":"agent"}]`, 403, "Unauthorized file reference"},
			"another version":    {`[` + ofSkill + `,"kind":"skill","resource_id":"s","version":3}]`, 403, "Unauthorized file reference"},
			"without its skill":  {`[` + ofSkill + `}]`, 403, "Unauthorized file reference"},
			"of another session": {`[{"id":"` + skill.ID + `","session_id":"` + f.Storage + `","name":"x"}]`, 403, "Unauthorized file reference"},
		} {
			t.Run(name, func(t *testing.T) {
				c.Post(t, harness.RequestJSON(`"files":`+tc.files)).Fails(t, tc.code, tc.text)
			})
		}
		for name, files := range map[string]string{
			"null": `null`, "none": `[]`,
			"all members": `[{` + good + `,"storage_session_id":"` + f.Storage + `","name":"a","kind":"user","resource_id":"me","inherited":true,"path":"/x"}]`,
			"nulls":       `[{` + good + `,"storage_session_id":null,"name":"..a","kind":null,"resource_id":null,"version":null}]`,
			"its skill":   `[` + ofSkill + `,"kind":"skill","resource_id":"s","version":2.0}]`,
		} {
			t.Run(name, func(t *testing.T) { c.Post(t, harness.RequestJSON(`"files":`+files)).Completes(t, "1\n") })
		}
	})
}

// TestFilesOfSessions runs several programs in one session: each finds the files of those before
// it.
func TestFilesOfSessions(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		const look = "print({n: open(n).read() for n in sorted(os.listdir()) if os.path.isfile(n)})\n"
		first := c.Post(t, harness.Program{Code: "for n in 'abc': open(n, 'w').write(n)"})
		first.Leaves(t, "a", "b", "c")
		second := c.Post(t, harness.Program{Session: first.Session, Code: look + "open('a', 'a').write('!')\nos.remove('b')"})
		second.Completes(t, "{'a': 'a', 'b': 'b', 'c': 'c'}\n")
		second.Leaves(t, "a modified", "c inherited")
		if want := []string{"b"}; !slices.Equal(second.Deleted, want) || second.Session != first.Session {
			t.Errorf("got %v, want %q deleted in session %s", second, want, first.Session)
		}
		third := c.Post(t, harness.Program{Session: first.Session, Code: look + "1/0"})
		if want := "{'a': 'a!', 'c': 'c'}\n"; third.Stdout != want {
			t.Errorf("stdout = %q, want %q", third.Stdout, want)
		}
		third.Leaves(t, "a inherited", "c inherited")
		// With references, a program finds exactly these files, whatever has happened to them in
		// the session.
		c.Post(t, harness.Program{Session: first.Session, Files: []harness.FileRef{first.File(t, "b").FileRef}, Code: look}).Completes(t, "{'b': 'b'}\n")
		again := c.Post(t, harness.Program{Session: first.Session, Code: look + "open('b', 'w').write('new')"})
		again.Completes(t, "{'a': 'a!', 'c': 'c'}\n")
		c.Post(t, harness.Program{Session: first.Session, Code: look}).Completes(t, "{'a': 'a!', 'b': 'new', 'c': 'c'}\n")
		// The same name is a file first, then a directory.
		turned := c.Post(t, harness.Program{Code: "open('a', 'w').write('file')"})
		c.Post(t, harness.Program{Session: turned.Session, Code: "os.remove('a')\nos.mkdir('a')\nopen('a/b', 'w').write('below')"})
		c.Post(t, harness.Program{Session: turned.Session, Code: "print(open('a/b').read())"}).Completes(t, "below\n")

		upload := c.Upload(t, harness.OneFile("up", "loaded"))
		c.Post(t, harness.Program{Session: upload.Storage, Code: look}).Completes(t, "{'up': 'loaded'}\n")
		foreign := server.Bob().Post(t, harness.Program{Session: first.Session, Code: look + "open('a', 'w').write('bob')"})
		foreign.Completes(t, "{}\n")
		if foreign.Session == first.Session {
			t.Errorf("session_id = %s, want another than that of another principal", foreign.Session)
		}
		if fresh := c.Post(t, harness.Program{Session: unknownID, Code: look}); fresh.Stdout != "{}\n" || fresh.Session != unknownID {
			t.Errorf("got %v, want an empty session with the id that was asked for", fresh)
		}
		c.Post(t, harness.Program{Session: first.Session, Code: look}).Completes(t, "{'a': 'a!', 'b': 'new', 'c': 'c'}\n")
	})
}
