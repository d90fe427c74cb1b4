package stubs

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Identifier returns the Python name of the tool called name, or "" if the name holds no
// character that is allowed in one. Clients compute the same name, so the rules may not
// change.
func Identifier(name string) string {
	id := strip(name)
	if IsKeyword(id) {
		id += "_tool"
	}
	return id
}

// names are what a program calls a tool. second is empty, or the name with letters beyond ASCII.
type names struct{ first, second string }

// pythonNames returns the names of tools in Python programs. Those of a tool that gets no stub are empty.
// A tool whose identifier is empty has its letters beyond ASCII as its first name. If there are none either, its first
// name is the tool's own, which a program can look up in globals().
func pythonNames(tools []Tool) ([]names, error) {
	all := make([]names, len(tools))
	last := make(map[string]int, len(tools))
	for i, t := range tools {
		id := Identifier(t.Name)
		if id == "" {
			id = cmp.Or(letterIdentifier(t.Name), t.Name)
		}
		if j, ok := last[id]; ok {
			if tools[j].Name != t.Name {
				return nil, &CollisionError{First: tools[j].Name, Second: t.Name, Identifier: id}
			}
			all[j] = names{}
		}
		last[id] = i
		if !isModuleGlobal(id) {
			all[i].first = id
		}
	}
	for i, t := range tools {
		if all[i].first == "" || isASCII(t.Name) {
			continue
		}
		second := letterIdentifier(t.Name)
		if _, taken := last[second]; second != "" && !taken && !isModuleGlobal(second) {
			all[i].second, last[second] = second, i
		}
	}
	return all, nil
}

// letterIdentifier is like Identifier, but keeps the letters beyond ASCII that Python allows.
func letterIdentifier(name string) string {
	id := letters(strings.ReplaceAll(name, ".", ""))
	if IsKeyword(id) {
		id += "_tool"
	}
	return id
}

// strip replaces hyphens and white space in name by underscores, drops everything but
// ASCII letters, digits and underscores, and puts an underscore in front of a leading
// digit.
func strip(name string) string {
	id := make([]byte, 0, len(name)+len("_tool"))
	for _, r := range name {
		switch {
		case r == '-' || isSpace(r):
			id = append(id, '_')
		case isWord(r):
			id = utf8.AppendRune(id, r)
		}
	}
	if len(id) > 0 && isDigit(rune(id[0])) {
		return "_" + string(id)
	}
	return string(id)
}

// isSpace reports whether r is in the class \s of JavaScript's regular expressions, which
// LibreChat's client uses. Neither \s of Go's regexp nor unicode.IsSpace is the same set.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0x00A0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return 0x2000 <= r && r <= 0x200A
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_' || isDigit(r)
}

// IsKeyword reports whether s is a keyword of Python. Soft keywords, such as match and
// type, are not included: they can be names.
func IsKeyword(s string) bool {
	switch s {
	case "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
		"del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
		"nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield":
		return true
	}
	return false
}

// maxNormal is the maximum length of a name that is normalized, in bytes.
const maxNormal = 256

// letters returns name as Python reads it in a program, where names are normalized, with white space, hyphens and
// dots replaced by underscores, and without all other characters that Python does not allow in a name. Unlike
// Identifier it keeps letters beyond ASCII. It returns "" if nothing is left.
func letters(name string) string {
	if len(name) > maxNormal {
		return ""
	}
	id := strings.Map(func(r rune) rune {
		switch {
		case r == '-' || r == '.' || isSpace(r):
			return '_'
		case isWord(r) || isLetter(r) || isMark(r):
			return r
		}
		return -1
	}, norm.NFKC.String(name))
	first, _ := utf8.DecodeRuneInString(id)
	switch {
	case strings.Trim(id, "_") == "" || !norm.NFKC.IsNormalString(id):
		return ""
	case isDigit(first) || isMark(first):
		return "_" + id
	}
	return id
}

// isLetter reports whether names in Python 3.11 and later can begin with r, which is beyond ASCII and normalized.
// Later versions allow more, but only letters that few people write.
func isLetter(r rune) bool {
	const tilde = 0x2E2F // a letter of Unicode, but a sign for Python
	return 0x80 <= r && r <= 0xFFFF && r != tilde && unicode.In(r, unicode.L, unicode.Nl) && !isUnseen(r)
}

// isMark reports whether names in Python can have r, but not as the first character.
func isMark(r rune) bool {
	const kannada, lao = 0x0CF3, 0x0ECE // which Python 3.11 does not know
	return 0x80 <= r && r <= 0xFFFF && r != kannada && r != lao && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd) && !isUnseen(r)
}

// isParameter reports whether Python can call a parameter name, which it normalizes.
func isParameter(name string) bool {
	if name == "" || isDigit(rune(name[0])) || IsKeyword(name) || name == "__debug__" {
		return false
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		normal := norm.NFKC.String(name[:min(len(name), maxNormal)])
		return len(name) <= maxNormal && letters(name) == normal && isParameterNormal(normal)
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) })
}

// isParameterNormal is isParameter for a name that was normalized, which may have become a name of ASCII.
func isParameterNormal(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) || isParameter(name)
}

// setParams gives each property the name of its parameter. A property whose own name cannot be that of a parameter
// gets one that is like it: from_ for from, user_id for user-id. If that is the name of another property, or of the
// parameter of an earlier one, the property has no parameter.
func setParams(properties []property) {
	for i := range properties {
		p := &properties[i]
		switch {
		case !p.named:
			p.param = alias(p.name)
		case isASCII(p.name):
			p.param = p.name
			continue
		default:
			p.param = norm.NFKC.String(p.name)
		}
		if p.param == p.name || p.param == "" {
			continue
		}
		for j := range properties {
			other := &properties[j]
			if j != i && (other.name == p.param || j < i && other.param == p.param) {
				p.named, p.param = false, ""
				break
			}
		}
	}
}

// alias returns the name of a parameter for a property whose own name cannot be one, or "" if another name would be a
// guess. It has underscores in place of hyphens, dots and blanks, no $ or @ in front, and no brackets at its end.
func alias(name string) string {
	name = strings.TrimSuffix(strings.TrimLeft(name, "$@"), "[]")
	id := letters(name)
	if utf8.RuneCountInString(strings.TrimPrefix(id, "_")) < utf8.RuneCountInString(strings.TrimLeft(name, "-._ ")) {
		return "" // because something was left out that may have a meaning, such as the last character of price<
	}
	if IsKeyword(id) {
		id += "_"
	}
	if !isParameter(id) || strings.HasPrefix(id, "__") {
		return ""
	}
	return id
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }

// isModuleGlobal reports whether the interpreter itself reads name from the globals of a
// module. A tool of this name would break imports, warnings, annotations or the check
// whether the program is the main module.
func isModuleGlobal(name string) bool {
	switch name {
	case "__annotate__", "__annotate_func__", "__annotations__", "__builtins__", "__cached__",
		"__conditional_annotations__", "__debug__", "__doc__", "__file__", "__loader__", "__name__", "__package__",
		"__path__", "__spec__", "__warningregistry__":
		return true
	}
	return false
}
