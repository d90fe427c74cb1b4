// Package filename has the rules for the names of files that are stored for a client or that a program must
// produce. It does not access files.
package filename

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The limits of a name, in characters and in segments. The runner has the same limits.
const (
	maxName  = 256
	maxDepth = 10
)

// A NameError says why a file cannot have a name.
type NameError struct {
	// Reason is for the client. It continues a sentence that begins with "the name".
	Reason string
}

func (e *NameError) Error() string { return "filename: the name " + e.Reason }

// Check returns a *NameError if a file cannot have the name. Names are refused and never
// repaired, because a repair could give two files the same name. The runner applies the same
// rules to what a program leaves (python/runner/fermata/workspace.py); the cases in
// python/testdata/names.json are tested on both sides.
func Check(name string) error {
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

// Composed returns a name with each letter and its accents as one character where there is one (NFC), as programs and
// models write it. Some systems, such as macOS, take them apart.
func Composed(name string) string { return norm.NFC.String(name) }

// Same reports whether two names differ in nothing but how accents are written.
func Same(a, b string) bool { return a == b || Composed(a) == Composed(b) }

// misleading reports whether a name that contains r could be mistaken for another name,
// could break the line in which it is printed, or could be split differently on another
// system.
func misleading(r rune) bool {
	return r == '\\' || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
