package contract

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// libreChat is the header by which LibreChat is known.
var libreChat = http.Header{"User-Agent": {"LibreChat/1.0"}}

// TestSlips sends names that are nearly those of members: the error has both names, nothing runs, and
// a paused program stays paused.
func TestSlips(t *testing.T) {
	starts := map[string]map[string]string{
		harness.Programmatic: {
			`"timeut":3000`:                     `"timeut" is not known; did you mean timeout?`,
			`"tool":[{"name":"a"}]`:             `"tool" is not known; did you mean tools?`,
			`"sessionId":"x"`:                   `"sessionId" is not known; did you mean session_id?`,
			`"tools":[{"name":"a","schema":1}]`: `"schema" in tools[0] is not known; did you mean parameters?`,
			`"tools":[{"name":"a"},{"type":"function","function":{"name":"b","paramerers":{}}}]`: `"paramerers" in tools[1].function is not known; did you mean parameters?`,
			`"files":[{"Name":"a"}]`: `"Name" in files[0] is not known; did you mean name?`,
		},
		"/exec": {
			`"lang":"py","timeut":3000`:          `"timeut" is not known; did you mean timeout?`,
			`"lang":"py","arg":["a"]`:            `"arg" is not known; did you mean args?`,
			`"lang":"py","tools":[{"name":"a"}]`: "tools are not available to programs on /exec: post programs that call tools to /exec/programmatic",
		},
	}
	results := map[string]string{
		`{"call_id":"call_001","error":"boom"}`:              `"error" in tool_results[0] is not known; did you mean error_message?`,
		`{"call_id":"call_001","result":1,"errors":null}`:    `"errors" in tool_results[0] is not known; did you mean error_message?`,
		`{"call_id":"call_001","isError":true}`:              `"isError" in tool_results[0] is not known; did you mean is_error?`,
		`{"call_id":"call_001","output":{"celsius":21}}`:     `"output" in tool_results[0] is not known; did you mean result?`,
		`{"call_id":"call_001","content":[],"x":"y"}`:        `"content" in tool_results[0] is not known; did you mean result?`,
		`{"callId":"call_001","result":1}`:                   `"callId" in tool_results[0] is not known; did you mean call_id?`,
		`{"call_id":"call_001","result":1,"eror_message":1}`: `"eror_message" in tool_results[0] is not known; did you mean error_message?`,
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		send := func(t *testing.T, path string, header http.Header, body string) harness.Answer {
			t.Helper()
			a, err := c.Request(t.Context(), http.MethodPost, path, header, body)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		for path, bodies := range starts {
			for members, text := range bodies {
				body := harness.RequestJSON(members)
				if a := send(t, path, nil, body); a.HTTPStatus != 400 || a.Error != text {
					t.Errorf("%s %s: got %v, want 400 and %q", path, body, a, text)
				}
			}
		}
		pause := c.Pause(t, harness.AskOnce)
		for entry, text := range results {
			body := `{"continuation_token":"` + pause.Token + `","tool_results":[` + entry + `]}`
			send(t, harness.Programmatic, nil, body).Fails(t, 400, text)
		}
		c.Post(t, pause.Continue(harness.Value(`"still here"`))).Completes(t, "still here\n")
	})
}

// TestNamesThatPass sends names that mean no member: those that clients are known to send, and new
// ones.
func TestNamesThatPass(t *testing.T) {
	const own = `"executionRouteKey":"k","environmentType":"t","environmentId":"e","bridgeWorkerId":"w","codeSessionKey":"s","LIBRECHAT_CODE_API_KEY":"x",` +
		`"user_id":"u","entity_id":"e","runtime_session_hint":"h","workspace_instance_id":"w","metadata":{},"stream":false,"mode":1`
	const definition = `{"name":"ask","description":"d","defer_loading":true,"allowed_callers":["direct"],"responseFormat":"content","serverName":"s","toolType":"mcp",` +
		`"cache_control":{"type":"ephemeral"},"strict":true,"annotations":{"title":"t"},"output_schema":{},"outputSchema":{},"title":"Ask","input_examples":[],"type":"custom","x":1}`
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		c.Post(t, harness.RequestJSON(own+`,"tools":[`+definition+`]`)).Completes(t, "1\n")
		a, err := c.Request(t.Context(), http.MethodPost, "/exec", nil, harness.RequestJSON(`"lang":"py","tools":[],`+own))
		if err != nil || a.Stdout != "1\n" {
			t.Errorf("got %v %v, want it run", a, err)
		}
		pause := c.Pause(t, harness.AskOnce)
		c.Post(t, `{"continuation_token":"`+pause.Token+`","user_id":"u","tool_results":[{"call_id":"call_001","id":"call_001","name":"ask","input":{},"duration_ms":5,"result":2}]}`).
			Completes(t, "2\n")
	})
}

