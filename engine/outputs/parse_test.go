package outputs_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fermata/engine/outputs"
)

func TestParse(t *testing.T) {
	t.Parallel()
	plain := func(path, name string) outputs.Output {
		return outputs.Output{Path: path, File: path, Name: name, Required: true, MinBytes: 1}
	}
	for _, test := range []struct {
		name, sent string
		want       []outputs.Output
	}{
		{"nothing", ``, nil},
		{"null", ` null `, nil},
		{"none", `[]`, nil},
		{"a path", `["report.pdf"]`, []outputs.Output{plain("report.pdf", "report.pdf")}},
		{"an object with a path", `[ {"path": "a/b.csv"} ]`, []outputs.Output{plain("a/b.csv", "a/b.csv")}},
		{
			"everything", `[{"path":"x.svg","description":"A\nplot","mime":"Image/SVG+xml","required":false,"min_bytes":0,"visibility":"internal"}]`,
			[]outputs.Output{{Path: "x.svg", File: "x.svg", Name: "x.svg", Description: "A\nplot", Type: "image/svg+xml", Internal: true}},
		},
		{
			"members that are null", `[{"path":"x","description":null,"mime":null,"required":null,"min_bytes":null,"visibility":null}]`,
			[]outputs.Output{plain("x", "x")},
		},
		{"the usual visibility", `[{"path":"x","visibility":"external","required":true,"min_bytes":1}]`, []outputs.Output{plain("x", "x")}},
		{"the directory of the turn", `["turn_1/files/a/x"]`, []outputs.Output{plain("turn_1/files/a/x", "a/x")}},
		{"the directory of another turn", `["turn_2/files/x"]`, []outputs.Output{plain("turn_2/files/x", "turn_2/files/x")}},
		{"case tells files apart", `["a","A"]`, []outputs.Output{plain("a", "a"), plain("A", "A")}},
		{"eight levels", `["1/2/3/4/5/6/7/8"]`, []outputs.Output{plain("1/2/3/4/5/6/7/8", "1/2/3/4/5/6/7/8")}},
		{
			"eight levels in the directory of the turn", `["turn_1/files/1/2/3/4/5/6/7/8"]`,
			[]outputs.Output{plain("turn_1/files/1/2/3/4/5/6/7/8", "1/2/3/4/5/6/7/8")},
		},
		{"a member of a later version", `[{"path":"x","colour":"red"}]`, []outputs.Output{plain("x", "x")}},
		{"names of members are exact", `[{"path":"x","Required":false}]`, []outputs.Output{plain("x", "x")}},
		{"the last of two equal names", `[{"path":"y","path":"x"}]`, []outputs.Output{plain("x", "x")}},
		{"half a surrogate pair", `["\ud800"]`, []outputs.Output{plain("\uFFFD", "\uFFFD")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := outputs.Parse(json.RawMessage(test.sent), "turn_1")
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestParseLimits(t *testing.T) {
	t.Parallel()
	paths := make([]string, outputs.MaxOutputs+1)
	for i := range paths {
		paths[i] = strconv.Itoa(i)
	}
	for n, want := range map[int]string{outputs.MaxOutputs: "", outputs.MaxOutputs + 1: "outputs must have at most 50 entries"} {
		sent, err := json.Marshal(paths[:n])
		if err != nil {
			t.Fatal(err)
		}
		list, err := outputs.Parse(sent, "turn_1")
		if want == "" && (err != nil || len(list) != n) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d outputs: %d, %v, want %q", n, len(list), err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const (
		array    = "outputs must be an array, whose entries are paths or objects with a path"
		control  = "outputs[0].path must not contain control characters or backslashes"
		segments = "outputs[0].path must not contain empty, . or .. segments"
		again    = "outputs[1].path is the same file as outputs[0].path"
		size     = "outputs[0].min_bytes must be a whole number from 0 to 1000000000"
		media    = "outputs[0].mime must be a media type without parameters, such as application/pdf"
	)
	object := func(member string) string { return `[{"path":"x",` + member + `}]` }
	for _, test := range []struct{ sent, want string }{
		{`{}`, array},
		{`"report.pdf"`, array},
		{`7`, array},
		{`[7]`, "outputs[0] must be a path or an object with a path"},
		{`["a",null]`, "outputs[1] must be a path or an object with a path"},
		{`[["a"]]`, "outputs[0] must be a path or an object with a path"},
		{`[{}]`, "outputs[0].path must be a string"},
		{`[{"path":null}]`, "outputs[0].path must be a string"},
		{`[{"path":7}]`, "outputs[0].path must be a string"},
		{`[{"Path":"x"}]`, "outputs[0].path must be a string"},
		{`[""]`, "outputs[0].path must not be empty"},
		{`["/mnt/data/x"]`, "outputs[0].path must be a relative path"},
		{`["../x"]`, segments},
		{`["a/../../x"]`, segments},
		{`["turn_1/files/../../x"]`, segments},
		{`["./a"]`, segments},
		{`["a//b"]`, segments},
		{`["turn_1/files//b"]`, segments},
		{`["a/"]`, "outputs[0].path must not end with a slash"},
		{`["turn_1/files/"]`, "outputs[0].path must not end with a slash"},
		{`["a\\b"]`, control},
		{`["a\nSucceeded:"]`, control},
		{`["a\u0085b"]`, control},
		{`["a\u2028b"]`, control},
		{`["a\u0000"]`, control},
		{`["a\u202eb"]`, control},
		{`["` + strings.Repeat("a", 257) + `"]`, "outputs[0].path must not be longer than 256 characters"},
		{`["a","1/2/3/4/5/6/7/8/9"]`, "outputs[1].path must be at most 8 levels deep"},
		{`["turn_1/files/1/2/3/4/5/6/7/8/9"]`, "outputs[0].path must be at most 8 levels deep"},
		{`["a",{"path":"a"}]`, again},
		{`["a","turn_1/files/a"]`, again},
		{`["\u00fc","u\u0308"]`, again},
		{object(`"description":7`), "outputs[0].description must be a string of at most 1000 characters"},
		{object(`"description":"` + strings.Repeat("ü", 1001) + `"`), "outputs[0].description must be a string of at most 1000 characters"},
		{object(`"mime":7`), media},
		{object(`"mime":"pdf"`), media},
		{object(`"mime":"text/html; charset=utf-8"`), media},
		{object(`"mime":"text/html\r\nSet-Cookie: a"`), media},
		{object(`"mime":"text/html\n"`), media},
		{object(`"mime":"a/` + strings.Repeat("b", 64) + `"`), media},
		{object(`"required":"yes"`), "outputs[0].required must be true or false"},
		{object(`"min_bytes":-1`), size},
		{object(`"min_bytes":1.5`), size},
		{object(`"min_bytes":"1"`), size},
		{object(`"min_bytes":1000000001`), size},
		{object(`"min_bytes":99999999999999999999`), size},
		{object(`"visibility":"hidden"`), `outputs[0].visibility must be "external" or "internal"`},
		{object(`"visibility":true`), `outputs[0].visibility must be "external" or "internal"`},
	} {
		t.Run(test.sent[:min(len(test.sent), 40)], func(t *testing.T) {
			t.Parallel()
			_, err := outputs.Parse(json.RawMessage(test.sent), "turn_1")
			mistake, ok := errors.AsType[*outputs.MistakeError](err)
			if !ok || mistake.Text != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
