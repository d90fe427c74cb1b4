package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The dashboard shows metrics that the server has, and leaves none of its own out.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatal("the dashboard is not JSON")
	}
	shown := map[string]bool{}
	for _, name := range regexp.MustCompile(`fermata_[a-z_]+`).FindAllString(string(text), -1) {
		shown[strings.TrimSuffix(name, "_bucket")] = true
	}
	has := map[string]bool{}
	for _, line := range scrape(t, observed()) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "# HELP "), " ")
		name, _, _ = strings.Cut(name, "{")
		has[name] = true
		has[strings.TrimSuffix(name, "_count")] = true
	}
	for name := range shown {
		if !has[name] {
			t.Errorf("the dashboard shows %s, which the server does not have", name)
		}
	}
	// These are in the figures beside them.
	left := map[string]bool{"fermata_pool_size": true, "fermata_pool_made_total": true, "fermata_pool_failures_total": true, "fermata_pool_waiting": true}
	for name := range has {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_sum")
		if strings.HasPrefix(name, "fermata_") && !shown[base] && !shown[name] && !left[name] {
			t.Errorf("the dashboard leaves out %s", name)
		}
	}
}
