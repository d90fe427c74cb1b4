// Package artifact reads the files that the results of tools hand over. It has no side effects, and depends
// on neither sandboxes nor stores.
package artifact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/filename"
)

const (
	// MaxFiles is how many files the results of one execution may hand over.
	MaxFiles = 50
	// MaxSize bounds one file, in bytes.
	MaxSize = 25 << 20
	// maxPath is the maximum length of a path as the tool writes it, in bytes.
	maxPath = 1 << 10
	// maxType is the maximum length of a media type, in bytes.
	maxType = 128
	// workspace is the directory in which programs find the files.
	workspace = "/mnt/data/"
)

// A MistakeError says why the files that a result names cannot be taken.
type MistakeError struct {
	// Text is for the author of the tool. It names the member and the limit.
	Text string
}

func (e *MistakeError) Error() string { return e.Text }

func mistake(format string, args ...any) error { return &MistakeError{fmt.Sprintf(format, args...)} }

// A File is a file in a result.
type File struct {
	// Path is the path of the file in the workspace. If the tool has named a path outside the workspace,
	// Asked is that path; otherwise Asked is empty.
	Path, Asked string
	// Type is the media type that the tool declares, or empty.
	Type string
	// place is the member of the result that describes the file. encoded is the content of the file as a
	// JSON string, either base64 or text.
	place    string
	encoded  jsontext.Value
	isBase64 bool
}

// Content decodes the content of the file.
func (f File) Content() ([]byte, error) {
	content, err := jsontext.AppendUnquote(nil, f.encoded)
	if err != nil && len(content) == 0 {
		return nil, mistake("%s is no string", f.place)
	}
	if f.isBase64 {
		decoded := make([]byte, base64.StdEncoding.DecodedLen(len(content)))
		n, err := base64.StdEncoding.Decode(decoded, content)
		if err != nil {
			return nil, mistake("%s.base64 is not valid base64", f.place)
		}
		content = decoded[:n]
	}
	switch {
	case len(content) == 0:
		return nil, mistake("%s is empty", f.place)
	case len(content) > MaxSize:
		return nil, tooLarge(f.place)
	}
	return content, nil
}

func tooLarge(place string) error {
	return mistake("%s is larger than %d bytes", place, MaxSize)
}

// Of returns the files that a result hands over, and the result without the contents of the files, as the
// program gets it. It does not decode the contents. A result without files is returned unchanged. fallback
// is the path of a file for which the result gives no path; it may be empty. The error is a *MistakeError.
func Of(result json.RawMessage, fallback string) ([]File, json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil {
		return nil, result, nil //nolint:nilerr // only an object can hand files over
	}
	r := reader{fallback: fallback, paths: map[string]bool{}}
	switch list := members["files"]; {
	case string(members["artifact_type"]) == `"files"`:
		rest, err := r.list(list)
		if err != nil || len(r.files) == 0 {
			return nil, result, err
		}
		return r.files, replaced(result, "files", rest), nil
	case isObject(members["artifact"]):
		rest, err := r.file("artifact", members["artifact"])
		if err != nil || len(r.files) == 0 {
			return nil, result, err
		}
		return r.files, replaced(result, "artifact", rest), nil
	}
	return nil, result, nil
}

func isObject(raw json.RawMessage) bool {
	return jsontext.Value(raw).Kind() == jsontext.KindBeginObject
}

// A reader reads the files of one result.
type reader struct {
	fallback string
	files    []File
	// paths are the paths of the files that were read so far.
	paths map[string]bool
}

// list reads a list of files, and returns it without their contents.
func (r *reader) list(raw json.RawMessage) (json.RawMessage, error) {
	if jsontext.Value(raw).Kind() != jsontext.KindBeginArray {
		return nil, mistake(`files must be a list, since artifact_type is "files"`)
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, mistake("files is no list: %v", err)
	}
	if len(entries) > MaxFiles {
		return nil, mistake("files has %d entries; an execution may be handed at most %d files", len(entries), MaxFiles)
	}
	rest := [][]byte{}
	for i, entry := range entries {
		place := fmt.Sprintf("files[%d]", i)
		if !isObject(entry) {
			return nil, mistake("%s must be an object", place)
		}
		before := len(r.files)
		left, err := r.file(place, entry)
		switch {
		case err != nil:
			return nil, err
		case len(r.files) == before:
			return nil, mistake("%s has neither path nor content nor base64", place)
		}
		rest = append(rest, left)
	}
	return append(append([]byte{'['}, bytes.Join(rest, []byte{','})...), ']'), nil
}

