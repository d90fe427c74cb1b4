package engine

import (
	"encoding/json"
	"regexp"

	"fermata/engine/sandbox"
)

// libraries matches the names of the libraries that scientific sandboxes have imported, and of
// libraries that import those. Comments and strings match as well: a wrong guess costs an import
// and changes nothing else.
var libraries = regexp.MustCompile(`\b(np|numpy|pd|pandas|plt|matplotlib|scipy|sklearn|seaborn)\b`)

// kind returns the kind of sandbox that suits the program. The processes that a shell script
// starts have imported nothing in either kind.
func (s Start) kind() sandbox.Kind {
	if s.Mode == Bash {
		return sandbox.Plain
	}
	var code string
	// Code that is not a JSON string fails in any sandbox.
	_ = json.Unmarshal(s.Code, &code)
	if libraries.MatchString(code) {
		return sandbox.Scientific
	}
	return sandbox.Plain
}
