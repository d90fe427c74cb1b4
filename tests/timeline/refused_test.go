package timeline

import (
	"strconv"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// mistakes are values of outputs, on_missing and timeline that are refused, each with the text that
// names the member and the limit.
var mistakes = []struct {
	member string
	value  any
	text   string
}{
	{"outputs", "report.pdf", "outputs must be an array, whose entries are paths or objects with a path"},
	{"outputs", many(51), "outputs must have at most 50 entries"},
	{"outputs", []any{object{"path": "a", "x": strings.Repeat("x", 65536)}}, "outputs must have at most 65536 bytes"},
	{"outputs", []any{"a", 7}, "outputs[1] must be a path or an object with a path"},
	{"outputs", []any{object{"required": true}}, "outputs[0].path must be a string"},
	{"outputs", []any{""}, "outputs[0].path must not be empty"},
	{"outputs", []any{"/mnt/data/a"}, "outputs[0].path must be a relative path"},
	{"outputs", []any{"a", "turn_1/files/../../x"}, "outputs[1].path must not contain empty, . or .. segments"},
	{"outputs", []any{"./a"}, "outputs[0].path must not contain empty, . or .. segments"},
	{"outputs", []any{"a//b"}, "outputs[0].path must not contain empty, . or .. segments"},
	{"outputs", []any{"a\nSucceeded:"}, "outputs[0].path must not contain control characters or backslashes"},
	{"outputs", []any{`a\b`}, "outputs[0].path must not contain control characters or backslashes"},
	{"outputs", []any{"1/2/3/4/5/6/7/8/9"}, "outputs[0].path must be at most 8 levels deep"},
	{"outputs", []any{strings.Repeat("a", 257)}, "outputs[0].path must not be longer than 256 characters"},
	{"outputs", []any{"a", "b", object{"path": "a"}}, "outputs[2].path is the same file as outputs[0].path"},
	{"outputs", []any{"turn_1/files/a", "a"}, "outputs[1].path is the same file as outputs[0].path"},
	{"outputs", []any{"\u00fc", "u\u0308"}, "outputs[1].path is the same file as outputs[0].path"},
	{"outputs", []any{object{"path": "a", "description": strings.Repeat("x", 1001)}}, "outputs[0].description must be a string of at most 1000 characters"},
	{"outputs", []any{object{"path": "a", "mime": "text/html\r\nA: b"}}, "outputs[0].mime must be a media type without parameters, such as application/pdf"},
	{"outputs", []any{object{"path": "a", "required": "no"}}, "outputs[0].required must be true or false"},
	{"outputs", []any{object{"path": "a", "min_bytes": -1}}, "outputs[0].min_bytes must be a whole number from 0 to 1000000000"},
	{"outputs", []any{object{"path": "a", "visibility": "hidden"}}, `outputs[0].visibility must be "external" or "internal"`},
	{"outputs", []any{object{"path": "a", "minBytes": 7}}, `"minBytes" in outputs[0] is not known; did you mean min_bytes?`},
	{"outputs", []any{object{"path": "a", "requierd": false}}, `"requierd" in outputs[0] is not known; did you mean required?`},
	{"on_missing", "ignore", `on_missing must be "error" or "report"`},
	{"timeline", []any{}, "timeline must be an object"},
	{"timeline", object{"x": strings.Repeat("x", 65536)}, "timeline must have at most 65536 bytes"},
	{"timeline", object{"turn_id": "../x"}, "timeline.turn_id must have 1 to 128 characters of A-Z, a-z, 0-9, _, . and -, and begin with a letter or a digit"},
	{"timeline", object{"tool_call_id": "x.result"}, "timeline.tool_call_id must not end like a path of a block, or like the id of an inner call: .call, .notice, .result, .call_001"},
	{"timeline", object{"log": "yes"}, "timeline.log must be true or false"},
	{"timeline", object{"turnId": "turn_1"}, `"turnId" in timeline is not known; did you mean turn_id?`},
	{"timeline", object{"inlcude": true}, `"inlcude" in timeline is not known; did you mean include?`},
}

type object = map[string]any

func many(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = strconv.Itoa(i)
	}
	return list
}

// TestMistakes: whatever is wrong with a contract, the request is refused by its name and nothing runs.
func TestMistakes(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		for _, p := range paths {
			for _, m := range mistakes {
				refuses(t, p.post(t, c, body("print(1)", object{m.member: m.value})), m.text)
			}
		}
	})
}

// TestTimelineWithoutJournal: where journals do not keep everything a start with timeline is refused.
func TestTimelineWithoutJournal(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, harness.Settings{"JOURNAL": "calls"})
		for _, p := range paths {
			a := p.post(t, c, body("print(1)", object{"timeline": object{}}))
			refuses(t, a, "timeline needs journals that keep everything: this server's FERMATA_JOURNAL is not full")
		}
	})
}
