package outputs_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/outputs"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name  string
		least int64
		found outputs.Found
		want  outputs.Judged
	}{
		{"nothing is there", 1, outputs.Found{}, outputs.Judged{State: outputs.Missing, Error: "file not produced"}},
		{
			"produced", 1,
			outputs.Found{State: outputs.Produced, ID: "1", Size: 1, Type: "text/csv"},
			outputs.Judged{State: outputs.Produced, ID: "1", Size: 1, Type: "text/csv"},
		},
		{"empty", 1, outputs.Found{State: outputs.Produced, ID: "1"}, outputs.Judged{State: outputs.Empty, Error: "file is empty"}},
		{"empty, where more is wanted", 100, outputs.Found{State: outputs.Produced, ID: "1"}, outputs.Judged{State: outputs.Empty, Error: "file is empty"}},
		{"empty, as it may be", 0, outputs.Found{State: outputs.Produced, ID: "1"}, outputs.Judged{State: outputs.Produced, ID: "1"}},
		{
			"too small", 100,
			outputs.Found{State: outputs.Produced, ID: "1", Size: 99},
			outputs.Judged{State: outputs.TooSmall, ID: "1", Size: 99, Error: "file has 99 of at least 100 bytes"},
		},
		{"just large enough", 100, outputs.Found{State: outputs.Produced, ID: "1", Size: 100}, outputs.Judged{State: outputs.Produced, ID: "1", Size: 100}},
		{"too large", 1, outputs.Found{State: outputs.TooLarge, Size: 1 << 40}, outputs.Judged{State: outputs.TooLarge, Size: 1 << 40, Error: "file is too large"}},
		{"a link", 0, outputs.Found{State: outputs.NotRegular}, outputs.Judged{State: outputs.NotRegular, Error: "not a regular file"}},
		{"unreadable", 1, outputs.Found{State: outputs.Unreadable}, outputs.Judged{State: outputs.Unreadable, Error: "file cannot be read"}},
		{"undelivered", 1, outputs.Found{State: outputs.Undelivered}, outputs.Judged{State: outputs.Undelivered, Error: "file could not be stored"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			contract := outputs.Contract{Turn: "turn_1", Outputs: []outputs.Output{
				{Path: "asked", File: "file", Required: true, MinBytes: c.least}, {Path: "other", File: "other", Required: true, MinBytes: 1},
			}}
			c.want.Path = "asked"
			got := contract.Judge(map[string]outputs.Found{"file": c.found, "asked": {State: outputs.Produced, Size: 7}})
			want := []outputs.Judged{c.want, {Path: "other", State: outputs.Missing, Error: "file not produced"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The media type that a request declares takes precedence over the one of the file.
func TestJudgeTypes(t *testing.T) {
	contract := outputs.Contract{Outputs: []outputs.Output{{Path: "a", File: "a", Type: "text/markdown", MinBytes: 1}}}
	got := contract.Judge(map[string]outputs.Found{"a": {State: outputs.Produced, Size: 1, Type: "text/plain"}})
	if got[0].Type != "text/markdown" {
		t.Errorf("got %+v, want the declared type", got[0])
	}
}

func TestDirectory(t *testing.T) {
	for _, c := range []struct {
		files []string
		want  string
	}{
		{nil, ""},
		{[]string{"a", "turn_2/files/a", "turn_1/files", "turn_1/filesx/a"}, ""},
		{[]string{"a", "turn_1/files/b/c"}, "turn_1/files"},
	} {
		contract := outputs.Contract{Turn: "turn_1"}
		for _, f := range c.files {
			contract.Outputs = append(contract.Outputs, outputs.Output{Path: f, File: f})
		}
		if got := contract.Directory(); got != c.want {
			t.Errorf("directory of %v is %q, want %q", c.files, got, c.want)
		}
		if got := contract.Files(); !slices.Equal(got, c.files) {
			t.Errorf("files of %v are %v", c.files, got)
		}
	}
}