// file reads one file, and returns its description without its content. An object that has none of the
// members of a file is not a file.
func (r *reader) file(place string, raw json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, mistake("%s is no object: %v", place, err)
	}
	text, binary := given(members["content"]), given(members["base64"])
	switch {
	case text == nil && binary == nil && members["path"] == nil:
		return raw, nil
	case text == nil && binary == nil:
		return nil, mistake("%s has neither content nor base64", place)
	case text != nil && binary != nil:
		return nil, mistake("%s has both content and base64", place)
	}
	f := File{place: place, encoded: text}
	if binary != nil {
		f.encoded, f.isBase64 = binary, true
	}
	if f.encoded.Kind() != jsontext.KindString {
		return nil, mistake("%s must have its content as a string", place)
	}
	if f.least() > MaxSize {
		return nil, tooLarge(place)
	}
	var err error
	if f.Path, f.Asked, err = r.path(place, members["path"]); err != nil {
		return nil, err
	}
	if f.Type, err = typeIn(place, members["mime"]); err != nil {
		return nil, err
	}
	r.files = append(r.files, f)
	rest := without(raw, "content", "base64")
	quoted, err := json.Marshal(f.Path)
	if err != nil {
		return nil, mistake("%s.path: %v", place, err)
	}
	return replaced(rest, "path", quoted), nil
}

// given returns a member, or nil if it is missing or null.
func given(raw json.RawMessage) jsontext.Value {
	if v := jsontext.Value(raw); len(v) > 0 && v.Kind() != jsontext.KindNull {
		return v
	}
	return nil
}

// least returns the minimum number of bytes of the content. JSON writes a byte in at most six characters.
func (f File) least() int {
	n := (len(f.encoded) - 2) / 6
	if f.isBase64 && bytes.IndexByte(f.encoded, '\\') < 0 {
		n = base64.StdEncoding.DecodedLen(len(f.encoded)-2) - 2
	}
	return n
}

// path returns the path of a file in the workspace. If the tool has named a path outside the workspace, that
// path is returned as well.
func (r *reader) path(place string, raw json.RawMessage) (inside, asked string, err error) {
	name := r.fallback
	if v := given(raw); v != nil {
		if json.Unmarshal(v, &name) != nil {
			return "", "", mistake("%s.path must be a string", place)
		}
	}
	switch {
	case name == "":
		return "", "", mistake("%s has no path, and the call had none", place)
	case len(name) > maxPath:
		return "", "", mistake("%s.path must have at most %d bytes", place, maxPath)
	}
	rest, within := strings.CutPrefix(name, workspace)
	inside = strings.TrimPrefix(path.Clean("/"+rest), "/")
	if !within && (strings.HasPrefix(name, "/") || climbs(name)) || within && climbs(rest) {
		asked = name
	}
	switch {
	case inside == "", strings.HasSuffix(name, "/"):
		return "", "", mistake("%s.path names no file", place)
	case r.paths[inside]:
		return "", "", mistake("%s.path names a file that the result has already", place)
	}
	if err := filename.Check(inside); err != nil {
		if named, ok := errors.AsType[*filename.NameError](err); ok {
			return "", "", mistake("%s.path: the name %s", place, named.Reason)
		}
		return "", "", mistake("%s.path: %v", place, err)
	}
	r.paths[inside] = true
	return inside, asked, nil
}

// climbs reports whether a relative path leads out of the directory to which it is relative.
func climbs(name string) bool {
	clean := path.Clean(name)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// typeIn returns the media type that a file declares.
func typeIn(place string, raw json.RawMessage) (string, error) {
	v := given(raw)
	if v == nil {
		return "", nil
	}
	var declared string
	if json.Unmarshal(v, &declared) != nil || len(declared) > maxType {
		return "", mistake("%s.mime must be a media type of at most %d bytes", place, maxType)
	}
	kind, parameters, err := mime.ParseMediaType(declared)
	if formatted := mime.FormatMediaType(kind, parameters); err == nil && strings.Contains(kind, "/") && formatted != "" {
		return formatted, nil
	}
	return "", mistake("%s.mime must be a media type", place)
}

// PathIn returns the path that the input of a call has, or "" if it has none. It is the path of a file for
// which the result gives no path.
func PathIn(input []byte) string {
	var members map[string]json.RawMessage // In a struct, names would match in any case of letters.
	var name string
	if json.Unmarshal(input, &members) != nil || json.Unmarshal(members["path"], &name) != nil || len(name) > maxPath {
		return ""
	}
	return name
}
