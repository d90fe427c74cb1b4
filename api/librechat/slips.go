package librechat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine/outputs"
)

// A vocabulary has the names in one kind of object.
type vocabulary struct {
	members []member
	// guesses are other words that clients use for members, in their plain form.
	guesses map[string]string
	// passes are names that real clients send and that mean no member, in their plain form.
	passes []string
}

// The vocabularies of a request. Where a guess has the name of a member, the member is there only to
// be refused.
var (
	requestWords = vocabulary{
		members: requestNames,
		guesses: map[string]string{
			"arg": "args", "timeoutms": "timeout", "timeoutseconds": "timeout", "timelimit": "timeout",
			"token": "continuation_token", "results": "tool_results", "toolresult": "tool_results", "tooloutputs": "tool_results",
			"source": "code", "program": "code", "script": "code", "functions": "tools", "sid": "session_id",
		},
		passes: []string{
			"userid", "entityid", "runtimesessionhint", "workspaceinstanceid",
			// What LibreChat adds to requests of its own.
			"executionroutekey", "environmenttype", "environmentid", "bridgeworkerid", "codesessionkey", "librechatcodeapikey", "apikey",
		},
	}
	toolWords = vocabulary{
		members: toolNames,
		guesses: map[string]string{
			"schema": "parameters", "jsonschema": "parameters", "parametersjsonschema": "parameters", "argsschema": "parameters",
			"params": "parameters", "arguments": "parameters", "args": "parameters", "properties": "parameters",
			"toolname": "name", "desc": "description", "docstring": "description", "func": "function",
		},
		passes: []string{
			"type", "title", "strict", "annotations", "outputschema", "inputexamples", "cachecontrol", "deferloading", "allowedcallers",
			"responseformat", "servername", "tooltype", "eagerinputstreaming", "icons", "meta", "execution",
		},
	}
	functionWords = vocabulary{
		members: functionNames,
		guesses: map[string]string{
			"inputschema": "parameters", "schema": "parameters", "jsonschema": "parameters", "parametersjsonschema": "parameters",
			"params": "parameters", "arguments": "parameters", "args": "parameters", "properties": "parameters",
			"desc": "description", "docstring": "description",
		},
		passes: []string{"strict"},
	}
	resultWords = vocabulary{
		members: resultNames,
		guesses: map[string]string{
			"error": "error_message", "errors": "error_message", "err": "error_message", "errormsg": "error_message", "errortext": "error_message",
			"message": "error_message", "exception": "error_message", "failure": "error_message",
			"output": "result", "outputs": "result", "content": "result", "value": "result", "data": "result", "response": "result",
			"return": "result", "returnvalue": "result", "toolresult": "result",
			"iserr": "is_error", "haserror": "is_error", "failed": "is_error", "success": "is_error", "ok": "is_error",
		},
	}
	outputWords = vocabulary{
		members: outputNames,
		guesses: map[string]string{
			"file": "path", "filename": "path", "mimetype": "mime", "mediatype": "mime", "contenttype": "mime",
			"desc": "description", "optional": "required", "minsize": "min_bytes", "minlength": "min_bytes",
		},
	}
	timelineWords = vocabulary{
		members: timelineNames,
		guesses: map[string]string{
			"turn": "turn_id", "callid": "tool_call_id", "toolcall": "tool_call_id", "toolname": "tool_id", "printed": "log",
		},
	}
	cancelWords = vocabulary{
		members: cancelNames,
		guesses: map[string]string{"token": "continuation_token", "sid": "session_id", "session": "session_id", "requestid": "request_id"},
		passes:  []string{"userid", "reason"},
	}
	fileWords = vocabulary{
		members: fileNames,
		guesses: map[string]string{"base64": "content", "data": "content", "text": "content", "body": "content"},
		passes: []string{
			// Answers have these, and clients send the files of answers.
			"inherited", "path", "modifiedfrom", "entityid", "size", "mime", "url",
		},
	}
)

// meant returns the member that a client must have meant by an unknown name, or "" if it may well
// have meant none.
func (v vocabulary) meant(name string) string {
	plain := plainName(name)
	if guess := v.guesses[plain]; guess != "" {
		return guess
	}
	if slices.Contains(v.passes, plain) {
		return ""
	}
	for _, m := range v.members {
		if v.guesses[m.plain] == "" && alike(plain, m.plain) {
			return m.name
		}
	}
	return ""
}

