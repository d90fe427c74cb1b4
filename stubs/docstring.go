package stubs

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

const (
	// maxDoc is the maximum length of a docstring, in bytes.
	maxDoc = 16 << 10
	// maxDocEnum is the maximum length of the values of an enum that a docstring shows, in bytes of JSON.
	maxDocEnum = 2 << 10
	// docCut ends a truncated docstring.
	docCut = "…"
)

// appendDoc appends the text of a docstring: the description, then every parameter. Types
// are named as in JSON Schema, values are written as in Python.
func appendDoc(dst []byte, description string, properties []property, variants []string) []byte {
	dst = append(dst, description[:min(len(description), maxDoc+1)]...)
	dst = appendSection(dst, "Args:", properties)
	for i, variant := range variants {
		if len(dst) > maxDoc {
			break
		}
		if i == 0 {
			dst = append(dst, "\n\nPass the arguments of one line:"...)
		}
		dst = append(append(dst, "\n    "...), variant...)
	}
	return dst
}

// appendSection appends a title, and a line for each property, unless there are none.
func appendSection(dst []byte, title string, properties []property) []byte {
	if len(properties) == 0 {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, "\n\n"...)
	}
	dst = append(dst, title...)
	for i := range properties {
		if len(dst) > maxDoc {
			break
		}
		dst = appendDocProperty(append(dst, "\n    "...), &properties[i])
	}
	return dst
}

// openSection puts an empty line in front of a docstring that begins with a section because there
// is no description. Otherwise Python would take the indentation of the lines that follow for that
// of the source, and not show it.
func openSection(doc []byte, description string) []byte {
	if description != "" || len(doc) == 0 {
		return doc
	}
	return slices.Insert(doc, 0, '\n')
}

// cutText truncates a text to limit bytes.
func cutText(dst []byte, limit int) []byte {
	if len(dst) <= limit {
		return dst
	}
	end := limit - len(docCut)
	for !utf8.RuneStart(dst[end]) && end > limit-len(docCut)-utf8.UTFMax {
		end--
	}
	return append(dst[:end], docCut...)
}

// appendDocProperty appends a line, or several if the description has several:
//
//	units: The scale (string, one of "c", "f", default "c").
//	"user-id": string, required. Pass it as user_id=... or **{"user-id": ...}.
func appendDocProperty(dst []byte, p *property) []byte {
	if p.named {
		dst = append(dst, p.name...)
	} else {
		dst = appendReadable(dst, []byte(p.name))
	}
	dst = append(dst, ": "...)
	description := p.docDescription()
	dst = append(dst, description...)
	if len(description) > 0 {
		dst = append(dst, " ("...)
	}
	dst = appendFacts(dst, p)
	if len(description) > 0 {
		dst = append(dst, ')')
	}
	dst = append(dst, '.')
	if !p.named && !p.result {
		dst = append(dst, " Pass it as "...)
		if p.param != "" {
			dst = append(append(dst, p.param...), "=... or "...)
		}
		dst = append(appendReadable(append(dst, "**{"...), []byte(p.name)), ": ...}."...)
	}
	return dst
}

// appendFacts appends what the schema of a property says: string, required, default "c".
func appendFacts(dst []byte, p *property) []byte {
	return appendRules(appendKeys(appendKinds(dst, p.allKinds()), &p.schema), p)
}

// appendKeys appends the names of the properties of an object, or of the objects in an array.
func appendKeys(dst []byte, s *schema) []byte {
	all, listed := s.allKeys()
	opening := " {"
	if listed {
		opening = " of {"
	}
	for n, keys := range all[:min(len(all), maxAlternatives)] {
		if n > 0 {
			opening = " or {"
		}
		for i, name := range keys {
			dst = appendName(append(dst, opening...), name)
			if opening = ", "; i == len(keys)-1 {
				dst = append(dst, '}')
			}
		}
	}
	return dst
}

// appendName appends the name of a property, in quotation marks unless it can be a parameter.
func appendName(dst []byte, name string) []byte {
	if isParameter(name) {
		return append(dst, name...)
	}
	return appendReadable(dst, []byte(name))
}

// appendRules appends whether a property is required, the values that it may have, and its default.
func appendRules(dst []byte, p *property) []byte {
	if p.required {
		dst = append(dst, ", required"...)
	}
	if p.enum != nil && len(p.enum) <= maxDocEnum {
		dst = append(dst, ", one of "...)
		start := len(dst)
		dst = appendLiteral(dst, p.enum, appendReadable)
		dst = append(dst[:start], dst[start+1:len(dst)-1]...) // without the brackets
	}
	if p.preset != nil && len(p.preset) <= maxDefault {
		dst = appendLiteral(append(dst, ", default "...), p.preset, appendReadable)
	}
	return dst
}

// docDescription returns the description with its continuation lines indented, and without
// its final full stop, since more text follows.
func (s *schema) docDescription() []byte {
	if s.description == nil {
		return nil
	}
	text := bytes.TrimSpace(unquote(s.description))
	text = bytes.TrimSuffix(text[:min(len(text), maxDoc+1)], []byte("."))
	if bytes.IndexByte(text, '\n') < 0 {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\n        "))
}

func appendKinds(dst []byte, ks kinds) []byte {
	if ks == 0 {
		return append(dst, "any"...)
	}
	separator := ""
	for _, t := range types {
		if ks&t.kind != 0 {
			dst = append(append(dst, separator...), t.json...)
			separator = " or "
		}
	}
	return dst
}
