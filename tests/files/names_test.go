package files

import (
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestNamesWithAccents gives files whose names have accents as characters of their own, as macOS writes them.
func TestNamesWithAccents(t *testing.T) {
	const apart, composed = "U\u0308bersicht.txt", "\u00dcbersicht.txt"
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		code := "print(open('" + composed + "').read())"
		c.Post(t, inline{Code: code, Files: []map[string]any{{"name": apart, "content": "x"}}}).Completes(t, "x\n")
		f := c.Upload(t, harness.OneFile(apart, "y"))
		c.Post(t, harness.Program{Session: f.Storage, Code: code}).Completes(t, "y\n")
		c.Post(t, harness.Program{Code: code, Files: []harness.FileRef{f.As(apart)}}).Completes(t, "y\n")
		for _, name := range []string{apart, composed} {
			byName := []map[string]any{{"session_id": f.Storage, "name": name}}
			c.Post(t, inline{Code: code, Files: byName}).Completes(t, "y\n")
		}
	})
}

// TestReferenceToAFileThatIsGone refers to a file that was deleted. Only its owner is told which.
func TestReferenceToAFileThatIsGone(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		kept := server.Alice().Upload(t, harness.OneFile("kept.csv", "1"))
		gone := server.Alice().Upload(t, harness.OneFile("a.csv", "1"))
		if r := server.Alice().Files(t, http.MethodDelete, "/files/"+gone.Storage+"/"+gone.ID); r.HTTPStatus != http.StatusOK {
			t.Fatalf("delete: %+v", r)
		}
		files := []map[string]any{
			{"name": "new", "content": "x"},
			{"id": kept.ID, "session_id": kept.Storage, "name": "kept.csv"},
			{"id": gone.ID, "session_id": gone.Storage, "name": "a.csv"},
		}
		const detail = `"detail":"files[2] (a.csv) does not exist any more: it was deleted, or has expired; upload it again"`
		for _, path := range []string{harness.Programmatic, "/exec"} {
			for who, c := range map[string]harness.Client{"owner": server.Alice(), "stranger": server.Bob()} {
				a, err := c.Request(t.Context(), http.MethodPost, path, nil, inline{Code: "1", Lang: "py", Files: files})
				if err != nil {
					t.Fatal(err)
				}
				if a.HTTPStatus != http.StatusForbidden || a.Error != "Unauthorized file reference" {
					t.Errorf("%s, %s: got %v, want 403", path, who, a)
				}
				if told := strings.Contains(a.Raw, detail); told != (who == "owner") {
					t.Errorf("%s, %s: got %s", path, who, a.Raw)
				}
			}
		}
	})
}
