package timeline

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/outputs"
)

// maxEscape is how many bytes of a string the end of a truncated value can take from its last character: two escape
// sequences, of half a surrogate pair each.
const maxEscape = 12

// shortenHead is like shorten, for an object of which the journal has only the beginning: what is whole stays, and
// objects and lists that are open end there. It returns nil if head is not the beginning of an object.
func shortenHead(head, see string) rawJSON {
	if !strings.HasPrefix(head, "{") {
		return nil
	}
	var b bytes.Buffer
	from, to := jsontext.NewDecoder(strings.NewReader(head), lenient...), jsontext.NewEncoder(&b, lenient...)
	for {
		token, err := from.ReadToken()
		if err != nil || token.Kind() == jsontext.KindNumber && from.InputOffset() == int64(len(head)) {
			break // A number may have had more digits.
		}
		if token.Kind() == jsontext.KindString {
			token = jsontext.String(shortened(strings.ToValidUTF8(token.String(), "\uFFFD"), see))
		}
		if to.WriteToken(token) != nil {
			return nil
		}
		if to.StackDepth() == 0 {
			return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}) // It does not happen: then the value would be whole.
		}
	}
	rest := strings.TrimLeft(head[min(from.InputOffset(), int64(len(head))):], " \t\r\n:,")
	if kind, written := to.StackIndex(to.StackDepth()); kind == jsontext.KindBeginObject && written%2 == 1 {
		// The value of this name is cut.
		if to.WriteToken(jsontext.String(shortenEnd(rest, see))) != nil {
			return nil
		}
	}
	for to.StackDepth() > 0 {
		end := jsontext.EndArray
		if kind, _ := to.StackIndex(to.StackDepth()); kind == jsontext.KindBeginObject {
			end = jsontext.EndObject
		}
		if to.WriteToken(end) != nil {
			return nil
		}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// shortenEnd returns what stands for a value of which there is only the beginning.
func shortenEnd(cut, see string) string {
	if strings.HasPrefix(cut, `"`) {
		for most := len(cut); most > 0 && most >= len(cut)-maxEscape; most-- {
			text, err := jsontext.AppendUnquote(nil, cut[:most]+`"`)
			if err != nil {
				continue
			}
			if short := shortened(string(text), see); short != string(text) {
				return short
			}
			return string(text) + outputs.CutEnd
		}
	}
	return outputs.CutEnd
}
