package journal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestCompactSize(t *testing.T) {
	for _, v := range []string{
		`{}`, ` { "a" : [ 1 , 2 ] } `, `"a b  c"`, `"a \" b"`, `"\\"`, ` [ "x\\\"y z" , { "k" : null } ] `, "\t[\n1\r]\n", `-1.5e3`, ` true `,
	} {
		want := jsontext.Value(v)
		if err := want.Compact(); err != nil {
			t.Fatal(err)
		}
		if got := compactSize([]byte(v)); got != len(want) {
			t.Errorf("compactSize(%q) = %d, want %d", v, got, len(want))
		}
	}
	// Text that is not JSON must not make compactSize loop.
	for _, v := range []string{`"`, `"\`, `["a`, `\`, ``} {
		compactSize([]byte(v))
	}
}

func TestHead(t *testing.T) {
	long := strings.Repeat("x", maxHead)
	for name, c := range map[string]struct{ value, want string }{
		"string":                {`"` + long + `yyy"`, long},
		"character at the cut":  {`"` + long[1:] + `äyyy"`, long[1:]},
		"escape at the cut":     {`"` + strings.Repeat(`\u00e4`, maxHead) + `"`, strings.Repeat("ä", maxHead/2)},
		"emoji at the cut":      {`"` + strings.Repeat(`\ud83d\ude00`, maxHead) + `"`, strings.Repeat("😀", maxHead/4)},
		"list":                  {`[ "` + long + `" ]`, `["` + long[2:]},
		"short string":          {`"a\nb"`, "a\nb"},
		"white space before it": {"\n  \"ab\"", "ab"},
	} {
		if got := headOf([]byte(c.value)); got != c.want {
			t.Errorf("%s: head of %d bytes %.20q…, want %d bytes %.20q…", name, len(got), got, len(c.want), c.want)
		}
	}
}

func TestLargeValue(t *testing.T) {
	w := NewWriter(Options{Mode: Full, Value: 10}, Summary{}, 1)
	for value, want := range map[string]string{
		``:                  `null`,
		`"12345678"`:        `"12345678"`,
		` [ 1, 2, 3, 4 ] `:  ` [ 1, 2, 3, 4 ] `,
		`"123456789"`:       `{"truncated":true,"bytes":11,"head":"123456789"}`,
		`[1, 2, 3, 4, 567]`: `{"truncated":true,"bytes":13,"head":"[1,2,3,4,567]"}`,
	} {
		if got := w.Value(json.RawMessage(value)); string(got) != want {
			t.Errorf("Value(%s) = %s, want %s", value, got, want)
		}
	}
	w.size = maxJournal + 1
	if got := w.Value(json.RawMessage(`"123456789"`)); string(got) != `{"truncated":true,"bytes":11,"head":""}` {
		t.Errorf("Value in a full journal = %s, want no head", got)
	}
}
