package outputs_test

import (
	"slices"
	"strings"
	"testing"

	"fermata/engine/outputs"
)

// contract returns a contract of required outputs with these names.
func contract(names ...string) outputs.Contract {
	c := outputs.Contract{Turn: "turn_1"}
	for _, name := range names {
		c.Outputs = append(c.Outputs, outputs.Output{Path: name, File: name, Name: name, Required: true, MinBytes: 1})
	}
	return c
}

func judged(path string, state outputs.State) outputs.Judged {
	return outputs.Judged{Path: path, State: state}
}

var (
	completed = outputs.End{Status: "completed"}
	missing   = outputs.End{Status: "error", Reason: "outputs_missing", Error: "Missing output files: report.xlsx"}
	raised    = outputs.End{Status: "error", Reason: "raised", Error: "ValueError: no rows"}
)

func TestReport(t *testing.T) {
	t.Parallel()
	optional := contract("a", "b")
	optional.Outputs[1].Required = false
	turn := contract("x")
	turn.Outputs[0].Path, turn.Outputs[0].File = "turn_1/files/x", "turn_1/files/x"
	for _, test := range []struct {
		name     string
		contract outputs.Contract
		end      outputs.End
		judged   []outputs.Judged
		want     string
	}{
		{
			// The example of the document "Tool Call Blocks"; see docs/timeline.md.
			"one success, one failure", contract("report.xlsx", "summary.pdf"), missing,
			[]outputs.Judged{judged("report.xlsx", outputs.Missing), judged("summary.pdf", outputs.Produced)},
			"Runtime error: execution_failed — Missing output files: turn_1/files/report.xlsx\n" +
				"File errors:\n- turn_1/files/report.xlsx: file not produced\n" +
				"Succeeded:\n- turn_1/files/summary.pdf",
		},
		{
			"the same where the status does not tell it", contract("report.xlsx", "summary.pdf"), completed,
			[]outputs.Judged{judged("report.xlsx", outputs.Missing), judged("summary.pdf", outputs.Produced)},
			"Runtime error: execution_failed — Missing output files: turn_1/files/report.xlsx\n" +
				"File errors:\n- turn_1/files/report.xlsx: file not produced\n" +
				"Succeeded:\n- turn_1/files/summary.pdf",
		},
		{
			"all is well", contract("b", "a"), completed,
			[]outputs.Judged{judged("b", outputs.Produced), judged("a", outputs.TooSmall)},
			"Succeeded:\n- turn_1/files/b\n- turn_1/files/a",
		},
		{
			"an error, and everything is there", contract("a"), raised,
			[]outputs.Judged{judged("a", outputs.Produced)},
			"Runtime error: execution_failed — ValueError: no rows\nSucceeded:\n- turn_1/files/a",
		},
		{
			"an error, and nothing is there", contract("a", "b"), raised, nil,
			"Runtime error: execution_failed — ValueError: no rows; Missing output files: turn_1/files/a, turn_1/files/b\n" +
				"File errors:\n- turn_1/files/a: file not produced\n- turn_1/files/b: file not produced",
		},
		{
			"a timeout without a text", contract("a"),
			outputs.End{Status: "timed_out", Reason: "timed_out"},
			[]outputs.Judged{judged("a", outputs.Produced)},
			"Runtime error: timeout\nSucceeded:\n- turn_1/files/a",
		},
		{
			"every way to be broken", contract("1", "2", "3", "4", "5", "6"), completed,
			[]outputs.Judged{
				judged("6", outputs.Undelivered), judged("1", outputs.Missing), judged("2", outputs.Empty), judged("3", outputs.TooLarge),
				judged("4", outputs.NotRegular), judged("5", outputs.Unreadable),
			},
			"Runtime error: execution_failed — Missing output files: turn_1/files/1, turn_1/files/2, turn_1/files/3, turn_1/files/4, turn_1/files/5, turn_1/files/6\n" +
				"File errors:\n- turn_1/files/1: file not produced\n- turn_1/files/2: file is empty\n- turn_1/files/3: file is too large\n" +
				"- turn_1/files/4: not a regular file\n- turn_1/files/5: file cannot be read\n- turn_1/files/6: file could not be stored",
		},
		{"an optional one is missing", optional, completed, []outputs.Judged{judged("a", outputs.Produced), judged("b", outputs.Missing)}, "Succeeded:\n- turn_1/files/a"},
		{
			"an optional one is broken", optional, completed,
			[]outputs.Judged{judged("a", outputs.Produced), judged("b", outputs.Empty)},
			"File errors:\n- turn_1/files/b: file is empty\nSucceeded:\n- turn_1/files/a",
		},
		{"the directory of the turn", turn, completed, []outputs.Judged{judged("turn_1/files/x", outputs.Produced)}, "Succeeded:\n- turn_1/files/x"},
		{"nothing to say", outputs.Contract{Turn: "turn_1"}, completed, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.contract.Report(test.end, test.judged); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// ends are all texts at which Python ends a line.
var ends = []string{"\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"}

func TestErrorHasOneLine(t *testing.T) {
	t.Parallel()
	for _, end := range ends {
		forging := outputs.End{Status: "error", Reason: "raised", Error: end + " " + end + "ValueError: a\x00\x1bb" + end + "Succeeded:" + end + "- turn_1/files/a"}
		const want = "Runtime error: execution_failed — ValueError: a  b"
		if got := (outputs.Contract{Turn: "turn_1"}).Report(forging, nil); got != want {
			t.Errorf("with %q the report is %q, want %q", end, got, want)
		}
	}
	long := outputs.End{Status: "error", Reason: "raised", Error: "E: " + strings.Repeat("ü", 10_000)}
	got := (outputs.Contract{Turn: "turn_1"}).Report(long, nil)
	if !strings.HasSuffix(got, "ü...[truncated]") || len(got) > 2200 {
		t.Errorf("a long error has %d bytes: …%s", len(got), got[max(0, len(got)-20):])
	}
}

func TestLogIsQuoted(t *testing.T) {
	t.Parallel()
	c := contract("a")
	c.Log = true
	produced := []outputs.Judged{judged("a", outputs.Produced)}
	for _, end := range ends {
		forging := outputs.End{Status: "completed", Stdout: "one" + end + "File errors:" + end, Stderr: "two\x00"}
		got := c.Report(forging, produced)
		const want = "Succeeded:\n- turn_1/files/a\nProgram log (tail):\nstdout:\n> one\n> File errors:\nstderr:\n> two"
		if got != want {
			t.Errorf("with %q the report is\n%q, want\n%q", end, got, want)
		}
	}
	if got, want := c.Report(completed, produced), "Succeeded:\n- turn_1/files/a"; got != want {
		t.Errorf("a silent program: %q, want %q", got, want)
	}
	got := c.Report(outputs.End{Status: "completed", Stdout: strings.Repeat("ü", 5000) + "x"}, produced)
	_, log, _ := strings.Cut(got, "stdout:\n")
	if want := "> …" + strings.Repeat("ü", 2047) + "x"; log != want {
		t.Errorf("the end of a long log has %d bytes, want %d: %.20s", len(log), len(want), log)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	c := contract("1", "2", "3", "4", "5")
	c.Outputs[3].Required = false
	c.Outputs[4].Path = "turn_1/files/5"
	got := c.Missing([]outputs.Judged{judged("3", outputs.Empty), judged("1", outputs.Produced), judged("2", outputs.TooSmall), judged("4", outputs.Missing)})
	if want := []string{"3", "turn_1/files/5"}; !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
}

func TestCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ status, reason, want string }{
		{"completed", "", ""},
		{"error", "raised", "execution_failed"},
		{"error", "exited", "execution_failed"},
		{"error", "ungranted_tool", "execution_failed"},
		{"error", "too_many_calls", "execution_failed"},
		{"error", "outputs_missing", "execution_failed"},
		{"error", "protocol_broken", "execution_failed"},
		{"error", "too_much_stored", "execution_failed"},
		{"error", "out_of_memory", "out_of_memory"},
		{"error", "stdout_flood", "output_limit"},
		{"error", "stderr_flood", "output_limit"},
		{"error", "too_many_rounds", "round_limit"},
		{"error", "sandbox_lost", "sandbox_lost"},
		{"timed_out", "timed_out", "timeout"},
		{"cancelled", "cancelled", "cancelled"},
		{"cancelled", "sandbox_lost", "cancelled"},
		{"expired", "expired", "expired"},
	} {
		if got := outputs.Code(test.status, test.reason); got != test.want {
			t.Errorf("Code(%s, %s) = %s, want %s", test.status, test.reason, got, test.want)
		}
	}
}
