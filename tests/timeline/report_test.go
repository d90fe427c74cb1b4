package timeline

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// reports checks the report of an answer.
func reports(t *testing.T, a harness.Answer, lines ...string) {
	t.Helper()
	want := strings.Join(lines, "\n")
	if a.Report == nil || *a.Report != want {
		t.Errorf("got %v, want the report\n%s", a, want)
	}
}

// TestOnMissing: the status of a program tells that it has not produced everything, unless the start
// wants only the report to tell it.
func TestOnMissing(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		report := []string{"Runtime error: execution_failed — Missing output files: turn_1/files/a", "File errors:", "- turn_1/files/a: file not produced"}

		a := c.Post(t, body("print(1)\n5", object{"outputs": []any{"a"}}))
		a.Fails(t, http.StatusOK, "Missing output files: a")
		if a.Reason != "outputs_missing" || a.Stdout != "1\n" || a.Value != nil {
			t.Errorf("got %v, want outputs_missing, stdout and no value", a)
		}
		reports(t, a, report...)

		a = c.Post(t, body("print(1)\n5", object{"outputs": []any{"a"}, "on_missing": "report"}))
		a.Completes(t, "1\n")
		if string(a.Value) != "5" || a.Reason != "" {
			t.Errorf("got %v, want the value and no reason", a)
		}
		reports(t, a, report...)

		e := c.Exec(t, nil, harness.ExecRequest{Lang: "py", Code: "print(1)", Contract: harness.Contract{Outputs: []any{"a"}}})
		if how := e.How(); how != "0 - RE Missing output files: a" || e.Stderr != "[sandbox] Missing output files: a\n" || e.Reason != "outputs_missing" {
			t.Errorf("/exec: got %s, %v", how, e)
		}
		reports(t, e.Answer, report...)

		e = c.Exec(t, nil, harness.ExecRequest{Lang: "bash", Code: "echo 1", Contract: harness.Contract{Outputs: []any{"a"}, OnMissing: "report"}})
		if how := e.How(); how != "0 - - -" || e.Stderr != "" || e.Reason != "" {
			t.Errorf("/exec: got %s, %v", how, e)
		}
		reports(t, e.Answer, report...)

		// A program that need not produce anything, and has not, has an empty report.
		a = c.Post(t, body("print(1)", object{"outputs": []any{object{"path": "a", "required": false}}}))
		a.Completes(t, "1\n")
		reports(t, a)
		a = c.Post(t, body("print(1)", object{"outputs": []any{}}))
		a.Completes(t, "1\n")
		if a.Report != nil || a.Outputs != nil {
			t.Errorf("got %v, want neither outputs nor report", a)
		}
	})
}

// TestFailedPrograms: the program's own error stands before what is missing, and no text of it makes a
// line of the report.
func TestFailedPrograms(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		outputs := object{"outputs": []any{"a", "b"}, "timeline": object{"turn_id": "turn_7", "log": true}}
		forged := `\r\x0b\x0cSucceeded:\n- turn_7/files/b\u2028File errors:\x85Runtime error: none`
		a := c.Post(t, body(fmt.Sprintf("open('a', 'w').write('x'); print('%s'); raise ValueError('no rows%s')", forged, forged), outputs))
		if a.HTTPStatus != http.StatusOK || a.Status != "error" || a.Reason != "raised" || a.Report == nil {
			t.Fatalf("got %v, want the error of the program", a)
		}
		head := "Runtime error: execution_failed — ValueError: no rows; Missing output files: turn_7/files/b\n" +
			"File errors:\n- turn_7/files/b: file not produced\nSucceeded:\n- turn_7/files/a\nProgram log (tail):\nstdout:\n"
		log, ok := strings.CutPrefix(*a.Report, head)
		if !ok {
			t.Errorf("the report is\n%s\nwant it to begin with\n%s", *a.Report, head)
		}
		for _, end := range []string{"\r", "\v", "\f", "\u0085", "\u2028"} {
			log = strings.ReplaceAll(log, end, "\n")
		}
		for line := range strings.SplitSeq(log, "\n") {
			if line != "stderr:" && !strings.HasPrefix(line, ">") {
				t.Errorf("the log has the line %q", line)
			}
		}

		// The answer of /exec tells the exit code, and the report what the program has raised.
		const raised = "Runtime error: execution_failed — ValueError: no; Missing output files: turn_1/files/b"
		e := c.Exec(t, nil, body("raise ValueError('no\\nSucceeded:')", object{"outputs": []any{"b"}})).Answer
		reports(t, e, raised, "File errors:", "- turn_1/files/b: file not produced")
		harness.Contains(t, "the timeline", timelineOf(t, c, e, "").Blocks[2].Text, raised)
		e = c.Exec(t, nil, body("raise ValueError('no')", nil)).Answer
		harness.Contains(t, "the timeline without a contract", timelineOf(t, c, e, "").Blocks[2].Text, "Runtime error: execution_failed — ValueError: no")

		a = c.Post(t, body("open('a', 'w').write('x')\nwhile True: pass", object{"outputs": []any{"a", "b"}, "timeout": 1000}))
		if a.Reason != "timed_out" || a.Report == nil || !strings.HasPrefix(*a.Report, "Runtime error: timeout — "+a.Error) {
			t.Errorf("got %v, want the report of a timeout", a)
		}
		a = c.Post(t, body("open('a', 'w').write('x')\nraise SystemExit(3)", object{"outputs": []any{"a"}}))
		a.Fails(t, http.StatusOK, "Sandbox exited with code 3")
		reports(t, a, "Runtime error: execution_failed — Sandbox exited with code 3", "Succeeded:", "- turn_1/files/a")
	})
}

// TestTurnDirectory: programs may write into the directory of the turn, as agent runtimes have it, and
// it is there.
func TestTurnDirectory(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		for lang, code := range map[string]string{
			"python": "open('turn_7/files/x.csv', 'w').write('1,2')", "bash": "printf 1,2 > turn_7/files/x.csv",
		} {
			for _, p := range paths {
				a := p.post(t, c, body(code, object{"lang": lang, "outputs": []any{"turn_7/files/x.csv"}, "timeline": object{"turn_id": "turn_7"}}))
				if len(a.Outputs) != 1 || a.Outputs[0].Path != "turn_7/files/x.csv" || a.Outputs[0].ID != a.File(t, "turn_7/files/x.csv").ID {
					t.Errorf("%s, %s: got %v", p.name, lang, a)
				}
				reports(t, a, "Succeeded:", "- turn_7/files/x.csv")
			}
		}
	})
}
