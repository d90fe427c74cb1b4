package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/outputs"
)

// rawJSON is JSON that keeps the spelling of its numbers.
type rawJSON = json.RawMessage

// maxParam is the maximum length of a text within the parameters of a call, in characters.
const maxParam = 100

// shortened returns a short text as it is. Of a long one it returns the beginning, and a reference to see,
// the path of the block with the whole text. see is empty if there is no such block.
func shortened(text, see string) string {
	if utf8.RuneCountInString(text) <= maxParam {
		return text
	}
	end := 0
	for range maxParam {
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
	}
	if see == "" {
		return text[:end] + outputs.CutEnd
	}
	return text[:end] + "... [see " + see + "]"
}

// lenient are the options with which JSON from clients and programs is read and written.
var lenient = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// shorten returns a value in compact form, in which all long texts are shortened. Of a value that the
// journal has truncated it returns the beginning: of an object as an object, and of another value as a string.
func shorten(v rawJSON, see string) rawJSON {
	if len(v) == 0 {
		return nil
	}
	if head, isCut := cutValue(v); isCut {
		if object := shortenHead(head, see); object != nil {
			return object
		}
		if text := shortened(head, see); text != head {
			return encode(text)
		}
		return encode(head + outputs.CutEnd)
	}
	var b bytes.Buffer
	from, to := jsontext.NewDecoder(bytes.NewReader(v), lenient...), jsontext.NewEncoder(&b, lenient...)
	for {
		token, err := from.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
		}
		if err != nil {
			return nil // It does not happen: values in the journal are valid JSON.
		}
		if token.Kind() == jsontext.KindString {
			token = jsontext.String(shortened(strings.ToValidUTF8(token.String(), "\uFFFD"), see))
		}
		if to.WriteToken(token) != nil {
			return nil
		}
	}
}

// textOf returns the text of a JSON string, or the beginning of a string that the journal has truncated.
func textOf(v rawJSON) string {
	if head, isCut := cutValue(v); isCut {
		return head + outputs.CutEnd
	}
	var text string
	if json.Unmarshal(v, &text) != nil {
		return ""
	}
	return text
}

// valueOf returns a value in compact form, and its media type. The beginning of a value that the journal has
// truncated is plain text, since it is not valid JSON.
func valueOf(v rawJSON) (text, mime string) {
	if head, isCut := cutValue(v); isCut {
		return head + outputs.CutEnd, "text/plain"
	}
	value := jsontext.Value(bytes.Clone(v))
	err := value.Format(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(false))
	if err != nil {
		return "null", "application/json"
	}
	return string(value), "application/json"
}

// cutValue returns the beginning of a value that the journal has truncated, and reports whether v stands for
// such a value.
func cutValue(v rawJSON) (head string, ok bool) {
	if !bytes.HasPrefix(v, []byte(`{"truncated":true,"bytes":`)) {
		return "", false
	}
	var c struct {
		Bytes int     `json:"bytes"`
		Head  *string `json:"head"`
	}
	if json.Unmarshal(v, &c) != nil || c.Head == nil {
		return "", false
	}
	return *c.Head, true
}

// encode returns v as JSON on one line, without escapes that JSON does not need.
func encode(v any) rawJSON {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // Structs of plain members and of valid JSON can be encoded.
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
