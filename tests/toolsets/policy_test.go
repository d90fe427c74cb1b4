package toolsets

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestStartsThatAreRefused asks for what is not there, or may not be used.
func TestStartsThatAreRefused(t *testing.T) {
	ask := func(names ...string) harness.Program { return harness.Program{Code: "print(1)", Toolsets: names} }
	cases := []struct {
		name     string
		settings harness.Settings
		program  harness.Program
		status   int
		pieces   []string
	}{
		{"an unknown toolset", nil, ask("weather", "wether"), 400, []string{"wether"}},
		{"an unknown tool", nil, ask("weather.now"), 400, []string{"weather", "now"}},
		{"another case", nil, ask("Weather"), 400, []string{"Weather"}},
		{"a blank behind", nil, ask("weather "), 400, []string{"weather "}},
		{"a star", nil, ask("*"), 400, []string{"*"}},
		{"an empty name", nil, ask(""), 400, nil},
		{"mode off", harness.Settings{"TOOLSETS_MODE": "off"}, ask("weather"), 403, []string{"weather", "FERMATA_TOOLSETS_MODE"}},
		{"mode partial", harness.Settings{"TOOLSETS_MODE": "partial", "TOOLSETS_USERS": "bob"}, ask("weather"), 403, []string{"weather", "FERMATA_TOOLSETS_USERS"}},
		{"not in ALLOW", harness.Settings{"TOOLSETS_ALLOW": "desk"}, ask("weather"), 403, []string{"weather", "FERMATA_TOOLSETS_ALLOW"}},
		{"in BLOCK and ALLOW", harness.Settings{"TOOLSETS_ALLOW": "desk,weather", "TOOLSETS_BLOCK": "weather"}, ask("weather"), 403, []string{"weather", "FERMATA_TOOLSETS_BLOCK"}},
		{"a tool in BLOCK", harness.Settings{"TOOLSETS_BLOCK": "weather.current"}, ask("weather.current"), 403, []string{"weather.current"}},
		{"opt-in without the word", harness.Settings{"TOOLSETS_DEBUG": "opt-in"}, ask("weather"), 403, []string{"weather", "FERMATA_TOOLSETS_DEBUG"}},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		if !strings.HasSuffix(s.Name, "+file") {
			return // Neither sandbox nor store has anything to do with it.
		}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				refused(t, standard(t, s, tc.settings).Post(t, tc.program), tc.status, tc.pieces...)
			})
		}
	})
}

// TestWhatPoliciesLeave checks that programs may use what the rules leave of a toolset, and nothing
// else.
func TestWhatPoliciesLeave(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, harness.Settings{
			"TOOLSETS_MODE": "partial", "TOOLSETS_USERS": "alice", "TOOLSETS_BLOCK": "weather.secret,desk", "TOOLSETS_DEBUG": "opt-in",
		})
		p := harness.Program{Title: "Try UsePTC here", Toolsets: []string{"weather"}, Code: harness.Py(`
			from fermata_tools.weather import Weather
			print(Weather.current(city="Rome")["city"], hasattr(Weather, "secret"))
		`)}
		d.Post(t, p).Completes(t, "Rome False\n")
		p.Title = "nothing"
		refused(t, d.Post(t, p), 403, "weather")
		p.Title, p.Toolsets = "useptc", []string{"weather", "desk.book"}
		refused(t, d.Post(t, p), 403, "desk")
	})
}

// TestCallers checks that a tool which programs may not call is not there for them.
func TestCallers(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		d.Post(t, program(key, `print(hasattr(HelpDesk, "direct"), hasattr(HelpDesk, "program"))`)).Completes(t, "False True\n")
	})
}

// policies are toolsets in which alice has a policy of her own.
const policies = harness.StandardToolsets + `
policies:
  small: {allow: [weather, desk.book], max_cost: 3}
principals: {alice: small}
`

// TestPolicyOfAPrincipal checks the policy that the file gives to one principal.
func TestPolicyOfAPrincipal(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		u, key := harness.NewUpstream(t), harness.NewKey()
		server := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, u, policies)})
		p := program(key, `
			print(HelpDesk.book(n=1, key=KEY)["n"], hasattr(HelpDesk, "queue"))
			try:
			    HelpDesk.book(n=2, key=KEY)
			except ToolExecutionError as e:
			    print(e)
		`)
		p.MaxCost = new(1000)
		server.Alice().Post(t, p).Completes(t, "1 False\nthe call costs 3 and is not made: the execution may spend 3 in all, and 3 are spent or reserved\n")
		refused(t, server.Alice().Post(t, harness.Program{Code: "1", Toolsets: []string{"desk.queue"}}), 403, "desk.queue", "small")
		server.Bob().Post(t, harness.Program{Code: "1", Toolsets: []string{"desk.queue"}}).Completes(t, "")
	})
}

// TestMistakesAtTheStart checks that a server with a mistake in its toolsets does not start, and says
// where the mistake is.
func TestMistakesAtTheStart(t *testing.T) {
	t.Parallel()
	u := harness.NewUpstream(t)
	cases := []struct {
		name, text string
		settings   harness.Settings
		pieces     []string
	}{
		{"an unknown member", "toolsets:\n  weather:\n    https: {}\n", nil, []string{"toolsets.yaml:3", "https"}},
		{"a typo in BLOCK", harness.StandardToolsets, harness.Settings{"TOOLSETS_BLOCK": "wether"}, []string{"wether"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			all := harness.With(harness.Common, tc.settings, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, u, tc.text)})
			server, err := harness.StartServer(all)
			if err == nil {
				harness.StopAfter(t, server)
				t.Fatal("the server has started")
			}
			harness.Contains(t, "the error", err.Error(), tc.pieces...)
		})
	}
}
