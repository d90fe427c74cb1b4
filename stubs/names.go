package stubs

import (
	"strings"
	"unicode/utf8"
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

// isParameter reports whether a stub can have a parameter called name. Names with letters
// beyond ASCII are refused, because Python normalizes them: the program would see another
// name than the schema's.
func isParameter(name string) bool {
	if name == "" || isDigit(rune(name[0])) || IsKeyword(name) || name == "__debug__" {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !isWord(r) })
}

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
