package differential

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A difference is what may differ in a program, and why: the words with which a point of the section "What
// differs from python3" in docs/writing-programs.md begins. Parts are those that differ. Some differ only
// from one Python 3.x on, since, or only to one, until.
type difference struct {
	parts, why   string
	since, until int
}

// differences are all that may differ, by program.
var differences = map[string]difference{
	"async/group_error":                         {parts: "line stderr", why: "Tracebacks"},
	"async/coroutine_misuse_error":              {parts: "error stderr", why: "Calls that are not awaited"},
	"async/task_never_retrieved":                {parts: "stderr", why: "Numbers of tasks"},
	"async/wait_for_slow_tool":                  {parts: "stdout", why: "Timeouts"},
	"plots/savefig_after_show":                  {parts: "files", why: "Figures"},
	"processes/file_runs_itself":                {parts: "stdout", why: "The file of the program"},
	"errors/unraisable":                         {parts: "stderr", why: "Tracebacks"},
	"errors/syntax_expected_indent":             {parts: "stderr", why: "Tracebacks", until: 12},
	"errors/import_missing":                     {parts: "error stderr", why: "Hints"},
	"errors/await_in_def":                       {parts: "error stderr", why: "Hints"},
	"errors/syntax_await_in_lambda":             {parts: "error stderr", why: "Hints"},
	"errors/syntax_await_in_sync_comprehension": {parts: "error stderr", why: "Hints"},
	"files/reads_itself":                        {parts: "exit stdout error line stderr", why: "The file of the program"},
	"processes/start_method_top_level":          {parts: "stdout", why: "Processes of a program with a top-level `await`", since: 14},
	"errors/await_list":                         {parts: "stderr", why: "Calls that are not awaited"},
	"errors/iterate_coroutine":                  {parts: "stderr", why: "Calls that are not awaited"},
	"errors/deep_recursion":                     {parts: "stderr", why: "Frames of the server"},
	"errors/traceback_print_stack":              {parts: "stdout", why: "Frames of the server"},
	"errors/keyboard_interrupt_uncaught":        {parts: "exit", why: "An uncaught KeyboardInterrupt"},
	"plots/show_saves_nothing_in_plain":         {parts: "files", why: "Figures"},
	"plots/error_in_plot":                       {parts: "files", why: "Figures"},
	"plots/unknown_style":                       {parts: "files", why: "Figures"},
	"plots/left_open":                           {parts: "files", why: "Figures"},
	"errors/forgotten_await":                    {parts: "error stderr", why: "Calls that are not awaited"},
	"errors/unawaited_gather":                   {parts: "error stderr", why: "Calls that are not awaited"},
	"errors/wrong_argument":                     {parts: "error stderr", why: "Wrong arguments of tools"},
	"sync/indented_program":                     {parts: "exit stdout error line stderr", why: "Programs that are indented as a whole"},
	"threads/error_in_thread":                   {parts: "stderr", why: "Tracebacks"},
}

// judgeTable checks that the table names programs, and that the documentation names the reasons, and no more.
func judgeTable(t *testing.T, programs []program) {
	t.Helper()
	page, err := os.ReadFile("../../docs/writing-programs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What differs from python3\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, point := range regexp.MustCompile(`(?m)^- \*\*([^*]+?)\.?\*\*`).FindAllStringSubmatch(section, -1) {
		documented[point[1]] = false
	}
	for name, may := range differences {
		if !slices.ContainsFunc(programs, func(p program) bool { return p.name == name }) {
			t.Errorf("the table of differences has %s, which is no program", name)
		}
		if _, is := documented[may.why]; !is {
			t.Errorf("%s may differ for a reason that docs/writing-programs.md does not have: %s", name, may.why)
		}
		documented[may.why] = true
	}
	for why, used := range documented {
		if !used {
			t.Errorf("docs/writing-programs.md has a difference that no program shows: %s", why)
		}
	}
}
