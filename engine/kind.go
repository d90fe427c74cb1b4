package engine

import (
	"encoding/json"
	"regexp"

	"fermata/engine/sandbox"
)

// libraries matches the names under which a program can use a library that scientific
// sandboxes have imported. Other words of a program, comments and strings may match, too: a
// wrong guess costs time and nothing else.
var libraries = regexp.MustCompile(`\b(np|numpy|pd|pandas|plt|matplotlib|scipy|sklearn|seaborn)\b`)

// kind returns the kind of sandbox that suits the program.
func (s Start) kind() sandbox.Kind {
	var code string
	// What is not a string cannot run either, and the sandbox says so.
	_ = json.Unmarshal(s.Code, &code)
	if libraries.MatchString(code) {
		return sandbox.Scientific
	}
	return sandbox.Plain
}
