package librechat

import (
	"slices"
	"strings"
)

// Bounds on the unknown names that are kept of a request: how many different ones of each kind of
// object, and of how many bytes. What exceeds them passes.
const (
	maxUnknownNames = 20
	maxUnknownName  = 100
)

// unknownNames are the different names in objects of one kind that are none of its members.
type unknownNames []unknownName

type unknownName struct {
	name string
	// at is the index of the first object with the name.
	at int
}

// note adds a name that stands in the object with the index at.
func (u *unknownNames) note(name []byte, at int) {
	if len(*u) == maxUnknownNames || slices.ContainsFunc(*u, func(known unknownName) bool { return known.name == string(name) }) {
		return
	}
	*u = append(*u, unknownName{string(name), at})
}

// plainName returns a name without what tells camelCase from snake_case and kebab-case.
func plainName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, name))
}
