package programs

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/tests/harness"
)

func described(name, parameters string) harness.Tool {
	return harness.Tool{Name: name, Parameters: json.RawMessage(parameters)}
}

// TestNamesOfOtherScripts calls tools, and passes arguments, whose names have letters beyond ASCII.
func TestNamesOfOtherScripts(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		grant := []harness.Tool{described("天气", `{"properties":{"ＩＤ":{},"from":{}},"required":["ＩＤ","from"]}`), described("météo", `{}`)}
		for code, input := range map[string]string{
			"x = await 天气(1, from_='a')":          `{"\uff29\uff24":1,"from":"a"}`,
			"x = await 天气(ＩＤ=1, **{'from': 'a'})": `{"\uff29\uff24":1,"from":"a"}`,
			"x = await météo(n=1)":                `{"n":1}`,
			"x = await mto(n=1)":                  `{"n":1}`,
		} {
			pause := c.Pause(t, harness.Program{Code: code, Tools: grant})
			if string(pause.Calls[0].Input) != input {
				t.Errorf("%s: got %s, want %s", code, pause.Calls[0].Input, input)
			}
			c.Post(t, pause.Continue(harness.Echo)).Completes(t, "")
		}
		for _, code := range []string{`天气 '{"ＩＤ":1,"from":2}'`, `tool '{"ＩＤ":1,"from":2}'`} {
			a, _ := c.Run(t, harness.Program{Code: code, Lang: "bash", Tools: grant}, harness.Echo)
			a.Completes(t, `{"ＩＤ":1,"from":2}`+"\n")
		}
		a := c.Post(t, harness.Program{Code: "print(1)", Tools: harness.Tools("...")})
		a.Completes(t, "1\n")
		harness.Contains(t, "stderr", a.Stderr, "call it as globals()['...'](...)")
	})
}

// TestArgumentsThatAreLeftOutOrMisspelled makes the mistakes that models make with arguments.
func TestArgumentsThatAreLeftOutOrMisspelled(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		shot := []harness.Tool{described("shot", `{"type":"object","properties":{"scale":{"enum":["css","device"],"default":"css"}},"required":["scale"]}`)}
		if pause := c.Pause(t, harness.Program{Code: "await shot()", Tools: shot}); string(pause.Calls[0].Input) != "{}" {
			t.Errorf("got %s, want an input without the default", pause.Calls[0].Input)
		}
		city := []harness.Tool{described("get_weather", `{"type":"object","properties":{"city":{"type":"string"},"days":{}},"required":["city"]}`)}
		a := c.Post(t, harness.Program{Code: "await get_weather('Paris', day=1)", Tools: city})
		if !strings.Contains(a.Error, "has no argument day; did you mean days?") {
			t.Errorf("got %v, want the error to name the right argument", a)
		}
		piped := c.Post(t, harness.Program{Code: `echo '{"city": "Paris"}' | get_weather`, Lang: "bash", Tools: city})
		if piped.Status == "tool_call_required" || !strings.Contains(piped.Stderr, "get_weather is missing the argument city") {
			t.Errorf("got %v, want no call and the missing argument on stderr", piped)
		}
	})
}
