package tests

import (
	"errors"
	"strings"
	"testing"
)

// TestFilesAndKilledServers kills the server between the pause and the end of programs
// that have files, and after it.
func TestFilesAndKilledServers(t *testing.T) {
	overSetups(t, eachStore|ordinaryUser, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		restart := func() {
			t.Helper()
			if err := errors.Join(server.kill(), server.start()); err != nil {
				t.Fatal(err)
			}
		}
		c := server.alice()
		files := []fileRef{
			c.upload(t, one("kept", strings.Repeat("k", 3_000_000))), c.upload(t, one("changed", "old")), c.upload(t, one("gone", "old")),
			c.upload(t, one("fixed", "old").with("read_only", "true")),
		}
		pause := c.pause(t, program{Files: files, Tools: tools("ask"), Code: py(`
			open("early", "w").write("early")
			open("fixed-not", "w").write(open("fixed").read())
			await ask(n=1)
			open("changed", "w").write("new")
			os.remove("gone")
			open("late", "wb").write(bytes(2_000_000))
			raise SystemExit(4)
		`)})
		restart()
		c = server.alice()
		end := c.post(t, pause.answers(echo))
		end.fails(t, 200, "Sandbox exited with code 4")
		end.leaves(t, "changed modified", "early", "fixed inherited", "fixed-not", "kept inherited", "late")
		if len(end.Deleted) != 1 || end.Deleted[0] != "gone" {
			t.Errorf("deleted_files = %q, want gone", end.Deleted)
		}
		restart()
		c = server.alice()
		if again := c.post(t, pause.answers(echo)); again.raw != end.raw {
			t.Errorf("the same request again: got %v, want %v", again, end)
		}
		for name, want := range map[string]string{"changed": "new", "early": "early", "fixed-not": "old", "late": string(make([]byte, 2_000_000))} {
			if got := c.download(t, end.file(t, name).fileRef); got != want {
				t.Errorf("%s is %.100q, want %.100q", name, got, want)
			}
		}
		c.post(t, program{Session: end.Session, Code: "print(sorted(os.listdir()))"}).completes(t, "['changed', 'early', 'fixed-not', 'late']\n")
	})
}

// TestKeyedStartWithFiles repeats a start with files, also when a server died in between.
func TestKeyedStartWithFiles(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		f := server.alice().upload(t, one("x", "x"))
		p := program{Files: []fileRef{f}, Tools: tools("ask"), Code: "open('y', 'w').write(open('x').read())\nawait ask()\nprint('end')"}
		pause := server.alice().postKeyed(t, "key-of-files", p)
		if again := server.alice().postKeyed(t, "key-of-files", p); pause.Status != "tool_call_required" || again.raw != pause.raw {
			t.Fatalf("got %v, then %v; want one pause", pause, again)
		}
		if err := errors.Join(server.kill(), server.start()); err != nil {
			t.Fatal(err)
		}
		if again := server.alice().postKeyed(t, "key-of-files", p); again.raw != pause.raw {
			t.Errorf("got %v, want %v again", again, pause)
		}
		end := server.alice().post(t, pause.answers(echo))
		end.completes(t, "end\n")
		end.leaves(t, "x inherited", "y")
	})
}
