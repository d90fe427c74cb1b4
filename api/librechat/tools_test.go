package librechat_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/stubs"
)

// TestToolShapes sends one tool in all shapes in which definitions are written.
func TestToolShapes(t *testing.T) {
	const schema = `{"type":"object", "properties":{"b":{}, "a":{}}}`
	tool := stubs.Tool{Name: "get-weather", Description: "d", Parameters: json.RawMessage(schema)}
	bare := stubs.Tool{Name: "get-weather", Description: "d"}
	for _, c := range []struct {
		name, definition string
		want             stubs.Tool
	}{
		{"parameters", `{"name":"get-weather","description":"d","parameters":` + schema + `}`, tool},
		{"Anthropic", `{"name":"get-weather","description":"d","input_schema":` + schema + `,"cache_control":{"type":"ephemeral"},"input_examples":[],"strict":true}`, tool},
		{"MCP", `{"name":"get-weather","title":"Weather","description":"d","inputSchema":` + schema + `,"outputSchema":{},"annotations":{},"icons":[],"_meta":{}}`, tool},
		{"OpenAI", `{"type":"function","function":{"name":"get-weather","description":"d","parameters":` + schema + `,"strict":true}}`, tool},
		{"OpenAI's newer shape", `{"type":"function","name":"get-weather","description":"d","parameters":` + schema + `,"strict":true,"function":null}`, tool},
		{"LibreChat", `{"name":"get-weather","description":"d","parameters":` + schema + `,"defer_loading":true,"allowed_callers":[],"responseFormat":"content","serverName":"s","toolType":"mcp"}`, tool},
		{"twice the same", `{"name":"get-weather","description":"d","input_schema":{"properties":{"b":{},"a":{}},"type":"object"},"function":{"name":"get-weather","description":"d","parameters":` + schema + `}}`, tool},
		{"one of them null", `{"name":"get-weather","description":"d","parameters":null,"inputSchema":` + schema + `}`, tool},
		{"no schema", `{"name":"get-weather","description":"d","type":"custom"}`, bare},
		{"null", `{"name":"get-weather","description":"d","parameters":null}`, bare},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := completed()
			if status, body := post(t, e, `{"code":"#","tools":[`+c.definition+`]}`); status != http.StatusOK {
				t.Fatalf("got %d %s, want 200", status, body)
			}
			if diff := cmp.Diff([]stubs.Tool{c.want}, e.starts[0].Tools); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTwins sends two definitions of one tool that mean the same.
func TestTwins(t *testing.T) {
	for _, tools := range []string{
		`{"name":"a"},{"name":"a"}`,
		`{"name":"a","parameters":{"x":[1],"y":{}}},{"name":"a","inputSchema":{"y":{},"x":[1.0]}}`,
		`{"name":"a","parameters":null,"description":""},{"function":{"name":"a"}}`,
	} {
		if status, body := post(t, completed(), `{"code":"#","tools":[`+tools+`]}`); status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", tools, status, body)
		}
	}
	// Large ones must have the same bytes.
	large := strings.Repeat("x", 32<<10)
	for other, want := range map[string]int{`{"x":"` + large + `"}`: http.StatusOK, `{"x": "` + large + `"}`: http.StatusBadRequest} {
		tools := `{"name":"a","parameters":{"x":"` + large + `"}},{"name":"a","parameters":` + other + `}`
		if status, _ := post(t, completed(), `{"code":"#","tools":[`+tools+`]}`); status != want {
			t.Errorf("two large schemas, the second one with %.10s…: got %d, want %d", other, status, want)
		}
	}
}
