package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/engine/core"
)

// TestReasonsOnPages checks that the pages which list the reasons of failures have all of them.
func TestReasonsOnPages(t *testing.T) {
	for _, page := range []string{"api.md", "logs.md", "metrics.md"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, reason := range core.Reasons() {
			if !strings.Contains(string(text), "`"+string(reason)+"`") {
				t.Errorf("docs/%s lacks the reason %s", page, reason)
			}
		}
	}
}
