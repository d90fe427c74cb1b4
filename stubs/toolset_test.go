package stubs

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestMethod(t *testing.T) {
	for name, want := range map[string]string{
		"current": "current", "get-current": "get_current", "a b": "a_b", "天気": "", "": "", "...": "", "import": "import_tool", "aio": "aio_tool",
		"mro": "mro_tool", "staticmethod": "staticmethod_tool", "__init__": "tool__init__", "_tool": "tool_tool", "__x": "tool__x", "1st": "tool_1st",
		"-": "tool_", "list": "list", "self": "self", "ａｉｏ": "", strings.Repeat("a", maxMethod+1): "", "pets.list": "petslist",
	} {
		if got := Method(name); got != want {
			t.Errorf("Method(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestClassName(t *testing.T) {
	for _, c := range []struct{ title, key, want string }{
		{"Weather", "w", "Weather"},
		{"current weather (beta)", "w", "CurrentWeatherBeta"},
		{"GitHub", "gh", "GitHub"},
		{"天気", "my_weather", "MyWeather"},
		{"", "weather_2", "Weather2"},
		{"3D", "three_d", "ThreeD"},
		{"none", "nothing", "Nothing"},
		{"none", "none", ""},
		{strings.Repeat("x", 65), "w", "W"},
	} {
		if got := ClassName(c.title, c.key); got != c.want {
			t.Errorf("ClassName(%q, %q) = %q, want %q", c.title, c.key, got, c.want)
		}
	}
}

// TestBashModule calls the functions in a shell.
func TestBashModule(t *testing.T) {
	source, err := BashModule(toolsetOf(Tool{Name: "get-current"}, Tool{Name: "天気"}, Tool{Name: "$(id); `id`"}, Tool{Name: "__init__"}),
		Toolset{Key: "set", Class: "Set", Tools: []Tool{{Name: "if"}}})
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eu\n__fermata_call() { printf '%s %s\\n' \"$@\"; }\n" + source + `weather_get_current '{"city": "Paris"}'; weather_id_id 1; weather_tool__init__ 2; set_if_tool 3`
	out, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, source)
	}
	if want := "weather.get_current {\"city\": \"Paris\"}\nweather.id_id 1\nweather.tool__init__ 2\nset.if_tool 3\n"; string(out) != want {
		t.Errorf("the functions print %q, want %q", out, want)
	}
}

func TestBashModuleCollision(t *testing.T) {
	_, err := BashModule(Toolset{Key: "a", Class: "A", Tools: []Tool{{Name: "b_c"}}}, Toolset{Key: "a_b", Class: "AB", Tools: []Tool{{Name: "c"}}})
	var got *BashCollisionError
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want a BashCollisionError", err)
	}
	if want := (CollisionError{First: "a.b_c", Second: "a_b.c", Identifier: "a_b_c"}); got.CollisionError != want {
		t.Errorf("collision = %+v, want %+v", got.CollisionError, want)
	}
}
