package stubs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bashIdentifiers has a row for each row of the wire contract's table of edge cases.
var bashIdentifiers = []struct {
	row        int
	name, want string
}{
	{1, "get_weather", "get_weather"},
	{2, "get-weather", "get_weather"},
	{3, "my tool", "my_tool"},
	{4, "for", "for_tool"},
	{5, "123data", "_123data"},
	{6, "get.weather", "get_weather"},
	{7, "get/weather", "getweather"},
	{8, "get:weather", "getweather"},
	{9, "ns::tool", "nstool"},
	{10, "a+b", "ab"},
	{11, "a@b.com", "ab_com"},
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
	{26, "名前", "tool"},
	{27, "получить_погоду", "_"},
	{28, "café", "caf"},
	{29, "naïve-tool", "nave_tool"},
	{30, "tool😀x", "toolx"},
	{31, "１２３", "tool"},
	{32, "1", "_1"},
	{33, "-1", "_1"},
	{34, "2-fast", "_2_fast"},
	{35, "_1", "_1"},
	{36, "9lives-tool", "_9lives_tool"},
	{37, "For", "For"},
	{38, "FOR", "FOR"},
	{39, "class", "class"},
	{40, "async", "async"},
	{41, "await", "await"},
	{42, "None", "None"},
	{43, "none", "none"},
	{44, "True", "True"},
	{45, "true", "true_tool"},
	{46, "false", "false_tool"},
	{47, "match", "match"},
	{48, "case", "case_tool"},
	{49, "type", "type"},
	{50, "_", "_"},
	{51, "__", "__"},
	{52, "print", "print"},
	{53, "exec", "exec_tool"},
	{54, "self", "self"},
	{55, "lambda", "lambda"},
	{56, "nonlocal", "nonlocal"},
	{57, "with", "with"},
	{58, "in", "in_tool"},
	{59, "is", "is"},
	{60, "not", "not"},
	{61, "import", "import"},
	{62, "from", "from"},
	{63, "global", "global"},
	{64, "f-or", "f_or"},
	{65, "fo.r", "fo_r"},
	{66, "for ", "for_"},
	{67, "-for", "_for"},
	{68, "if.", "if_"},
	{69, "if", "if_tool"},
	{70, "then", "then_tool"},
	{71, "echo", "echo_tool"},
	{72, "return", "return_tool"},
	{73, "__init__", "__init__"},
	{74, "__name__", "__name__"},
	{75, "__builtins__", "__builtins__"},
	{76, "__import__", "__import__"},
	{77, "__debug__", "__debug__"},
	{78, "json", "json"},
	{79, "asyncio", "asyncio"},
	{80, "_ptc_x", "_ptc_x_tool"},
	{81, "_PTC_HISTORY", "_PTC_HISTORY_tool"},
	{82, "", "tool"},
	{83, "---", "___"},
	{84, "...", "___"},
	{85, "🙂", "tool"},
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
	{95, "a.b-c d/e:f", "a_b_c_def"},
	{96, "1for", "_1for"},
	{97, "for1", "for1"},
	{98, "async_tool", "async_tool"},
	{99, "ToolName", "ToolName"},
	{100, "tool_", "tool_"},
}

