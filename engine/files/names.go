package files

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a name, in characters and in directories.
const (
	maxName  = 256
	maxDepth = 10
)

// A NameError says what is wrong with a name. Its Reason is for the client and goes on
// where "the name" stops.
type NameError struct{ Reason string }

func (e *NameError) Error() string { return "files: name " + e.Reason }

// CheckName returns a *NameError if a file may not have the name. Nothing is repaired:
// two spellings would become one file.
func CheckName(name string) error {
	reason := ""
	switch segments := strings.Split(name, "/"); {
	case name == "":
		reason = "must not be empty"
	case !utf8.ValidString(name):
		reason = "must be valid UTF-8"
	case utf8.RuneCountInString(name) > maxName:
		reason = "must not be longer than 256 characters"
	case strings.HasPrefix(name, "/"):
		reason = "must be a relative path"
	case strings.ContainsFunc(name, misleading):
		reason = "must not contain control characters or backslashes"
	case strings.HasSuffix(name, "/"):
		reason = "must not end with a slash"
	case strings.Contains("/"+name+"/", "//"), strings.Contains("/"+name+"/", "/./"), strings.Contains("/"+name+"/", "/../"):
		reason = "must not contain empty, . or .. segments"
	case len(segments) > maxDepth:
		reason = "must not be deeper than 10 segments"
	default:
		return nil
	}
	return &NameError{reason}
}

// misleading reports whether a name with r could look like another one, break a line
// where it is printed or, elsewhere, be taken apart differently.
func misleading(r rune) bool {
	return r == '\\' || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// idPattern matches the ids of sessions and files. It has no dot: keys and clients cut
// at dots.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`)

// ValidID reports whether id could be that of a session or of a file.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// NewID returns an id that nobody can guess, for a session or for a file.
func NewID() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	id := make([]byte, 21)
	_, _ = rand.Read(id) // It never fails.
	for i, b := range id {
		id[i] = alphabet[b%byte(len(alphabet))]
	}
	return string(id)
}

// account returns what stands in keys for those who share a quota with the owner. Anybody
// can make up agents and skills, so that a tenant's have one together.
func (o Owner) account() string {
	if o.Kind == "user" {
		return o.key()
	}
	return Owner{Tenant: o.Tenant, Kind: "shared"}.key()
}

// key returns what stands for the owner in keys and claims. It is stored and may not
// change. Lengths keep apart owners whose fields run together to the same text.
func (o Owner) key() string {
	h := sha256.New()
	for _, field := range []string{o.Tenant, o.Kind, o.ID} {
		_ = binary.Write(h, binary.BigEndian, int64(len(field))) // A hash never fails.
		h.Write([]byte(field))
	}
	_ = binary.Write(h, binary.BigEndian, int64(o.Version))
	return hex.EncodeToString(h.Sum(nil))
}
