package main

import (
	"slices"
	"strings"
)

// elsewhere are environment variables that other parts of this repository read: Compose, the
// tests, and clients.
var elsewhere = []string{
	"FERMATA_PORT", "FERMATA_GOMEMLIMIT", "FERMATA_SERVER_MEMORY", "FERMATA_STOP_GRACE", "FERMATA_VERSION",
	"FERMATA_URL", "FERMATA_API_KEY", "FERMATA_API_KEY_FILE",
}

// elsewherePrefixes begin the names of further ones: those of the tests, and those that Kubernetes
// sets for a service with the name fermata.
var elsewherePrefixes = []string{"FERMATA_TEST_", "FERMATA_HOSTILE_", "FERMATA_SERVICE_", "FERMATA_PORT_"}

// A stray is an environment variable that looks like a setting, but is none.
type stray struct {
	name string
	// nearest is the setting that may be meant, or empty if none is like it.
	nearest string
}

// straysIn returns the strays among environment variables, each as NAME=VALUE.
func straysIn(environ []string, settings []*setting) []stray {
	var known []string
	for _, s := range settings {
		known = append(known, s.variables...)
	}
	var found []stray
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		ours := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !ours(envPrefix) || slices.Contains(known, name) || slices.Contains(elsewhere, name) || slices.ContainsFunc(elsewherePrefixes, ours) {
			continue
		}
		found = append(found, stray{name, nearest(name, known, envPrefix)})
	}
	slices.SortFunc(found, func(a, b stray) int { return strings.Compare(a.name, b.name) })
	return found
}

// nearest returns the known name that takes the fewest changes to reach from name, or "" if all of
// them take too many to be meant. All names begin with a prefix.
func nearest(name string, known []string, prefix string) string {
	best, least := "", len(name)-len(prefix)
	for _, k := range known {
		// Half of what follows the prefix may be wrong.
		if d := distance(name, k); d < least && 2*d <= max(len(name), len(k))-len(prefix) {
			best, least = k, d
		}
	}
	return best
}

// distance returns how many characters must be put in, left out or replaced to make b of a: the
// Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// warning says what is wrong with a stray.
func (s stray) warning() string {
	if s.nearest == "" {
		return s.name + " is not a setting, and is ignored; docs/settings.md has all settings"
	}
	return s.name + " is not a setting, and is ignored; did you mean " + s.nearest + "?"
}
