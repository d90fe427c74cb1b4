package stubs

import (
	"cmp"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestIdentifier(t *testing.T) {
	// The numbers are those of the rows in the wire contract's table of edge cases.
	tests := []struct {
		row        int
		name, want string
	}{
		{1, "get_weather", "get_weather"},
		{2, "get-weather", "get_weather"},
		{3, "my tool", "my_tool"},
		{4, "for", "for_tool"},
		{5, "123data", "_123data"},
		{6, "get.weather", "getweather"},
		{7, "get/weather", "getweather"},
		{8, "get:weather", "getweather"},
		{9, "ns::tool", "nstool"},
		{10, "a+b", "ab"},
		{11, "a@b.com", "abcom"},
		{12, "tool!", "tool"},
		{13, "tool?", "tool"},
		{14, "$tool", "tool"},
		{15, "tool\"x", "toolx"},
		{16, "tool'x", "toolx"},
		{17, "tool\nname", "tool_name"},
		{18, "tool\tname", "tool_name"},
		{19, "tool\vname", "tool_name"},
		{20, "tool\u00a0name", "tool_name"},
		{21, "tool\u2003name", "tool_name"},
		{22, "tool\ufeffname", "tool_name"},
		{23, "tool\u0085name", "toolname"},
		{24, "tool\x1cname", "toolname"},
		{25, "tool\u200bname", "toolname"},
		{26, "名前", ""},
		{27, "получить_погоду", "_"},
		{28, "café", "caf"},
		{29, "naïve-tool", "nave_tool"},
		{30, "tool😀x", "toolx"},
		{31, "１２３", ""},
		{32, "1", "_1"},
		{33, "-1", "_1"},
		{34, "2-fast", "_2_fast"},
		{35, "_1", "_1"},
		{36, "9lives-tool", "_9lives_tool"},
		{37, "For", "For"},
		{38, "FOR", "FOR"},
		{39, "class", "class_tool"},
		{40, "async", "async_tool"},
		{41, "await", "await_tool"},
		{42, "None", "None_tool"},
		{43, "none", "none"},
		{44, "True", "True_tool"},
		{45, "true", "true"},
		{46, "false", "false"},
		{47, "match", "match"},
		{48, "case", "case"},
		{49, "type", "type"},
		{50, "_", "_"},
		{51, "__", "__"},
		{52, "print", "print"},
		{53, "exec", "exec"},
		{54, "self", "self"},
		{55, "lambda", "lambda_tool"},
		{56, "nonlocal", "nonlocal_tool"},
		{57, "with", "with_tool"},
		{58, "in", "in_tool"},
		{59, "is", "is_tool"},
		{60, "not", "not_tool"},
		{61, "import", "import_tool"},
		{62, "from", "from_tool"},
		{63, "global", "global_tool"},
		{64, "f-or", "f_or"},
		{65, "fo.r", "for_tool"},
		{66, "for ", "for_"},
		{67, "-for", "_for"},
		{68, "if.", "if_tool"},
		{69, "if", "if_tool"},
		{70, "then", "then"},
		{71, "echo", "echo"},
		{72, "return", "return_tool"},
		{73, "__init__", "__init__"},
		{74, "__name__", "__name__"},
		{75, "__builtins__", "__builtins__"},
		{76, "__import__", "__import__"},
		{77, "__debug__", "__debug__"},
		{78, "json", "json"},
		{79, "asyncio", "asyncio"},
		{80, "_ptc_x", "_ptc_x"},
		{81, "_PTC_HISTORY", "_PTC_HISTORY"},
		{82, "", ""},
		{83, "---", "___"},
		{84, "...", ""},
		{85, "🙂", ""},
		{86, "a-b", "a_b"},
		{86, "a_b", "a_b"},
		{86, "a b", "a_b"},
		{87, "A-B", "A_B"},
		{88, "search_mcp_my-server", "search_mcp_my_server"},
		{89, "list_tables_mcp_ClickHouse", "list_tables_mcp_ClickHouse"},
		{90, "send_email_action_api---example---com", "send_email_action_api___example___com"},
		{91, "tool__x", "tool__x"},
		{92, "a--b", "a__b"},
		{93, "  lead", "__lead"},
		{94, "trail  ", "trail__"},
		{95, "a.b-c d/e:f", "ab_c_def"},
		{96, "1for", "_1for"},
		{97, "for1", "for1"},
		{98, "async_tool", "async_tool"},
		{99, "ToolName", "ToolName"},
		{100, "tool_", "tool_"},
	}
	for _, tt := range tests {
		if got := Identifier(tt.name); got != tt.want {
			t.Errorf("row %d: Identifier(%q) = %q, want %q", tt.row, tt.name, got, tt.want)
		}
	}
}

func TestIdentifierKnowsEverySpace(t *testing.T) {
	spaces := map[rune]bool{'-': true}
	for _, r := range "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" +
		"\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" {
		spaces[r] = true
	}
	for r := range rune(0x110000) {
		got := Identifier("a" + string(r) + "b")
		if want := "a_b"; (got == want) != (spaces[r] || r == '_') {
			t.Errorf("Identifier(a %U b) = %q, but in JavaScript's \\s or a hyphen: %t", r, got, spaces[r])
		}
	}
}

func TestIdentifierOfKeywords(t *testing.T) {
	keywords := []string{
		"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
		"del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
		"nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
	}
	if len(keywords) != 35 {
		t.Fatalf("the list has %d keywords, want 35", len(keywords))
	}
	for _, k := range keywords {
		if got, want := Identifier(k), k+"_tool"; got != want {
			t.Errorf("Identifier(%q) = %q, want %q", k, got, want)
		}
	}
	for _, soft := range []string{"match", "case", "type", "_"} {
		if got := Identifier(soft); got != soft {
			t.Errorf("Identifier(%q) = %q, want it unchanged", soft, got)
		}
	}
}

func FuzzIdentifier(f *testing.F) {
	for _, name := range []string{"", "get-weather", "for", "fo.r", "1 for", "名前", "\xff\xfe-", "a\u2003b", "\ufeff1"} {
		f.Add(name)
	}
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, name string) {
		id := Identifier(name)
		if id != "" && !valid.MatchString(id) {
			t.Errorf("Identifier(%q) = %q, which is no identifier", name, id)
		}
		if IsKeyword(id) {
			t.Errorf("Identifier(%q) = %q, which is a keyword", name, id)
		}
		if again := Identifier(id); again != id {
			t.Errorf("Identifier(%q) = %q, but of that again %q", name, id, again)
		}
	})
}

