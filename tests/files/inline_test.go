package files

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// inline is a start whose files are written out in the request.
type inline struct {
	Code    string           `json:"code"`
	Lang    string           `json:"lang,omitempty"`
	Session string           `json:"session_id,omitempty"`
	Files   []map[string]any `json:"files"`
	Tools   []harness.Tool   `json:"tools,omitempty"`
}

const show = "for n in sorted(os.listdir()): print(n, open(n, 'rb').read())\n"

// TestInlineFiles gives programs files that stand in the request.
func TestInlineFiles(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		for _, path := range []string{harness.Programmatic, "/exec"} {
			a, err := c.Request(t.Context(), http.MethodPost, path, nil, inline{Code: "import os\n" + show + "open('a.csv', 'a').write('3\\n')", Lang: "py", Files: []map[string]any{
				{"name": "a.csv", "content": "ü\n1\n"},
				{"name": "b", "content": "AP8=", "encoding": "base64"},
				{"name": "c", "content": "", "encoding": "utf-8"},
				{"filename": "twice", "content": "first"},
				{"name": "twice", "content": "second"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if want := `a.csv b'\xc3\xbc\n1\n'` + "\n" + `b b'\x00\xff'` + "\nc b''\ntwice b'second'\n"; a.Stdout != want {
				t.Errorf("%s: got %v, want the output %q", path, a, want)
			}
			a.Leaves(t, "a.csv modified", "b inherited", "c inherited", "twice inherited")
			if b := a.File(t, "b"); b.Storage != a.Session || b.Size == nil || *b.Size != 2 || c.Download(t, b.FileRef) != "\x00\xff" {
				t.Errorf("%s: got %+v, want a file of the session that can be downloaded", path, b)
			}
			// They stay in the session, as uploaded files do.
			c.Post(t, harness.Program{Session: a.Session, Code: "print(sorted(os.listdir()), open('a.csv').read())"}).
				Completes(t, "['a.csv', 'b', 'c', 'twice'] ü\n1\n3\n\n")
		}
		stored := c.Upload(t, harness.OneFile("stored", "old"))
		mixed := c.Post(t, inline{Session: stored.Storage, Code: show, Files: []map[string]any{
			{"id": stored.ID, "session_id": stored.Storage, "name": "x"}, {"name": "y", "content": "new"},
		}})
		mixed.Completes(t, "x b'old'\ny b'new'\n")
		if mixed.Session != stored.Storage || mixed.File(t, "y").Storage != stored.Storage {
			t.Errorf("got %v, want the new file in the session of the request", mixed)
		}
		foreign := server.Bob().Post(t, inline{Session: stored.Storage, Code: show, Files: []map[string]any{{"name": "y", "content": "his"}}})
		foreign.Completes(t, "y b'his'\n")
		if foreign.Session == stored.Storage || foreign.File(t, "y").Storage != foreign.Session {
			t.Errorf("got %v, want a new session for another principal", foreign)
		}
		paused := c.Pause(t, inline{Code: "await f()\nprint(open('a').read())", Tools: harness.Tools("f"), Files: []map[string]any{{"name": "a", "content": "kept"}}})
		c.Post(t, paused.Continue(harness.Value("1"))).Completes(t, "kept\n")
	})
}

// TestInlineFilesAndRetries starts programs with a key and files in the request: a retry stores nothing, and
// neither does a start that is refused.
func TestInlineFilesAndRetries(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"FILE_SIZE": "1000", "OUTPUT_FILE_SIZE": "1000", "DISK": "1MB"})
		c := server.Alice()
		start := inline{Code: "await f()", Tools: harness.Tools("f"), Files: []map[string]any{{"name": "a", "content": "x"}}}
		first := c.PostKeyed(t, "key", start)
		stored, err := server.StoredFiles()
		if err != nil || len(stored) != 3 { // the owner of the session, a description and contents
			t.Fatalf("the store has %q, %v, want one file", stored, err)
		}
		for range 2 {
			if again := c.PostKeyed(t, "key", start); again.Raw != first.Raw {
				t.Errorf(harness.AskedAgain, again, first)
			}
		}
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		c = server.Alice()
		if again := c.PostKeyed(t, "key", start); again.Raw != first.Raw {
			t.Errorf("after a crash: "+harness.AskedAgain, again, first)
		}
		for name, refused := range map[string]struct {
			files []map[string]any
			code  int
			text  string
		}{
			"a large file": {
				[]map[string]any{{"name": "a", "content": "x"}, {"name": "b", "content": strings.Repeat("x", 1001)}},
				413, "files[1].content has more than 1000 bytes (FERMATA_FILE_SIZE)",
			},
			"a large file in base64": {
				[]map[string]any{{"name": "b", "content": strings.Repeat("AAAA", 334), "encoding": "base64"}},
				413, "files[0].content has more than 1000 bytes (FERMATA_FILE_SIZE)",
			},
			"too much for the disk": {slices.Repeat([]map[string]any{{"name": "a", "content": "x"}}, 0), 413, "session_input_too_large"},
			"an unknown file":       {[]map[string]any{{"name": "a", "content": "x"}, {"id": unknownID, "session_id": unknownID, "name": "b"}}, 403, "Unauthorized file reference"},
		} {
			if name == "too much for the disk" {
				for i := range 300 {
					refused.files = append(refused.files, map[string]any{"name": strconv.Itoa(i), "content": "x"})
				}
			}
			c.Post(t, inline{Code: "print(1)", Files: refused.files}).Fails(t, refused.code, refused.text)
		}
		after, err := server.StoredFiles()
		if err != nil {
			t.Fatal(err)
		}
		// Two claims of refused starts stay, which say that nobody else can have their sessions.
		after = slices.DeleteFunc(after, func(name string) bool { return strings.HasPrefix(name, "claims/") })
		if len(after) != 2 {
			t.Errorf("the store has %q, want the file of the first start", after)
		}
	})
}

