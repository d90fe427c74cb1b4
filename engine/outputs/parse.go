package outputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fermata/engine/filename"
)

// The limits of a contract: its size as JSON in bytes, the number of outputs, the depth of their names in
// segments, the length of their descriptions in characters, and the value of min_bytes.
const (
	MaxSize        = 64 << 10
	MaxOutputs     = 50
	MaxDepth       = 8
	maxDescription = 1_000
	maxMinBytes    = 1_000_000_000
)

// mediaType matches the media type of an output.
var mediaType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,62}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,62}$`)

// A MistakeError says what is wrong with what a request says of outputs, or of its timeline. Its text is
// for the client.
type MistakeError struct{ Text string }

func (e *MistakeError) Error() string { return e.Text }

func mistake(format string, args ...any) error {
	return &MistakeError{fmt.Sprintf(format, args...)}
}

// Parse returns the outputs for which the member outputs of a request asks. If the member is null or absent,
// there are none. turn is the id of the turn: a path may begin with its directory. An error is a
// *MistakeError.
func Parse(raw json.RawMessage, turn string) ([]Output, error) {
	if Absent(raw) {
		return nil, nil
	}
	if len(raw) > MaxSize {
		return nil, mistake("outputs must have at most %d bytes", MaxSize)
	}
	var entries []json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return nil, mistake("outputs must be an array, whose entries are paths or objects with a path")
	}
	if len(entries) > MaxOutputs {
		return nil, mistake("outputs must have at most %d entries", MaxOutputs)
	}
	list := make([]Output, 0, len(entries))
	first := make(map[string]int, 2*len(entries))
	for i, entry := range entries {
		place := fmt.Sprintf("outputs[%d]", i)
		o, err := parseEntry(entry, place, turn)
		if err != nil {
			return nil, err
		}
		// Names that differ only in their Unicode normalization look the same to people, and are the same file.
		name := norm.NFC.String(o.Name)
		if j, again := first[name]; again {
			return nil, mistake("%s.path is the same file as outputs[%d].path", place, j)
		}
		first[name] = i
		list = append(list, o)
	}
	return list, nil
}

// parseEntry reads one entry. place is its name in errors.
func parseEntry(raw json.RawMessage, place, turn string) (Output, error) {
	var path string
	if isString(raw) && json.Unmarshal(raw, &path) == nil {
		return newOutput(path, place, turn)
	}
	// In a struct, the names of members would match in any case of letters.
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return Output{}, mistake("%s must be a path or an object with a path", place)
	}
	if !isString(members["path"]) || json.Unmarshal(members["path"], &path) != nil {
		return Output{}, mistake("%s.path must be a string", place)
	}
	o, err := newOutput(path, place, turn)
	if err != nil {
		return Output{}, err
	}
	for _, m := range []struct {
		name string
		set  func(json.RawMessage) bool
		must string
	}{
		{"description", o.setDescription, fmt.Sprintf("be a string of at most %d characters", maxDescription)},
		{"mime", o.setType, "be a media type without parameters, such as application/pdf"},
		{"required", o.setRequired, "be true or false"},
		{"min_bytes", o.setMinBytes, fmt.Sprintf("be a whole number from 0 to %d", maxMinBytes)},
		{"visibility", o.setVisibility, `be "external" or "internal"`},
	} {
		if v := members[m.name]; !Absent(v) && !m.set(v) {
			return Output{}, mistake("%s.%s must %s", place, m.name, m.must)
		}
	}
	return o, nil
}

// newOutput returns the output with a path, which is relative to the workspace.
func newOutput(path, place, turn string) (Output, error) {
	name := strings.TrimPrefix(path, turn+"/files/")
	if strings.Count(name, "/") >= MaxDepth {
		return Output{}, mistake("%s.path must be at most %d levels deep", place, MaxDepth)
	}
	if wrong, ok := errors.AsType[*filename.NameError](filename.Check(path)); ok {
		return Output{}, mistake("%s.path %s", place, wrong.Reason)
	}
	return Output{Path: path, File: path, Name: name, Required: true, MinBytes: 1}, nil
}

// Each of these setters reports whether the value is allowed.

func (o *Output) setDescription(v json.RawMessage) bool {
	return isString(v) && json.Unmarshal(v, &o.Description) == nil && utf8.RuneCountInString(o.Description) <= maxDescription
}

func (o *Output) setType(v json.RawMessage) bool {
	if !isString(v) || json.Unmarshal(v, &o.Type) != nil || !mediaType.MatchString(o.Type) {
		return false
	}
	o.Type = strings.ToLower(o.Type)
	return true
}

func (o *Output) setRequired(v json.RawMessage) bool { return json.Unmarshal(v, &o.Required) == nil }

func (o *Output) setMinBytes(v json.RawMessage) bool {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
	o.MinBytes = n
	return err == nil && n >= 0 && n <= maxMinBytes
}

func (o *Output) setVisibility(v json.RawMessage) bool {
	var text string
	if json.Unmarshal(v, &text) != nil {
		return false
	}
	o.Internal = text == "internal"
	return o.Internal || text == "external"
}

// Absent reports whether a member of a request is null or absent.
func Absent(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	return len(v) == 0 || bytes.Equal(v, []byte("null"))
}

// isString reports whether a value is a string. It is needed because null can be decoded into a string.
func isString(v json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(v), []byte{'"'}) }
