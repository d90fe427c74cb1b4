// Package mask removes the secrets of a toolset from what leaves the server: results, errors, logs.
//
// It protects against accidents, and not against a hostile endpoint: the endpoint has the secrets that are
// sent to it, and can encode them in a form that is not recognized.
package mask

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// Mask stands where a secret was.
	Mask = "***"
	// MinSecret is the minimum number of bytes of a secret that is masked. Shorter ones occur in ordinary
	// words, and could be guessed by watching what is masked.
	MinSecret = 8
)

// A Masker replaces secrets and their encodings by Mask. It is safe for concurrent use. A nil Masker
// replaces nothing.
type Masker struct {
	replacer *strings.Replacer
}

// New returns a Masker for secrets. White space around them is removed. Secrets that are shorter than
// MinSecret are ignored.
func New(secrets []string) *Masker {
	forms := map[string]bool{}
	for _, secret := range secrets {
		if secret = strings.TrimSpace(secret); len(secret) < MinSecret {
			continue
		}
		for _, form := range encodings(secret) {
			if len(form) >= MinSecret {
				forms[form] = true
			}
		}
	}
	if len(forms) == 0 {
		return nil
	}
	// If several forms begin at the same place of a text, the replacer takes the one that comes first in its
	// list. This must be the longest one.
	sorted := make([]string, 0, len(forms))
	for form := range forms {
		sorted = append(sorted, form)
	}
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(sorted))
	for _, form := range sorted {
		pairs = append(pairs, form, Mask)
	}
	return &Masker{replacer: strings.NewReplacer(pairs...)}
}

// Text masks a text.
func (m *Masker) Text(text string) string {
	if m == nil {
		return text
	}
	return m.replacer.Replace(text)
}

// Bytes masks a text. The result may be the text itself.
func (m *Masker) Bytes(text []byte) []byte {
	if m == nil {
		return text
	}
	return []byte(m.replacer.Replace(string(text)))
}

// JSON masks the strings of a JSON value, and the names of its members, whatever escapes they are written
// with. A number that is a secret is replaced by Mask as a string. The result is JSON again. A text that is
// not JSON is masked like a text.
func (m *Masker) JSON(raw json.RawMessage) json.RawMessage {
	if m == nil {
		return raw
	}
	var masked bytes.Buffer
	options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.Multiline(false)}
	d := jsontext.NewDecoder(bytes.NewReader(raw), options...)
	e := jsontext.NewEncoder(&masked, options...)
	depth := 0
	for {
		token, err := d.ReadToken()
		if err != nil {
			return m.Bytes(raw)
		}
		switch token.Kind() {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			token = jsontext.String(m.Text(token.String()))
		case '0':
			if digits := token.String(); m.Text(digits) != digits {
				token = jsontext.String(Mask)
			}
		default:
		}
		if err := e.WriteToken(token); err != nil {
			return m.Bytes(raw)
		}
		if depth == 0 {
			break
		}
	}
	return bytes.TrimSuffix(masked.Bytes(), []byte("\n"))
}
