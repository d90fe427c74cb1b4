package contract

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestArtifacts hands files over in the results of a client's tool: they are in the workspace when the
// program goes on, in the session, and in the answer.
func TestArtifacts(t *testing.T) {
	const failing = `
		try:
		    print(await write(path="report.md"))
		except ToolExecutionError as e:
		    print(e.code, e)
		print(sorted(os.listdir()))
	`
	type file struct{ name, content string }
	cases := []struct {
		name, code, ret, stdout string
		stored                  []file
		event                   string
	}{
		{
			"a text", "r = await write()\nprint(r, open('out/report.md').read())",
			`{"n": 1, "artifact": {"path": "out/report.md", "content": "# Réport", "mime": "text/markdown"}}`,
			"{'n': 1, 'artifact': {'path': 'out/report.md', 'mime': 'text/markdown'}} # Réport\n",
			[]file{{"out/report.md", "# Réport"}},
			`"path":"out/report.md","id":`,
		},
		{
			"several, one in base64", "r = await write()\nprint(len(r['files']), open('a').read(), open('b', 'rb').read())",
			`{"artifact_type": "files", "files": [{"path": "a", "content": "1"}, {"path": "b", "base64": "AP8="}]}`,
			"2 1 b'\\x00\\xff'\n",
			[]file{{"a", "1"}, {"b", "\x00\xff"}},
			`"path":"b","id":`,
		},
		{
			"the path of the call", "await write(path='x.txt')\nprint(open('x.txt').read())", `{"artifact": {"content": "x"}}`, "x\n",
			[]file{{"x.txt", "x"}},
			`"path":"x.txt","id":`,
		},
		{
			"a path outside", "print((await write())['artifact']['path'], open('etc/x').read())", `{"artifact": {"path": "../../etc/x", "content": "x"}}`,
			"etc/x x\n",
			[]file{{"etc/x", "x"}},
			`"path":"etc/x","asked":"../../etc/x","id":`,
		},
		{
			"a file that the program changes", "await write()\nopen('x', 'a').write('y')\nprint('done')", `{"artifact": {"path": "x", "content": "x"}}`,
			"done\n",
			[]file{{"x", "xy"}},
			`"path":"x","id":`,
		},
		{"a file that the program deletes", "await write()\nos.remove('x')\nprint('done')", `{"artifact": {"path": "x", "content": "x"}}`, "done\n", nil, `"path":"x","id":`},
		{
			"a link at the name", "os.symlink('/etc/hostname', 'x')\nawait write()\nprint(os.path.islink('x'), open('x').read())",
			`{"artifact": {"path": "x", "content": "x"}}`, "False x\n",
			[]file{{"x", "x"}},
			`"path":"x","id":`,
		},
		{
			"a directory at the name", "os.mkdir('report.md')\n" + harness.Py(failing), `{"artifact": {"content": "x"}}`,
			"artifact_failed the result hands over the file report.md, which cannot be kept: the workspace has no place for it: Is a directory\n['report.md']\n",
			[]file{{"report.md/.dirkeep", ""}},
			`"path":"report.md","error":"the workspace has no place for it: Is a directory"`,
		},
		{
			"through a link", "os.symlink('/tmp', 'dir')\n" + harness.Py(failing), `{"artifact": {"path": "dir/x", "content": "x"}}`,
			"artifact_failed the result hands over the file dir/x, which cannot be kept: the workspace has no place for it: Not a directory\n['dir']\n",
			nil, `"path":"dir/x","error":"the workspace has no place for it: Not a directory"`,
		},
		{
			"broken base64", harness.Py(failing), `{"artifact": {"base64": "%"}}`,
			"artifact_failed the result hands over the file report.md, which cannot be kept: artifact.base64 is not valid base64\n[]\n",
			nil, `"path":"report.md","error":"artifact.base64 is not valid base64"`,
		},
		{
			"no content", harness.Py(failing), `{"artifact": {"path": "x"}}`,
			"artifact_failed the result hands over a file and is wrong: artifact has neither content nor base64\n[]\n", nil, "",
		},
		{
			"too many files", `
				for n in range(51):
				    try:
				        await write(path=f"{n}/x")
				    except ToolExecutionError as e:
				        print(n, e)
				    else:
				        os.remove(f"{n}/x")
				        os.rmdir(f"{n}")
			`, `{"artifact": {"content": "x"}}`, "50 an execution may be handed at most 50 files, and has 50 already\n", nil, `"path":"49/x","id":`,
		},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.Settings{"MAX_ROUNDS": "60"}).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				p := harness.Program{Code: "import os\n" + harness.Py(tc.code), Tools: []harness.Tool{{Name: "write", Envelope: true}}}
				a, _ := c.Run(t, p, harness.Value(`{"ok": true, "error": null, "ret": `+tc.ret+`}`))
				a.Completes(t, tc.stdout)
				j := harness.Journal{ID: a.Execution()}
				if err := j.Tells(t.Context(), c, a); err != nil {
					t.Fatal(err)
				}
				tellsOfArtifact(t, &j, tc.event)
				var ids []string
				for _, f := range a.Files {
					ids = append(ids, f.Name)
				}
				if len(a.Files) != len(tc.stored) {
					t.Fatalf("the answer has the files %q, want %d", ids, len(tc.stored))
				}
				for i, want := range tc.stored {
					if got := c.Download(t, a.Files[i].FileRef); a.Files[i].Name != want.name || got != want.content || a.Files[i].Inherited {
						t.Errorf("the file %d is %s with %q, want %+v", i, a.Files[i].Name, got, want)
					}
				}
			})
		}
	})
}