// alike reports whether a name is so near to a known one that it must be a slip of it. Of short names
// one letter may be wrong, and never the first, since many names differ in that alone.
func alike(name, known string) bool {
	const short, medium = 4, 8
	if name == known {
		return true
	}
	if min(len(name), len(known)) < short || name[0] != known[0] && (name[0] != known[1] || name[1] != known[0]) {
		return false
	}
	edits := 1
	if len(known) >= medium {
		edits = 2
	}
	return within(edits, name, known)
}

// within reports whether so many edits make one text out of another. An edit adds, drops or replaces
// a letter, or swaps two that are neighbours.
func within(edits int, a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	if edits == 0 {
		return false
	}
	swapped := len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0]
	return swapped && within(edits-1, a[2:], b[2:]) ||
		within(edits-1, a[1:], b[1:]) || within(edits-1, a[1:], b) || within(edits-1, a, b[1:])
}

// slip returns the refusal of the first of these names that is a slip, or nil. place returns where the
// objects of the vocabulary stand in a request.
func (v vocabulary) slip(names unknownNames, place func(at int) string) error {
	for _, n := range names {
		if meant := v.meant(n.name); meant != "" {
			return api.BadRequestf("%q%s is not known; did you mean %s?", n.name, place(n.at), meant)
		}
	}
	return nil
}

// slipIn returns the refusal of the first slip in a request, or nil. What a continuation does not
// read may have any names.
func slipIn(r request) error {
	if err := requestWords.slip(r.unknown, func(int) string { return "" }); err != nil {
		return err
	}
	if r.continues() {
		return resultSlip(r.Results)
	}
	if err := toolWords.slip(r.Tools.unknown, inArray("tools")); err != nil {
		return err
	}
	for i, t := range r.Tools.entries {
		place := func(int) string { return fmt.Sprintf(" in tools[%d].function", i) }
		if err := functionWords.slip(t.Function.unknown, place); err != nil {
			return err
		}
	}
	if err := fileWords.slip(r.Files.unknown, inArray("files")); err != nil {
		return err
	}
	if err := outputWords.slip(unknownInOutputs(r.Outputs), inArray("outputs")); err != nil {
		return err
	}
	return timelineWords.slip(unknownInTimeline(r.Timeline), func(int) string { return " in timeline" })
}

// unknownInOutputs returns the unknown names in the outputs of a contract.
func unknownInOutputs(value jsontext.Value) unknownNames {
	list := array[outputMembers]{limit: outputs.MaxOutputs, members: outputNames}
	// What is no such list, or is too large, is refused where it is read.
	if len(value) > outputs.MaxSize || unmarshal(value, &list) != nil {
		return nil
	}
	return list.unknown
}

// unknownInTimeline returns the unknown names in the member timeline.
func unknownInTimeline(value jsontext.Value) unknownNames {
	var m timelineMembers
	if value == nil || len(value) > maxTimeline || unmarshal(value, &m) != nil {
		return nil
	}
	return m.unknown
}

// resultSlip is slipIn for the results of a continuation.
func resultSlip(results array[resultMembers]) error {
	names := results.unknown
	if i := slices.IndexFunc(results.entries, func(entry resultMembers) bool { return entry.Guessed != nil }); i >= 0 {
		names = append(unknownNames{{"error", i}}, names...)
	}
	return resultWords.slip(names, inArray("tool_results"))
}

func inArray(name string) func(at int) string {
	return func(at int) string { return fmt.Sprintf(" in %s[%d]", name, at) }
}

// tolerate refuses what err says, but only warns of it if LibreChat has sent the request: an operator
// cannot change what LibreChat sends, and newer versions may send names that this server does not know.
func tolerate(c echo.Context, err error) error {
	if err == nil || !strings.HasPrefix(c.Request().UserAgent(), "LibreChat/") {
		return err
	}
	if refused, ok := errors.AsType[*api.Error](err); ok {
		api.Warn(c, refused.Text)
	}
	return nil
}
