package artifact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/engine/artifact"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ result, files, rest string }{
		{`{"a": 1.0}`, "", `{"a": 1.0}`},
		{`[1]`, "", `[1]`},
		{`{"artifact": "x"}`, "", `{"artifact": "x"}`},
		{`{"artifact": {"mime": "text/plain"}}`, "", `{"artifact": {"mime": "text/plain"}}`},
		{`{"n": 1.0, "artifact": {"path": "a.md", "content": "é\n", "mime": "text/markdown"}}`, "a.md text/markdown é\n", `{"n":1.0,"artifact":{"path":"a.md","mime":"text/markdown"}}`},
		{`{"artifact": {"content": "x", "content": "y"}}`, "fallback.txt y", `{"artifact":{"path":"fallback.txt"}}`},
		{`{"artifact": {"path": "/mnt/data/./a//b.bin", "base64": "AGE="}}`, "a/b.bin \x00a", `{"artifact":{"path":"a/b.bin"}}`},
		{`{"artifact": {"path": "../../etc/x", "content": "x"}}`, "etc/x (../../etc/x) x", `{"artifact":{"path":"etc/x"}}`},
		{`{"artifact": {"path": "/proc/self/mem", "content": "x"}}`, "proc/self/mem (/proc/self/mem) x", `{"artifact":{"path":"proc/self/mem"}}`},
		{`{"artifact": {"path": "/mnt/data/../x", "content": "x"}}`, "x (/mnt/data/../x) x", `{"artifact":{"path":"x"}}`},
		{
			`{"artifact_type": "files", "files": [{"path": "a", "content": "1"}, {"path": "b", "base64": "Mg==", "k": [1]}]}`,
			"a 1, b 2", `{"artifact_type":"files","files":[{"path":"a"},{"path":"b","k":[1]}]}`,
		},
		{`{"artifact_type": "files", "files": []}`, "", `{"artifact_type": "files", "files": []}`},
	} {
		files, rest, err := artifact.Of(json.RawMessage(c.result), "fallback.txt")
		var words []string
		for _, f := range files {
			content, err := f.Content()
			if err != nil {
				t.Errorf("%s: %v", c.result, err)
			}
			parts := []string{f.Path}
			if f.Asked != "" {
				parts = append(parts, "("+f.Asked+")")
			}
			if f.Type != "" {
				parts = append(parts, f.Type)
			}
			words = append(words, strings.Join(append(parts, string(content)), " "))
		}
		if got := strings.Join(words, ", "); err != nil || got != c.files || string(rest) != c.rest {
			t.Errorf("%s: got %q and %s, %v, want %q and %s", c.result, got, rest, err, c.files, c.rest)
		}
	}
}

// TestMistakes has one mistake in each result.
func TestMistakes(t *testing.T) {
	one := func(members string) string { return `{"artifact": {` + members + `}}` }
	many := strings.Repeat(`{"content":"x"},`, artifact.MaxFiles)
	for result, want := range map[string]string{
		one(`"path": "x"`): "artifact has neither content nor base64",
		one(`"path": "x", "content": "a", "base64": "YQ=="`):                                             "artifact has both content and base64",
		one(`"path": "x", "content": 5`):                                                                 "artifact must have its content as a string",
		one(`"path": "x", "content": ""`):                                                                "artifact is empty",
		one(`"path": "x", "base64": "%%%"`):                                                              "artifact.base64 is not valid base64",
		one(`"path": "x", "base64": "YQ"`):                                                               "artifact.base64 is not valid base64",
		one(`"content": "x"`):                                                                            "artifact has no path, and the call had none",
		one(`"path": 5, "content": "x"`):                                                                 "artifact.path must be a string",
		one(`"path": ".", "content": "x"`):                                                               "artifact.path names no file",
		one(`"path": "a/", "content": "x"`):                                                              "artifact.path names no file",
		one(`"path": "a\nb", "content": "x"`):                                                            "artifact.path: the name must not contain control characters or backslashes",
		one(`"path": "` + strings.Repeat("a/", 10) + `b", "content": "x"`):                               "artifact.path: the name must not be deeper than 10 segments",
		one(`"path": "` + strings.Repeat("a", 1025) + `", "content": "x"`):                               "artifact.path must have at most 1024 bytes",
		one(`"path": "x", "content": "x", "mime": "a\r\nb: c"`):                                          "artifact.mime must be a media type",
		one(`"path": "x", "content": "x", "mime": 5`):                                                    "artifact.mime must be a media type of at most 128 bytes",
		one(`"path": "x", "base64": "` + strings.Repeat("AAAA", 9<<20) + `"`):                            "artifact is larger than 26214400 bytes",
		one(`"path": "x", "content": "` + strings.Repeat("a", 26<<20) + `"`):                             "artifact is larger than 26214400 bytes",
		`{"artifact_type": "files"}`:                                                                     `files must be a list, since artifact_type is "files"`,
		`{"artifact_type": "files", "files": [5]}`:                                                       "files[0] must be an object",
		`{"artifact_type": "files", "files": [{}]}`:                                                      "files[0] has neither path nor content nor base64",
		`{"artifact_type": "files", "files": [` + many + `5]}`:                                           "files has 51 entries; an execution may be handed at most 50 files",
		`{"artifact_type": "files", "files": [{"path":"a","content":"x"},{"path":"./a","content":"x"}]}`: "files[1].path names a file that the result has already",
	} {
		files, _, err := artifact.Of(json.RawMessage(result), "")
		if err == nil && len(files) == 1 {
			_, err = files[0].Content()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%.200s: got %v, want %q", result, err, want)
		}
	}
}

func TestPathIn(t *testing.T) {
	for input, want := range map[string]string{`{"path": "a"}`: "a", `{"Path": "a"}`: "", `{"path": 5}`: "", `{}`: "", `{"path": "` + strings.Repeat("a", 1025) + `"}`: ""} {
		if got := artifact.PathIn([]byte(input)); got != want {
			t.Errorf("%.100s: got %q, want %q", input, got, want)
		}
	}
}
