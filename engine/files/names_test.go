package files_test

import (
	"errors"
	"strings"
	"testing"

	"fermata/engine/files"
)

func TestCheckName(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("d/", 10), "/")
	for _, name := range []string{
		"a", "a.csv", "out/plot.png", "...", "..a", "a..", " a ", "名前 ü.txt", "a:b*?\"<>|", "-rf", "~", "$(x)", "%2e%2e/a",
		"family \U0001F468\u200d\U0001F469", deep, strings.Repeat("名", 256),
	} {
		if err := files.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
	for name, want := range map[string]string{
		"":                       "must not be empty",
		"a\xff":                  "must be valid UTF-8",
		strings.Repeat("a", 257): "must not be longer than 256 characters",
		"/etc/passwd":            "must be a relative path",
		"//a":                    "must be a relative path",
		"..":                     "must not contain empty, . or .. segments",
		"../a":                   "must not contain empty, . or .. segments",
		"a/../b":                 "must not contain empty, . or .. segments",
		"a/..":                   "must not contain empty, . or .. segments",
		"./a":                    "must not contain empty, . or .. segments",
		".":                      "must not contain empty, . or .. segments",
		"a//b":                   "must not contain empty, . or .. segments",
		"a/":                     "must not end with a slash",
		`a\b`:                    "must not contain control characters or backslashes",
		"a\x00b":                 "must not contain control characters or backslashes",
		"a\nb":                   "must not contain control characters or backslashes",
		"a\x7f":                  "must not contain control characters or backslashes",
		"a\u0085b":               "must not contain control characters or backslashes",
		"a\u2028b":               "must not contain control characters or backslashes",
		"a\u202egnp.exe":         "must not contain control characters or backslashes",
		"a\u2066b":               "must not contain control characters or backslashes",
		deep + "/d":              "must not be deeper than 10 segments",
	} {
		err := files.CheckName(name)
		got, ok := errors.AsType[*files.NameError](err)
		if !ok || got.Reason != want {
			t.Errorf("CheckName(%q) = %v, want %q", name, err, want)
		}
	}
}

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	used := map[rune]bool{}
	for range 1000 {
		id := files.NewID()
		if !files.ValidID(id) || len(id) != 21 {
			t.Fatalf("%q is no id", id)
		}
		seen[id] = true
		for _, r := range id {
			used[r] = true
		}
	}
	if len(seen) != 1000 || len(used) != 64 {
		t.Errorf("1000 ids: %d differ and have %d characters, want 1000 and 64", len(seen), len(used))
	}
}
