package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// toolsets are those of the tests. The tools of late are not known yet.
var toolsets = []policy.Toolset{
	{Key: "weather", Tools: []string{"current", "forecast"}, Complete: true},
	{Key: "github", Tools: []string{"search_code", "get-file", "a.b"}, Complete: true},
	{Key: "late"},
	{Key: "empty", Complete: true},
}

// file returns the policies of the tests. Each has a principal with the same name.
func file() *config.File {
	f := &config.File{
		Policies: map[string]config.Policy{
			"reader": {Allow: []string{"weather", "github.search_code"}, Block: []string{"weather.forecast"}, MaxCost: new(int64(10))},
			"off":    {Off: true},
			"none":   {Allow: []string{}},
			"free":   {MaxCost: new(int64(0)), MaxDayCost: new(int64(20))},
			"block":  {Block: []string{"github"}},
		},
		Principals: map[string]string{},
	}
	for name := range f.Policies {
		f.Principals[name] = name
	}
	return f
}

// newPolicy makes a policy.
func newPolicy(t *testing.T, s policy.Settings) *policy.Policy {
	t.Helper()
	p, _, err := policy.New(s, file(), toolsets)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTool asks for tools under many settings. The wanted text is that of the refusal.
func TestTool(t *testing.T) {
	for name, c := range map[string]struct {
		settings  policy.Settings
		principal string
		tool      policy.Name
		want      string
	}{
		"nothing is set":           {policy.Settings{}, "alice", policy.Name{"weather", "current"}, ""},
		"mode on":                  {policy.Settings{Mode: policy.On}, "alice", policy.Name{"weather", "current"}, ""},
		"mode off":                 {policy.Settings{Mode: policy.Off}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_MODE is off"},
		"mode off, users":          {policy.Settings{Mode: policy.Off, Users: []string{"alice"}}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_MODE is off"},
		"partial, named":           {policy.Settings{Mode: policy.Partial, Users: []string{"bob", "alice"}}, "alice", policy.Name{"weather", "current"}, ""},
		"partial, not named":       {policy.Settings{Mode: policy.Partial, Users: []string{"bob", "Alice"}}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_MODE is partial and FERMATA_TOOLSETS_USERS does not name the principal"},
		"partial, named, but off":  {policy.Settings{Mode: policy.Partial, Users: []string{"off"}}, "off", policy.Name{"weather", "current"}, "the tool weather.current may not be used: the policy off is off"},
		"allow a toolset":          {policy.Settings{Allow: []string{"weather"}}, "alice", policy.Name{"weather", "forecast"}, ""},
		"allow another toolset":    {policy.Settings{Allow: []string{"weather"}}, "alice", policy.Name{"github", "search_code"}, "the tool github.search_code may not be used: FERMATA_TOOLSETS_ALLOW does not allow it"},
		"allow a tool":             {policy.Settings{Allow: []string{"github.a.b"}}, "alice", policy.Name{"github", "a.b"}, ""},
		"allow another tool":       {policy.Settings{Allow: []string{"github.get-file"}}, "alice", policy.Name{"github", "get_file"}, "the tool github.get_file may not be used: FERMATA_TOOLSETS_ALLOW does not allow it"},
		"block a toolset":          {policy.Settings{Block: []string{"weather"}}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		"block a tool":             {policy.Settings{Block: []string{"weather.current"}}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		"block another tool":       {policy.Settings{Block: []string{"weather.current"}}, "alice", policy.Name{"weather", "forecast"}, ""},
		"block wins over allow":    {policy.Settings{Allow: []string{"weather.current"}, Block: []string{"weather"}}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		"policy allows":            {policy.Settings{}, "reader", policy.Name{"weather", "current"}, ""},
		"policy blocks":            {policy.Settings{}, "reader", policy.Name{"weather", "forecast"}, "the tool weather.forecast may not be used: the policy reader blocks it"},
		"policy does not allow":    {policy.Settings{}, "reader", policy.Name{"github", "a.b"}, "the tool github.a.b may not be used: the policy reader does not allow it"},
		"policy allows nothing":    {policy.Settings{}, "none", policy.Name{"weather", "current"}, "the tool weather.current may not be used: the policy none does not allow it"},
		"policy of another":        {policy.Settings{}, "Reader", policy.Name{"weather", "forecast"}, ""},
		"allow lists intersect":    {policy.Settings{Allow: []string{"github"}}, "reader", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_ALLOW does not allow it"},
		"allow lists intersect 2":  {policy.Settings{Allow: []string{"github"}}, "reader", policy.Name{"github", "get-file"}, "the tool github.get-file may not be used: the policy reader does not allow it"},
		"allow lists intersect 3":  {policy.Settings{Allow: []string{"github"}}, "reader", policy.Name{"github", "search_code"}, ""},
		"block lists unite":        {policy.Settings{Block: []string{"weather"}}, "block", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		"block lists unite 2":      {policy.Settings{Block: []string{"weather"}}, "block", policy.Name{"github", "a.b"}, "the tool github.a.b may not be used: the policy block blocks it"},
		"block wins over the mode": {policy.Settings{Mode: policy.Off, Block: []string{"weather"}}, "alice", policy.Name{"weather", "current"}, "the tool weather.current may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		"debug is for starts only": {policy.Settings{Debug: policy.OptIn}, "alice", policy.Name{"weather", "current"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := newPolicy(t, c.settings).Rights(c.principal).Tool(c.tool)
			if got := text(err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			var refusal *policy.Refusal
			if c.want != "" && (!errors.As(err, &refusal) || refusal.Toolset != c.tool.Toolset || refusal.Tool != c.tool.Tool) {
				t.Errorf("the refusal is %+v", refusal)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestStart asks for toolsets. The wanted text has the granted tools and the toolsets that are waited for, or
// is the error.
func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		settings  policy.Settings
		principal string
		asked     string
		title     string
		want      string
	}{
		"a toolset":                {policy.Settings{}, "alice", "weather", "", "weather.current weather.forecast"},
		"a tool":                   {policy.Settings{}, "alice", "github.a.b", "", "github.a.b"},
		"tools twice":              {policy.Settings{}, "alice", "weather.forecast weather weather", "", "weather.forecast weather.current"},
		"nothing":                  {policy.Settings{}, "alice", "", "", ""},
		"an empty toolset":         {policy.Settings{}, "alice", "empty", "", ""},
		"a late toolset":           {policy.Settings{}, "alice", "late late weather.current", "", "weather.current, waits for late"},
		"a late tool":              {policy.Settings{}, "alice", "late.tool", "", `unknown: the toolset late has no tool "tool"; incomplete`},
		"a late toolset is off":    {policy.Settings{}, "off", "late", "", "the toolset late may not be used: the policy off is off"},
		"a late toolset in part":   {policy.Settings{Allow: []string{"weather", "late.tool"}}, "alice", "late", "", ", waits for late"},
		"a late toolset, refused":  {policy.Settings{Allow: []string{"weather"}}, "alice", "late", "", "the toolset late may not be used: FERMATA_TOOLSETS_ALLOW does not allow it"},
		"an unknown toolset":       {policy.Settings{}, "alice", "weather Weather", "", `unknown: there is no toolset "Weather"`},
		"an unknown tool":          {policy.Settings{}, "alice", "weather.Current", "", `unknown: the toolset weather has no tool "Current"`},
		"an unknown, refused tool": {policy.Settings{Block: []string{"weather"}}, "alice", "weather.Current", "", `the tool weather.Current may not be used: FERMATA_TOOLSETS_BLOCK blocks it`},
		"in part":                  {policy.Settings{}, "reader", "weather github", "", "weather.current github.search_code"},
		"a refused tool":           {policy.Settings{}, "reader", "weather github.get-file", "", "the tool github.get-file may not be used: the policy reader does not allow it"},
		"none left":                {policy.Settings{Allow: []string{"weather.forecast"}}, "reader", "weather", "", "the tool weather.current may not be used: FERMATA_TOOLSETS_ALLOW does not allow it"},
		"a refused toolset":        {policy.Settings{}, "block", "weather github", "", "the toolset github may not be used: the policy block blocks it"},
		"a blocked toolset":        {policy.Settings{Block: []string{"weather"}}, "alice", "weather", "", "the toolset weather may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		"a policy without allow":   {policy.Settings{}, "none", "weather", "", "the toolset weather may not be used: the policy none does not allow it"},
		"opt-in, with the word":    {policy.Settings{Debug: policy.OptIn}, "alice", "weather.current", "my UsePTC test", "weather.current"},
		"opt-in, without":          {policy.Settings{Debug: policy.OptIn}, "alice", "weather", "nonptc", "the toolset weather may not be used: FERMATA_TOOLSETS_DEBUG is opt-in and the title does not contain useptc"},
		"opt-out, with the word":   {policy.Settings{Debug: policy.OptOut}, "alice", "weather.current", "NONPTC", "the toolset weather may not be used: FERMATA_TOOLSETS_DEBUG is opt-out and the title contains nonptc"},
		"opt-out, without":         {policy.Settings{Debug: policy.OptOut}, "alice", "weather.current", "", "weather.current"},
		"debug after the mode":     {policy.Settings{Mode: policy.Off, Debug: policy.OptIn}, "alice", "weather", "useptc", "the toolset weather may not be used: FERMATA_TOOLSETS_MODE is off"},
	} {
		t.Run(name, func(t *testing.T) {
			grant, err := newPolicy(t, c.settings).Rights(c.principal).Start(policy.Start{Toolsets: strings.Fields(c.asked), Title: c.title}, toolsets)
			var unknown *policy.UnknownError
			got := ""
			switch {
			case errors.As(err, &unknown):
				got = "unknown: " + err.Error()
				if unknown.Incomplete {
					got += "; incomplete"
				}
			case err != nil:
				got = err.Error()
			default:
				var names []string
				for _, n := range grant.Tools {
					names = append(names, n.String())
				}
				got = strings.Join(names, " ")
				if len(grant.Waiting) > 0 {
					got += ", waits for " + strings.Join(grant.Waiting, " ")
				}
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestBounds combines the bounds of the settings, the policy and the start.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		principal     string
		asked, want   *int64
		server, start bool
	}{
		{"alice", nil, nil, false, false},
		{"alice", new(int64(5)), new(int64(5)), true, false},
		{"reader", nil, new(int64(10)), false, true},
		{"reader", new(int64(11)), new(int64(10)), true, true},
		{"reader", new(int64(9)), new(int64(9)), false, false},
		{"free", new(int64(9)), new(int64(0)), false, false},
	} {
		p := newPolicy(t, policy.Settings{Sequential: c.server})
		grant, err := p.Rights(c.principal).Start(policy.Start{MaxCost: c.asked, Sequential: c.start}, toolsets)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, grant.MaxCost); diff != "" || grant.Sequential != (c.server || c.start) {
			t.Errorf("%+v: %+v %s", c, grant, diff)
		}
	}
	var many []string
	for i := range policy.MaxGranted + 1 {
		many = append(many, fmt.Sprint("tool", i))
	}
	r := newPolicy(t, policy.Settings{}).Rights("alice")
	if grant, err := r.Start(policy.Start{Toolsets: []string{"a"}}, []policy.Toolset{{"a", many[1:], true}}); err != nil || len(grant.Tools) != policy.MaxGranted {
		t.Errorf("%d tools, %v", len(grant.Tools), err)
	}
	_, err := r.Start(policy.Start{Toolsets: []string{"a"}}, []policy.Toolset{{"a", many, true}})
	if want := "the toolsets have 501 tools together, and a program is granted at most 500; ask for single tools"; text(err) != want {
		t.Errorf("got %v", err)
	}
}

// TestT26Block uses names in the settings that look like those of toolsets and tools. In a block list
// they refuse the start of the server; in an allow list they allow nothing.
func TestT26Block(t *testing.T) {
	for name, want := range map[string]string{
		"Weather": `there is no toolset "Weather"`, "WEATHER.current": `there is no toolset "WEATHER"`, "weather.Current": `the toolset weather has no tool "Current"`,
		"github.get_file": `the toolset github has no tool "get_file"`, "weather ": `there is no toolset "weather "`, "weather.": `"weather." names no tool`,
		"weather. ": `"weather. " names no tool`, "weather.current ": `the toolset weather has no tool "current "`, "*": `there is no toolset "*"`, "weather.*": `the toolset weather has no tool "*"`,
		"": "there is an empty name", "ｗeather": `there is no toolset "\uff57eather"`, "we\u0430ther": `there is no toolset "we\u0430ther"`, "wether": `there is no toolset "wether"`,
		"github.a": `the toolset github has no tool "a"`, "current": `there is no toolset "current"`, "weather\x1b[1m": `there is no toolset "weather\x1b[1m"`,
	} {
		p, _, err := policy.New(policy.Settings{Block: []string{"weather", name}}, file(), toolsets)
		if got := "FERMATA_TOOLSETS_BLOCK: " + want + ": correct the name, or take it out"; p != nil || text(err) != got {
			t.Errorf("block %q: got %v, want %s", name, err, got)
		}
		p, warnings, err := policy.New(policy.Settings{Allow: []string{name}}, file(), toolsets)
		if err != nil || len(warnings) != 1 || warnings[0] != "FERMATA_TOOLSETS_ALLOW: "+want+"." {
			t.Fatalf("allow %q: %q, %v", name, warnings, err)
		}
		for _, toolset := range toolsets {
			for _, tool := range toolset.Tools {
				if p.Rights("alice").Tool(policy.Name{toolset.Key, tool}) == nil {
					t.Errorf("allow %q allows %s.%s", name, toolset.Key, tool)
				}
			}
		}
	}
	// It is not known yet whether the tool exists, so its name stays blocked.
	p, warnings, err := policy.New(policy.Settings{Block: []string{"late.tool"}}, file(), toolsets)
	if err != nil || len(warnings) != 1 || warnings[0] != `FERMATA_TOOLSETS_BLOCK: the tools of the toolset late are not known yet, and "tool" may not be one of them.` {
		t.Fatalf("%q, %v", warnings, err)
	}
	if err := p.Rights("alice").Tool(policy.Name{"late", "tool"}); text(err) != "the tool late.tool may not be used: FERMATA_TOOLSETS_BLOCK blocks it" {
		t.Errorf("got %v", err)
	}
}

// TestT26PolicyOfFile names tools in policies of the file that config.Read cannot know.
func TestT26PolicyOfFile(t *testing.T) {
	f := &config.File{Policies: map[string]config.Policy{
		"a\x1b": {Block: []string{"github.searchcode", "weather"}},
		"b":     {Allow: []string{"github.searchcode", "late.tool"}},
		"c":     {Allow: []string{"late"}, Block: []string{"late.tool"}},
	}}
	p, warnings, err := policy.New(policy.Settings{}, f, toolsets)
	const unknown = `the toolset github has no tool "searchcode": correct the name, or take it out`
	if want := `the policy a\x1b: ` + unknown + "\nthe policy b: " + unknown; p != nil || text(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(warnings) != 1 || warnings[0] != `the policy c: the tools of the toolset late are not known yet, and "tool" may not be one of them.` {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestPartialWithoutUsers(t *testing.T) {
	_, warnings, err := policy.New(policy.Settings{Mode: policy.Partial}, file(), toolsets)
	if err != nil || len(warnings) != 1 || warnings[0] != "FERMATA_TOOLSETS_MODE is partial and FERMATA_TOOLSETS_USERS names nobody, so that nobody may use toolsets." {
		t.Errorf("%q, %v", warnings, err)
	}
}

func TestUsersWithoutPartial(t *testing.T) {
	for mode, want := range map[policy.Mode]int{"": 1, policy.On: 1, policy.Partial: 0, policy.Off: 0} {
		_, warnings, err := policy.New(policy.Settings{Mode: mode, Users: []string{"alice"}}, file(), toolsets)
		if err != nil || len(warnings) != want || want == 1 && !strings.HasPrefix(warnings[0], "FERMATA_TOOLSETS_USERS restricts nobody") {
			t.Errorf("the mode %q: %q, %v, want %d warnings", mode, warnings, err, want)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{"": "on", "on": "on", "partial": "partial", "off\n": "off", "ON": "must be on, off or partial, not \"ON\"", "true": "must be on, off or partial, not \"true\""} {
		var m policy.Mode
		got := ""
		if err := m.UnmarshalText([]byte(text)); err != nil {
			got = err.Error()
		} else {
			got = string(m)
		}
		if got != want {
			t.Errorf("mode %q: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"": "", "opt-in": "opt-in", "true": "opt-in", "opt-out": "opt-out", "false": "must be opt-in, opt-out or true, not \"false\""} {
		var d policy.Debug
		got := ""
		if err := d.UnmarshalText([]byte(text)); err != nil {
			got = err.Error()
		} else {
			got = string(d)
		}
		if got != want {
			t.Errorf("debug %q: got %s, want %s", text, got, want)
		}
	}
}

func TestDayCost(t *testing.T) {
	const setting, own = "FERMATA_TOOLSETS_MAX_DAY_COST", "max_day_cost of the policy free"
	for _, c := range []struct {
		principal string
		setting   *int64
		most      int64
		rule      string
	}{
		{"alice", nil, 0, ""},
		{"alice", new(int64(0)), 0, setting},
		{"reader", new(int64(5)), 5, setting},
		{"free", nil, 20, own},
		{"free", new(int64(19)), 19, setting},
		{"free", new(int64(21)), 20, own},
	} {
		most, rule, bounded := newPolicy(t, policy.Settings{MaxDayCost: c.setting}).Rights(c.principal).DayCost()
		if most != c.most || rule != c.rule || bounded != (c.rule != "") {
			t.Errorf("%+v: got %d, %q, %t", c, most, rule, bounded)
		}
	}
}
