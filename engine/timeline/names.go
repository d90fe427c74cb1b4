package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"fermata/engine/outputs"
)

// Names are the names that a request gives to the blocks of its timeline, and what else it asks of them.
type Names struct {
	// Turn, Call and Tool are the ids of the turn, of the tool call that runs the program, and of the tool
	// that the model has called.
	Turn, Call, Tool string
	// Notes are what the model has said beside its call. They may be empty.
	Notes string
	// Include puts the blocks into the terminal answer. Log adds the end of the program's output to the
	// report. NoBase64 leaves out the contents of PDF files and images.
	Include, Log, NoBase64 bool
}

// MaxNotes is the maximum length of the notes of a request, in bytes.
const MaxNotes = 16 << 10

// The names that are used if the request gives none.
const (
	usualTurn  = "turn_1"
	usualCall  = "exec"
	pythonTool = "exec_tools.execute_code_python"
	bashTool   = "exec_tools.execute_code_bash"
)

// Usual returns the default names. bash is true if the program is a shell script.
func Usual(bash bool) Names {
	n := Names{Turn: usualTurn, Call: usualCall, Tool: pythonTool}
	if bash {
		n.Tool = bashTool
	}
	return n
}

func mistake(member, must string) error {
	return &outputs.MistakeError{Text: member + " must " + must}
}

// ParseNames reads the member timeline of a request, which may be null or absent. What it does not set has
// the default value, and members that are not known are ignored. An error is an *outputs.MistakeError.
func ParseNames(raw json.RawMessage, bash bool) (Names, error) {
	n := Usual(bash)
	if outputs.Absent(raw) {
		return n, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return Names{}, mistake("timeline", "be an object")
	}
	base64 := true
	set := map[string]func(v json.RawMessage, name string) error{
		"turn_id":      text(n.SetTurn),
		"tool_call_id": text(n.SetCall),
		"tool_id":      text(n.SetTool),
		"notes":        text(n.SetNotes),
		"include":      flag(&n.Include),
		"log":          flag(&n.Log),
		"base64":       flag(&base64),
	}
	for _, name := range slices.Sorted(maps.Keys(set)) { // Sorted, so that of several mistakes the same one is always reported.
		if v := members[name]; !outputs.Absent(v) {
			if err := set[name](v, "timeline."+name); err != nil {
				return Names{}, err
			}
		}
	}
	n.NoBase64 = !base64
	return n, nil
}

// SetTurn sets the id of the turn. name is its name in errors, as in the other setters.
func (n *Names) SetTurn(id, name string) error { return setID(&n.Turn, id, name) }

// SetCall sets the id of the tool call.
func (n *Names) SetCall(id, name string) error {
	if inner.MatchString(id) {
		return mistake(name, "not end like a path of a block, or like the id of an inner call: .call, .notice, .result, .call_001")
	}
	if !callID.MatchString(id) {
		return mistake(name, "have 1 to 255 printable ASCII characters without spaces")
	}
	n.Call = id
	return nil
}

// inPath returns the id of a call as it stands in the paths of blocks: characters that could have a meaning there, and
// a first character that is no letter or digit, are written as %3A.
func inPath(call string) string {
	if id.MatchString(call) {
		return call
	}
	var b strings.Builder
	for i := range len(call) {
		if c := call[i]; plain.MatchString(call[i:i+1]) && (i > 0 || id.MatchString(call[:1])) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// SetTool sets the id of the tool.
func (n *Names) SetTool(id, name string) error { return setID(&n.Tool, id, name) }

// SetNotes sets the notes.
func (n *Names) SetNotes(text, name string) error {
	if len(text) > MaxNotes {
		return mistake(name, fmt.Sprintf("have at most %d bytes", MaxNotes))
	}
	n.Notes = text
	return nil
}

// With returns the names, of which those that are set in other are replaced.
func (n Names) With(other Names) Names {
	n.Turn, n.Call, n.Tool = cmp.Or(other.Turn, n.Turn), cmp.Or(other.Call, n.Call), cmp.Or(other.Tool, n.Tool)
	n.Notes = cmp.Or(other.Notes, n.Notes)
	return n
}

var (
	// id matches a valid id.
	id = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	// callID matches a valid id of a tool call, such as functions.run_code:0. plain matches the characters of ids
	// that have no other meaning in paths.
	callID = regexp.MustCompile(`^[!-~]{1,255}$`)
	plain  = regexp.MustCompile(`^[A-Za-z0-9_.-]$`)
	// inner matches how the paths of blocks and the ids of inner calls end. An outer call with such an id
	// could be mistaken for a part of another call.
	inner = regexp.MustCompile(`\.(call|notice|result|call_[0-9]+)$`)
)

func setID(to *string, text, name string) error {
	if !id.MatchString(text) {
		return mistake(name, "have 1 to 128 characters of A-Z, a-z, 0-9, _, . and -, and begin with a letter or a digit")
	}
	*to = text
	return nil
}

// text returns a function that reads a string member and passes it to set.
func text(set func(text, name string) error) func(json.RawMessage, string) error {
	return func(v json.RawMessage, name string) error {
		var text string
		if json.Unmarshal(v, &text) != nil {
			return mistake(name, "be a string")
		}
		return set(text, name)
	}
}

// flag returns a function that reads a member that is true or false.
func flag(to *bool) func(json.RawMessage, string) error {
	return func(v json.RawMessage, name string) error {
		if json.Unmarshal(v, to) != nil {
			return mistake(name, "be true or false")
		}
		return nil
	}
}