// TestFailedResults sends results of tools that failed in all ways that count: the program gets an
// exception, never a value.
func TestFailedResults(t *testing.T) {
	program := harness.Program{
		Code:  "try:\n    print('value', await ask(n=1))\nexcept ToolExecutionError as e:\n    print('failed', e)",
		Tools: harness.Tools("ask"),
	}
	cases := []struct {
		members, stdout string
		header          http.Header
	}{
		{`"is_error":true,"error_message":"boom"`, "failed boom\n", nil},
		{`"error_message":"boom"`, "failed boom\n", nil},
		{`"error_message":"boom","result":1`, "failed boom\n", nil},
		{`"error_message":""`, "failed tool execution failed\n", nil},
		{`"error_message":null,"result":1`, "value 1\n", nil},
		{`"error":"boom"`, "failed boom\n", libreChat},
		{`"error":{"code":1},"result":1`, "failed tool execution failed\n", libreChat},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			pause := c.Pause(t, program)
			body := `{"continuation_token":"` + pause.Token + `","tool_results":[{"call_id":"call_001",` + tc.members + `}]}`
			a, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic, tc.header, body)
			if err != nil || a.Stdout != tc.stdout {
				t.Errorf("%s: got %v %v, want %q", tc.members, a, err, tc.stdout)
			}
		}
	})
}

// TestToolShapes gives a program one tool in each shape in which definitions are written: its
// signature is the same.
func TestToolShapes(t *testing.T) {
	const schema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	shapes := map[string]string{
		"parameters": `{"name":"get-weather","description":"Weather.","parameters":` + schema + `}`,
		"Anthropic":  `{"name":"get-weather","description":"Weather.","input_schema":` + schema + `}`,
		"MCP":        `{"name":"get-weather","description":"Weather.","inputSchema":` + schema + `}`,
		"OpenAI":     `{"type":"function","function":{"name":"get-weather","description":"Weather.","parameters":` + schema + `}}`,
		"all":        `{"name":"get-weather","description":"Weather.","inputSchema":` + schema + `,"function":{"parameters":` + schema + `}}`,
	}
	const code = "import inspect\nprint(list(inspect.signature(get_weather).parameters)[0], inspect.getdoc(get_weather).split()[0])\nprint(await get_weather('Paris'))"
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for name, definition := range shapes {
			t.Run(name, func(t *testing.T) {
				body, err := json.Marshal(code)
				if err != nil {
					t.Fatal(err)
				}
				pause := c.Post(t, `{"code":`+string(body)+`,"tools":[`+definition+`]}`)
				if len(pause.Calls) != 1 || pause.Calls[0].Name != "get-weather" {
					t.Fatalf("got %v, want a call of get-weather", pause)
				}
				c.Post(t, pause.Continue(harness.Echo)).Completes(t, "city Weather.\n{'city': 'Paris'}\n")
			})
		}
	})
}

// TestSlipsOfLibreChat sends a slip as LibreChat: the program runs, and the log has a warning.
func TestSlipsOfLibreChat(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		a, err := server.Alice().Request(t.Context(), http.MethodPost, harness.Programmatic, libreChat, harness.RequestJSON(`"timeut":3000`))
		if err != nil || a.Stdout != "1\n" {
			t.Errorf("got %v %v, want it run", a, err)
		}
		// The line is written after the answer.
		err = harness.Within(10*time.Second, func() error {
			for line := range strings.Lines(server.Log.All()) {
				if strings.Contains(line, "level=WARN") && strings.Contains(line, "did you mean timeout?") {
					return nil
				}
			}
			return errors.New("the log has no warning")
		})
		if err != nil {
			t.Error(err, server.Log.All())
		}
	})
}