// TestRefusedInlineFiles sends files in the request that the server refuses.
func TestRefusedInlineFiles(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for files, text := range map[string]string{
			`[{"content":"x"}]`:                                              "files[0].name is missing",
			`[{"name":null,"content":"x"}]`:                                  "files[0].name is missing",
			`[{"name":1,"content":"x"}]`:                                     "files[0].name must be a string",
			`[{"name":"","content":"x"}]`:                                    "files[].name must not be empty",
			`[{"name":"/etc/passwd","content":"x"}]`:                         "files[].name must be a relative path",
			`[{"name":"a/_ptc_history.json","content":"x"}]`:                 `files[].name "a/_ptc_history.json" is reserved for PTC runtime and cannot be supplied by callers`,
			`[{"name":"a","content":5}]`:                                     "files[0].content must be a string",
			`[{"name":"a","content":{}}]`:                                    "files[0].content must be a string",
			`[{"name":"a","content":"x"},{"name":"b","content":["x"]}]`:      "files[1].content must be a string",
			`[{"name":"a","content":"a?","encoding":"base64"}]`:              "files[0].content is not base64 of the standard alphabet with padding",
			`[{"name":"a","content":"AAA","encoding":"base64"}]`:             "files[0].content is not base64 of the standard alphabet with padding",
			`[{"name":"a","content":"x","encoding":"latin-1"}]`:              "files[0].encoding must be base64 or utf-8",
			`[{"name":"a","content":"x","encoding":1}]`:                      "files[0].encoding must be base64 or utf-8",
			`[{"name":"a","content":"\ud800"}]`:                              "files[0].content has half of a surrogate pair, which UTF-8 cannot write",
			`[{"name":"a","encoding":"base64"}]`:                             "files[0].encoding goes with content, which is missing",
			`[{"name":"a","content":"x","id":"` + unknownID + `"}]`:          "files[0] has content and id: it is either a new file or a stored one",
			`[{"name":"a","content":"x","session_id":"x"}]`:                  "files[0] has content and session_id: it is either a new file or a stored one",
			`[{"name":"a","content":"x","kind":"agent"}]`:                    "files[0].kind must be user, since the file has content: new files belong to the user",
			`[{"name":"a","base64":"eA=="}]`:                                 `"base64" in files[0] is not known; did you mean content?`,
			`["` + unknownID + `"]`:                                          "files[0] must be an object: id, session_id and name of a stored file, or name and content of a new one",
			`[{"name":"a"}]`:                                                 "files[0].session_id is missing",
			`[{"id":"` + unknownID + `","name":"a"}]`:                        "files[0].session_id is missing",
			`[{"name":"a","session_id":"` + unknownID + `"}]`:                "Unauthorized file reference",
			`[{"name":"a","kind":"agent","session_id":"` + unknownID + `"}]`: "files[0].resource_id is missing: whose file it is, if there is no id",
		} {
			code := 400
			if text == "Unauthorized file reference" {
				code = 403
			}
			c.Post(t, harness.RequestJSON(`"files":`+files)).Fails(t, code, text)
		}
	})
}

// TestFilesByName refers to files by their names, and by what the answer to an upload says.
func TestFilesByName(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		first := c.Post(t, harness.Program{Code: "open('a.csv', 'w').write('1')\nopen('b', 'w').write('b')"})
		c.Post(t, harness.Program{Session: first.Session, Code: "open('a.csv', 'w').write('2')"}).Completes(t, "")
		byName := harness.FileRef{Name: "a.csv", Session: first.Session}
		raw := func(f harness.FileRef) map[string]any { return map[string]any{"name": f.Name, "session_id": f.Session} }
		c.Post(t, inline{Code: show, Files: []map[string]any{raw(byName)}}).Completes(t, "a.csv b'2'\n")
		server.Bob().Post(t, inline{Code: show, Files: []map[string]any{raw(byName)}}).Fails(t, 403, "Unauthorized file reference")
		c.Post(t, inline{Code: show, Files: []map[string]any{raw(byName.As("c"))}}).Fails(t, 403, "Unauthorized file reference")

		var upload struct {
			Session string            `json:"session_id"`
			Files   []json.RawMessage `json:"files"`
		}
		r := c.UploadTo(t, "/upload", harness.OneFile("x", "uploaded"))
		if err := json.Unmarshal([]byte(r.Body), &upload); err != nil || len(upload.Files) != 1 {
			t.Fatal(r, err)
		}
		entry := map[string]any{}
		if err := json.Unmarshal(upload.Files[0], &entry); err != nil {
			t.Fatal(err)
		}
		// Older servers told neither id nor name nor session in the entry.
		c.Post(t, inline{Code: show, Files: []map[string]any{{"fileId": entry["fileId"], "filename": entry["filename"], "session_id": upload.Session}}}).
			Completes(t, "x b'uploaded'\n")
	})
}