func TestBashIdentifier(t *testing.T) {
	for _, tt := range bashIdentifiers {
		if got := BashIdentifier(tt.name); got != tt.want {
			t.Errorf("row %d: BashIdentifier(%q) = %q, want %q", tt.row, tt.name, got, tt.want)
		}
	}
	reserved := []string{
		"if", "then", "else", "elif", "fi", "case", "esac", "for", "while", "until", "do", "done", "in", "function",
		"select", "time", "coproc", "declare", "typeset", "local", "readonly", "export", "unset",
		"return", "exit", "break", "continue", "shift", "alias", "unalias", "source", "echo", "printf", "read", "cd",
		"pwd", "kill", "trap", "wait", "eval", "exec", "jobs", "bg", "fg", "set", "let", "test", "true", "false",
		"_ptc_", "_PTC_x", "builtin", "__fermata_call",
	}
	for _, name := range reserved {
		if got, want := BashIdentifier(name), name+"_tool"; got != want {
			t.Errorf("BashIdentifier(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestBash(t *testing.T) {
	got, err := Bash([]Tool{
		{Name: "get-weather", Description: "'$(exit)", Parameters: []byte(`"`)},
		{Name: "echo"},
		{Name: "true"},
		{Name: "名前"},
		{Name: "get-weather"},
	})
	// A tool with the name of a harmless builtin has two functions. If a function is defined
	// twice, the last definition counts.
	want := `get_weather() { __fermata_call 0 "$@"; }
echo_tool() { __fermata_call 1 "$@"; }
echo() { __fermata_call 1 "$@"; }
true_tool() { __fermata_call 2 "$@"; }
名前() { __fermata_call 3 "$@"; }
get_weather() { __fermata_call 4 "$@"; }
tool() { __fermata_call 3 "$@"; }
`
	if err != nil || got != want {
		t.Errorf("got %s\n(error %v), want %s", got, err, want)
	}
}

func TestBashCollision(t *testing.T) {
	tests := []struct{ first, second, identifier string }{
		{"a-b", "a_b", "a_b"},
		{"a.b", "a b", "a_b"},
		{"for", "for_tool", "for_tool"},
		{"echo", "echo_tool", "echo_tool"},
		{"!", "🙂", "tool"},
		{"天气", "天😀气", "天气"},
	}
	for _, tt := range tests {
		_, err := Bash([]Tool{{Name: "other"}, {Name: tt.first}, {Name: tt.second}})
		collision, ok := errors.AsType[*BashCollisionError](err)
		if !ok {
			t.Errorf("%q and %q: error %v, want a collision", tt.first, tt.second, err)
			continue
		}
		want := fmt.Sprintf("Bash tool names %q and %q normalize to the same function identifier %q; rename one to avoid collision",
			tt.first, tt.second, tt.identifier)
		if collision.Error() != want {
			t.Errorf("got %q, want %q", collision, want)
		}
	}
	if _, err := Bash([]Tool{{Name: "a-b"}, {Name: "A-B"}, {Name: "a-b"}}); err != nil {
		t.Errorf("got %v, want no collision of names that differ in case, or not at all", err)
	}
}

// definition matches the only form that a line of source may have.
var definition = regexp.MustCompile(`^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{M}\p{Nd}_]*\(\) \{ __fermata_call [0-9]+ "\$@"; \}$`)

// FuzzBash checks that for all names the shell accepts the source, and that the source only
// defines functions.
func FuzzBash(f *testing.F) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		if os.Getenv("CI") != "" {
			f.Fatalf("no judge: %v", err)
		}
		f.Skipf("no judge: %v", err)
	}
	for _, tt := range bashIdentifiers {
		f.Add(tt.name, "times")
	}
	for _, name := range []string{"$(exit 7)", "a;exit 7", "a(){ :; };exit 7 #", "`exit 7`", "\x00", "\xff\xfe", "x\ny", "!", "[", "[[", "{", "}"} {
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		source, err := Bash([]Tool{{Name: first}, {Name: second}})
		if _, collides := errors.AsType[*BashCollisionError](err); collides {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
		if stray := slices.IndexFunc(lines, func(line string) bool { return !definition.MatchString(line) }); stray >= 0 {
			t.Errorf("%q and %q: got the line %q, want definitions of functions only", first, second, lines[stray])
		}
		cmd := exec.CommandContext(t.Context(), shell)
		cmd.Stdin = strings.NewReader(source)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil || said.Len() > 0 {
			t.Errorf("%q and %q: bash ends with %v and says %q of\n%s", first, second, err, &said, source)
		}
	})
}
