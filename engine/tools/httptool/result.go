package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/tools/outgoing"
)

// MaxDepth is how deep the JSON of an answer may be nested.
const MaxDepth = 200

// maxShown is how many bytes of the body of an answer with an error status the program gets.
const maxShown = 1000

// result returns what a tool returns for an answer with a good status. The error is a text for the
// program.
func result(a *outgoing.Answer, pointer []string) (json.RawMessage, error) {
	kind, charset := contentType(a.Header)
	switch {
	case len(bytes.TrimSpace(a.Body)) == 0 && (a.Status == http.StatusNoContent || kind != textual):
		return json.RawMessage("null"), nil
	case kind == jsonLike, kind == textual && len(pointer) > 0:
		value, err := strict(a.Body)
		if err != nil {
			return nil, err
		}
		return at(value, pointer)
	case kind == unknown: // JSON, or else text
		if value, err := strict(a.Body); err == nil {
			return at(value, pointer)
		}
	case kind == binary:
		return nil, errors.New("the endpoint's answer is neither JSON nor text")
	default:
	}
	if len(pointer) > 0 {
		return nil, errors.New("the endpoint's answer is not JSON, so that it has no part that could be the result")
	}
	if charset != "" && charset != "utf-8" && charset != "utf8" && charset != "us-ascii" {
		return nil, errors.New("the endpoint's answer is a text in another encoding than UTF-8")
	}
	if !utf8.Valid(a.Body) {
		return nil, errors.New("the endpoint's answer is a text that is not valid UTF-8")
	}
	return jsontext.AppendQuote(nil, bytes.TrimPrefix(a.Body, bom))
}

// content is the kind of an answer according to its Content-Type.
type content int

const (
	unknown content = iota
	jsonLike
	textual
	binary
)

// contentType returns the kind and the character set of an answer from its header.
func contentType(h http.Header) (kind content, charset string) {
	header := h.Get("Content-Type")
	if header == "" {
		return unknown, ""
	}
	media, parameters, err := mime.ParseMediaType(header)
	if err != nil && media == "" {
		return unknown, ""
	}
	charset = strings.ToLower(parameters["charset"])
	switch {
	case media == "application/json", media == "text/json", strings.HasSuffix(media, "+json"):
		return jsonLike, charset
	case strings.HasPrefix(media, "text/"), media == "application/xml", strings.HasSuffix(media, "+xml"), media == "application/yaml",
		media == "application/javascript", media == "application/x-ndjson", media == "application/x-www-form-urlencoded":
		return textual, charset
	default:
		return binary, charset
	}
}

var bom = []byte("\ufeff")

// strict checks that an answer is JSON that all readers understand in the same way. It returns the answer
// without blanks, in the same memory.
func strict(body []byte) (json.RawMessage, error) {
	if bytes.HasPrefix(body, bom) {
		return nil, errors.New("the endpoint's answer is not valid JSON: it begins with a byte order mark")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	values := 0
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) && values == 1 {
			break
		}
		if err != nil {
			return nil, invalid(err, d.InputOffset())
		}
		if d.StackDepth() > MaxDepth {
			return nil, fmt.Errorf("the endpoint's answer is nested too deep: the limit is %d levels", MaxDepth)
		}
		if token.Kind() == jsontext.KindNumber {
			if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
				return nil, fmt.Errorf("the endpoint's answer is not valid JSON: the number before byte %d is out of range", d.InputOffset())
			}
		}
		if d.StackDepth() == 0 {
			if values++; values > 1 {
				return nil, errors.New("the endpoint's answer is not valid JSON: it is more than one value")
			}
		}
	}
	v := jsontext.Value(body)
	if err := v.Compact(); err != nil {
		return nil, invalid(err, 0)
	}
	return json.RawMessage(v), nil
}

// invalid returns an error that says what is wrong with JSON, without quoting it.
func invalid(err error, offset int64) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		offset = syntax.ByteOffset
	}
	what := "it is broken"
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		what = "an object has two members of one name"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		what = "it ends too early"
	}
	return fmt.Errorf("the endpoint's answer is not valid JSON: %s at byte %d", what, offset)
}

// parsePointer returns the tokens of a JSON Pointer.
func parsePointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, errors.New("must be a JSON Pointer, which begins with /")
	}
	parts := strings.Split(pointer[1:], "/")
	for i, part := range parts {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, errors.New("must be a JSON Pointer, in which ~ is followed by 0 or 1")
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts, nil
}

// at returns the part of a value to which a pointer leads.
func at(value json.RawMessage, pointer []string) (json.RawMessage, error) {
	for i, part := range pointer {
		next, found := json.RawMessage(nil), false
		switch jsontext.Value(value).Kind() {
		case jsontext.KindBeginObject:
			for _, m := range entries(value) {
				if m.name == part {
					next, found = m.value, true
				}
			}
		case jsontext.KindBeginArray:
			var list []json.RawMessage
			index, err := strconv.Atoi(part)
			if err == nil && strconv.Itoa(index) == part && json.Unmarshal(value, &list) == nil && index >= 0 && index < len(list) {
				next, found = list[index], true
			}
		default:
		}
		if !found {
			return nil, fmt.Errorf("the endpoint's answer has nothing at /%s, where the result should be", strings.Join(pointer[:i+1], "/"))
		}
		value = next
	}
	return value, nil
}

// statusText returns the text for the program about an answer with an error status, which includes the
// beginning of the body.
func (s *Source) statusText(a *outgoing.Answer) string {
	text := "the endpoint answered with status " + strconv.Itoa(a.Status)
	if name := http.StatusText(a.Status); name != "" {
		text += " " + name
	}
	kind, _ := contentType(a.Header)
	if kind == binary || !utf8.Valid(a.Body) {
		return text
	}
	said := string(a.Body)
	if s.mask != nil { // Masked before it is truncated, so that no part of a secret is left.
		said = s.mask(said)
	}
	said = strings.Join(strings.FieldsFunc(said, func(r rune) bool { return r == ' ' || isControl(r) || r == '\u2028' || r == '\u2029' }), " ")
	if runes := []rune(said); len(runes) > maxShown {
		said = string(runes[:maxShown]) + "…"
	}
	if said != "" {
		text += ": " + said
	}
	return text
}
