package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?s)```.*?```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// unanchored are the characters of a heading that its anchor lacks.
	unanchored = regexp.MustCompile(`[^\w\- ]`)
)

// TestLinks checks that links between the pages lead to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range append(pages, more...) {
		for _, found := range link.FindAllStringSubmatch(prose(t, page), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(found[1], "#")
			target := filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			if name == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, found[1], err)
				continue
			}
			if anchor != "" && !anchors(prose(t, target))[anchor] {
				t.Errorf("%s links to %s, but %s has no such heading", page, found[1], target)
			}
		}
	}
	if links == 0 {
		t.Error("found no link, want some")
	}
}

// prose returns a page without its blocks of code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(text), "")
}

// anchors returns what may stand behind the # of a link to a page.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		found[strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}
