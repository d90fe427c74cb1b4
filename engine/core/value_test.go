package core

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// What a program returns is checked again, since the program can have forged it.
func TestReturned(t *testing.T) {
	long := `"` + strings.Repeat("x", maxValue-2) + `"`
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for _, c := range []struct{ name, value, want string }{
		{"nothing", ``, ``},
		{"null", `null`, ``},
		{"null with space", ` null `, ``},
		{"a number keeps its digits", `1.000000000000000000001e400`, `1.000000000000000000001e400`},
		{"an empty text", `""`, `""`},
		{"no space is left", `{"a": [1, true]}`, `{"a":[1,true]}`},
		{"half a surrogate pair", `"\ud800é"`, `"` + "\uFFFDé" + `"`},
		{"what is not UTF-8", "\"\xff\"", `"` + "\uFFFD" + `"`},
		{"the largest", long, long},
		{"too large", `"x` + long[1:], ``},
		{"the deepest", deep, deep},
		{"too deep", `[` + deep + `]`, ``},
		{"a name twice", `{"a":1,"a":2}`, ``},
		{"no JSON", `{`, ``},
		{"two values", `1 2`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(returned(jsontext.Value(c.value))); got != c.want {
				t.Errorf("returned = %.100q, want %.100q", got, c.want)
			}
		})
	}
}
