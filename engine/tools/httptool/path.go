package httptool

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// piece is a part of a path: literal text, or a parameter.
type piece struct {
	text      string
	parameter bool
}

// parsePath splits the path of an operation into pieces.
func parsePath(path string) ([]piece, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, errors.New("must begin with /")
	}
	var pieces []piece
	for rest := path; rest != ""; {
		literal, tail, found := strings.Cut(rest, "{")
		if literal != "" {
			if strings.ContainsFunc(literal, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`?#\}`, r) }) {
				return nil, errors.New("may not have blanks, ?, #, \\, } or what is not ASCII; escape it")
			}
			if _, err := url.PathUnescape(literal); err != nil {
				return nil, errors.New("has a % that escapes nothing")
			}
			pieces = append(pieces, piece{text: literal})
		}
		if !found {
			break
		}
		name, after, closed := strings.Cut(tail, "}")
		if !closed || name == "" || strings.ContainsAny(name, "{/") {
			return nil, errors.New("has a { that is no {name}")
		}
		pieces = append(pieces, piece{text: name, parameter: true})
		rest = after
	}
	for i, segment := range strings.Split(path[1:], "/") {
		last := i == strings.Count(path[1:], "/")
		if strings.Contains(segment, "{") || segment == "" && last {
			continue
		}
		if decoded, err := decode(segment); err != nil || moves(decoded) {
			return nil, errors.New("may not have a segment that is empty, or . or .. alone")
		}
	}
	return pieces, nil
}

// fillPath returns the escaped path with the values of the parameters. An error names a parameter. Whatever
// the values are, the path has as many segments as the path of the operation, with the same literals in them.
func fillPath(pieces []piece, values map[string]string) (string, error) {
	var escaped, plain strings.Builder
	name := ""
	end := func() error { // of a segment
		if name == "" {
			return nil
		}
		if decoded, err := decode(plain.String()); err != nil || moves(decoded) {
			return fmt.Errorf("%s: makes a path segment that is empty, or . or .. alone", name)
		}
		return nil
	}
	for _, p := range pieces {
		if p.parameter {
			value := values[p.text]
			if value == "" {
				return "", fmt.Errorf("%s: must not be empty, since it is a part of the path", p.text)
			}
			if strings.ContainsFunc(value, isControl) {
				return "", fmt.Errorf("%s: must not have control characters, since it is a part of the path", p.text)
			}
			if decoded, err := decode(value); err != nil || moves(decoded) {
				return "", fmt.Errorf("%s: must not have a path segment that is empty, or . or .. alone", p.text)
			}
			name = p.text
			escaped.WriteString(escape(value))
			plain.WriteString(value)
			continue
		}
		for i, part := range strings.Split(p.text, "/") {
			if i > 0 {
				if err := end(); err != nil {
					return "", err
				}
				name = ""
				plain.Reset()
				escaped.WriteByte('/')
			}
			escaped.WriteString(part)
			plain.WriteString(part)
		}
	}
	if err := end(); err != nil {
		return "", err
	}
	return escaped.String(), nil
}

// maxDecodings is how often a value is decoded at most. It is more often than proxies before an endpoint would
// decode it.
const maxDecodings = 8

var errDecodings = errors.New("escaped too often")

// decode decodes percent escapes again and again, until there are none. An invalid escape is kept as it is.
func decode(s string) (string, error) {
	for range maxDecodings {
		next := decodeOnce(s)
		if next == s {
			return s, nil
		}
		s = next
	}
	return "", errDecodings
}

func decodeOnce(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// lookAlikes replaces characters that some servers treat as dots or slashes.
var lookAlikes = strings.NewReplacer("\uff0e", ".", "\u2024", ".", "\ufe52", ".", "\u2025", "..",
	"\uff0f", "/", "\u2215", "/", "\u2044", "/", "\uff3c", "/", "\ufe68", "/", `\`, "/")

// moves reports whether a decoded path could lead elsewhere, since a server could take one of its segments as
// empty, . or .. when it cuts a segment at a semicolon, or ignores blanks and characters that cannot be
// printed.
func moves(decoded string) bool {
	for segment := range strings.SplitSeq(lookAlikes.Replace(decoded), "/") {
		segment, _, _ = strings.Cut(segment, ";")
		segment = strings.TrimFunc(segment, func(r rune) bool { return isControl(r) || r == ' ' })
		if segment == "" || segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// isControl reports whether a character is a control character.
func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// escape escapes all bytes but those that mean the same everywhere in a URL.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