// TestLettersArePythons asks Python whether names can have the letters that stubs take over from names of
// properties and tools, since one that Python does not know would spoil all stubs of a program.
func TestLettersArePythons(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	var all strings.Builder
	for r := rune(0x80); r <= 0x1FFFF; r++ {
		if id := letters("a" + string(r)); id != "" && !isASCII(id) {
			all.WriteString(id + "\n")
		}
		if id := letters(string(r)); id != "" && !isASCII(id) {
			all.WriteString(id + "\n")
		}
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-I", "-c",
		`import sys, unicodedata
names = sys.stdin.buffer.read().decode().split("\n")[:-1]
print([n for n in names if not n.isidentifier() or unicodedata.normalize("NFKC", n) != n][:20], len(names) > 50_000)`)
	cmd.Stdin = strings.NewReader(all.String())
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "[] True\n" {
		t.Errorf("names that Python does not take, and whether there were enough: %s, error %v", out, err)
	}
}

func TestPythonNamesWithLetters(t *testing.T) {
	tests := []struct {
		names []string
		want  []names
		error string
	}{
		{[]string{"get weather", "météo", "Köln", "日本 search"}, []names{{"get_weather", ""}, {"mto", "météo"}, {"Kln", "Köln"}, {"_search", "日本_search"}}, ""},
		{[]string{"天气", "1号", "is", "ｉｓ"}, []names{{"天气", ""}, {"_1", "_1号"}, {"is_tool", ""}, {"is_tool", ""}}, `"is" and "ｉｓ"`},
		{[]string{"ﬁle", "file"}, []names{{"le", ""}, {"file", ""}}, ""},
		{[]string{"ＩＤ"}, []names{{"ID", ""}}, ""},
		{[]string{"天气", "天气"}, []names{{}, {"天气", ""}}, ""},
		{[]string{"é", "e\u0301"}, []names{{"é", ""}, {"e", ""}}, ""},
		{[]string{"cafe\u0301", "caf\u00e9"}, []names{{"cafe", "café"}, {"caf", ""}}, ""},
		{[]string{"天.气", "天气"}, nil, `"天.气" and "天气"`},
		{[]string{"🌦", "..."}, []names{{"🌦", ""}, {"...", ""}}, ""},
	}
	for _, tt := range tests {
		var tools []Tool
		for _, name := range tt.names {
			tools = append(tools, Tool{Name: name})
		}
		got, err := pythonNames(tools)
		if tt.error != "" {
			if err == nil || !strings.Contains(err.Error(), tt.error) {
				t.Errorf("%q: error %v, want one with %s", tt.names, err, tt.error)
			}
			continue
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, error %v; want %q", tt.names, got, err, tt.want)
		}
	}
}

func TestParametersOfProperties(t *testing.T) {
	for _, tt := range []struct{ properties, want string }{
		{`"ＩＤ":{},"µg":{},"ﬁle":{}`, "ID μg file"},
		{`"ＩＤ":{},"ID":{}`, "- ID"},
		{`"from":{},"from_":{}`, "- from_"},
		{`"$filter":{},"ids[]":{},"X-Id":{},"a.b":{},"a b":{}`, "filter ids X_Id a_b -"},
		{`"price<":{},"price>":{},"😀":{},"":{},"-":{}`, "- - - - -"},
		{`"class":{},"@type":{},"1st":{},"𠮷":{}`, "class_ type _1st -"},
	} {
		r := reader{}
		properties, _ := r.parameters([]byte(`{"properties":{` + tt.properties + `}}`))
		var got []string
		for _, p := range properties {
			got = append(got, cmp.Or(p.param, "-"))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.properties, got, tt.want)
		}
	}
}
