package files

import (
	"errors"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestFilesAndKilledServers kills the server while a program with files is paused, and again
// after the program has ended.
func TestFilesAndKilledServers(t *testing.T) {
	harness.OverSetups(t, harness.EachStore|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		restart := func() {
			t.Helper()
			if err := errors.Join(server.Kill(), server.Start()); err != nil {
				t.Fatal(err)
			}
		}
		c := server.Alice()
		files := []harness.FileRef{
			c.Upload(t, harness.OneFile("kept", strings.Repeat("k", 3_000_000))), c.Upload(t, harness.OneFile("changed", "old")), c.Upload(t, harness.OneFile("gone", "old")),
			c.Upload(t, harness.OneFile("fixed", "old").With("read_only", "true")),
		}
		pause := c.Pause(t, harness.Program{Files: files, Tools: harness.Tools("ask"), Code: harness.Py(`
			open("early", "w").write("early")
			open("fixed-not", "w").write(open("fixed").read())
			await ask(n=1)
			open("changed", "w").write("new")
			os.remove("gone")
			open("late", "wb").write(bytes(2_000_000))
			raise SystemExit(4)
		`)})
		restart()
		c = server.Alice()
		end := c.Post(t, pause.Continue(harness.Echo))
		end.Fails(t, 200, "Sandbox exited with code 4")
		end.Leaves(t, "changed modified", "early", "fixed inherited", "fixed-not", "kept inherited", "late")
		if len(end.Deleted) != 1 || end.Deleted[0] != "gone" {
			t.Errorf("deleted_files = %q, want gone", end.Deleted)
		}
		restart()
		c = server.Alice()
		if again := c.Post(t, pause.Continue(harness.Echo)); again.Raw != end.Raw {
			t.Errorf("the same request again: got %v, want %v", again, end)
		}
		for name, want := range map[string]string{"changed": "new", "early": "early", "fixed-not": "old", "late": string(make([]byte, 2_000_000))} {
			if got := c.Download(t, end.File(t, name).FileRef); got != want {
				t.Errorf("%s is %.100q, want %.100q", name, got, want)
			}
		}
		c.Post(t, harness.Program{Session: end.Session, Code: "print(sorted(os.listdir()))"}).Completes(t, "['changed', 'early', 'fixed-not', 'late']\n")
	})
}

// TestKeyedStartWithFiles repeats a start that has files and an idempotency key, also after the
// server was killed.
func TestKeyedStartWithFiles(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		f := server.Alice().Upload(t, harness.OneFile("x", "x"))
		p := harness.Program{Files: []harness.FileRef{f}, Tools: harness.Tools("ask"), Code: "open('y', 'w').write(open('x').read())\nawait ask()\nprint('end')"}
		pause := server.Alice().PostKeyed(t, "key-of-files", p)
		if again := server.Alice().PostKeyed(t, "key-of-files", p); pause.Status != "tool_call_required" || again.Raw != pause.Raw {
			t.Fatalf("got %v, then %v; want one pause", pause, again)
		}
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		if again := server.Alice().PostKeyed(t, "key-of-files", p); again.Raw != pause.Raw {
			t.Errorf("got %v, want %v again", again, pause)
		}
		end := server.Alice().Post(t, pause.Continue(harness.Echo))
		end.Completes(t, "end\n")
		end.Leaves(t, "x inherited", "y")
	})
}
