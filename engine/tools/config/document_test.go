package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"fermata/engine/tools/config"
)

// TestAdopt shows that a document is read once, also when the toolsets file is read again, unless the document or
// the choice of operations has changed.
func TestAdopt(t *testing.T) {
	dir := t.TempDir()
	file := func(document, toolset string) *config.File {
		for name, text := range map[string]string{"api.json": document, "t.yaml": "toolsets: {a: {openapi: {file: api.json" + toolset + "}}}"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := config.Read(filepath.Join(dir, "t.yaml"), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	reads := 0
	read := func(f *config.File) string {
		text, err := config.Once(f.Toolset("a").OpenAPI.Document, func(text []byte) (string, error) {
			reads++
			return string(text), nil
		})
		if err != nil {
			t.Error(err)
		}
		return text
	}
	before := file(`{"a": 1}`, "")
	for range 2 {
		if got := read(before); got != `{"a": 1}` || reads != 1 {
			t.Errorf("got %s after %d reads", got, reads)
		}
	}
	for _, test := range []struct {
		document, toolset string
		again             int
	}{
		{`{"a": 1}`, ", base_url: https://other.example.com", 0}, {`{"a": 2}`, "", 1}, {`{"a": 1}`, ", operations: [b]", 1}, {`{"a": 1}`, ", tags: [b]", 1},
	} {
		after, former := file(test.document, test.toolset), reads
		after.Adopt(before)
		if read(after) != test.document || reads != former+test.again {
			t.Errorf("%+v: %d reads more", test, reads-former)
		}
	}
}