// TestArtifactsWithoutAPlace hands over files that the workspace has no place for, until they would have filled
// the client's quota several times: none of them counts, and none is in the session.
func TestArtifactsWithoutAPlace(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, harness.Settings{"FILE_SIZE": "1MB", "OUTPUT_FILE_SIZE": "1MB", "FILES_QUOTA": "1500kB"}).Alice()
		a, _ := c.Run(t, harness.Program{
			Code: "import os\nos.mkdir('report.md')\n" + harness.Py(`
				for n in range(6):
				    try:
				        await write(path="report.md")
				    except ToolExecutionError as e:
				        print(str(e).rpartition(": ")[2])
				os.rmdir("report.md")
				print((await write(path="report.md"))["artifact"]["path"])
			`),
			Tools: []harness.Tool{{Name: "write", Envelope: true}},
		}, harness.Value(`{"ok": true, "error": null, "ret": {"artifact": {"content": "`+strings.Repeat("x", 600_000)+`"}}}`))
		a.Completes(t, strings.Repeat("Is a directory\n", 6)+"report.md\n")
		if list := c.Files(t, http.MethodGet, "/files/"+a.Session); strings.Count(list.Body, a.Session) != 1 {
			t.Errorf("the session has %v, want one file", list)
		}
	})
}

// tellsOfArtifact checks that a journal tells of a file that was handed over, before the end of its call,
// and nowhere has its content.
func tellsOfArtifact(t *testing.T, j *harness.Journal, want string) {
	t.Helper()
	found, last := want == "", ""
	for _, e := range j.Events {
		if e.Type == "artifact.stored" {
			var members struct{ Call string }
			if err := json.Unmarshal([]byte(e.Raw), &members); err != nil {
				t.Fatal(err)
			}
			found, last = found || strings.Contains(e.Raw, want), members.Call
		}
		if e.Type == "call.completed" && (e.Call != last || strings.Contains(string(e.Output), `"content"`) || strings.Contains(string(e.Output), `"base64"`)) {
			t.Errorf("a call has ended with %s after the artifact of %q", e.Raw, last)
		}
	}
	if !found {
		t.Errorf("the journal has no artifact.stored with %s: %v", want, j)
	}
}
