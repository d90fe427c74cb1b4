package files

import (
	"crypto/rand"
	"regexp"
)

// idPattern matches the ids of sessions and of files. Ids contain no dot, because the keys
// of the bucket, and clients, separate the ids of session and file with a dot.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`)

// ValidID reports whether id has the form of an id of a session or of a file: 21 characters
// from A-Z, a-z, 0-9, _ and -.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// NewID returns a new random id for a session or for a file. Nobody can guess it.
func NewID() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	id := make([]byte, 21)
	_, _ = rand.Read(id) // It never fails.
	for i, b := range id {
		id[i] = alphabet[b%byte(len(alphabet))]
	}
	return string(id)
}
