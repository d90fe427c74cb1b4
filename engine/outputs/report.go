package outputs

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// failed is the code of an execution that has failed in a way that has no code of its own.
const failed = "execution_failed"

const (
	// maxError limits the program's own error in a report, and maxLog each stream of its log, in bytes.
	maxError = 2 << 10
	maxLog   = 4 << 10
)

// codes are the codes of statuses and reasons. A status takes precedence over a reason.
var codes = map[string]string{
	"timed_out":       "timeout",
	"cancelled":       "cancelled",
	"expired":         "expired",
	"out_of_memory":   "out_of_memory",
	"stdout_flood":    "output_limit",
	"stderr_flood":    "output_limit",
	"too_many_rounds": "round_limit",
	"sandbox_lost":    "sandbox_lost",
}

// words are the texts with which a report says what is wrong with an output.
var words = map[State]string{
	Missing:     "file not produced",
	Empty:       "file is empty",
	TooLarge:    "file is too large",
	NotRegular:  "not a regular file",
	Unreadable:  "file cannot be read",
	Undelivered: "file could not be stored",
}

// Words returns a short text about what is wrong with an output of this state, or "" if nothing is wrong.
func (s State) Words() string { return words[s] }

// Code returns the code for the end of an execution in a report, from the status and the reason of the event
// execution.ended. It is empty for an execution that has completed.
func Code(status, reason string) string {
	if status == "completed" {
		return ""
	}
	for _, word := range []string{status, reason} {
		if code := codes[word]; code != "" {
			return code
		}
	}
	return failed
}

// Physical returns the path of an output in reports and blocks.
func (c Contract) Physical(o Output) string { return c.Turn + "/files/" + o.Name }

// Missing returns the paths of the required outputs that were not stored, in the order and the spelling of
// the request.
func (c Contract) Missing(judged []Judged) (paths []string) {
	for _, o := range c.missing(judged) {
		paths = append(paths, o.Path)
	}
	return paths
}

func (c Contract) missing(judged []Judged) (list []Output) {
	for _, o := range c.Outputs {
		if o.Required && !verdict(o, judged).Stored() {
			list = append(list, o)
		}
	}
	return list
}

// verdict returns what has become of an output. An output that is not in judged is missing.
func verdict(o Output, judged []Judged) Judged {
	if i := slices.IndexFunc(judged, func(j Judged) bool { return j.Path == o.Path }); i >= 0 {
		return judged[i]
	}
	return Judged{Path: o.Path, State: Missing}
}

// Report returns the report of an execution with this contract, in Markdown: why the program has failed,
// what is wrong with its files, and which files were stored. Empty sections are left out. Text that comes
// from the program never begins a line, except in the log, where each line begins with the mark of a
// quotation.
func (c Contract) Report(end End, judged []Judged) string {
	sections := []string{c.failure(end, judged)}
	var wrong, there []string
	for _, o := range c.Outputs {
		switch v := verdict(o, judged); {
		case v.Stored():
			there = append(there, "- "+c.Physical(o))
		case o.Required || v.State != Missing:
			wrong = append(wrong, "- "+c.Physical(o)+": "+v.State.Words())
		}
	}
	sections = append(sections, section("File errors:", wrong), section("Succeeded:", there))
	if c.Log {
		sections = append(sections, section("Program log (tail):", append(logOf("stdout", end.Stdout), logOf("stderr", end.Stderr)...)))
	}
	return strings.Join(slices.DeleteFunc(sections, func(s string) bool { return s == "" }), "\n")
}

// section returns lines below a heading, or nothing if there are none.
func section(heading string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return heading + "\n" + strings.Join(lines, "\n")
}

// failure returns the line that says why the program has failed, or nothing.
func (c Contract) failure(end End, judged []Judged) string {
	code := Code(end.Status, end.Reason)
	var halves []string
	// The error of outputs_missing is left out, since it lists the same files as the text below.
	if code != "" && end.Reason != "outputs_missing" {
		if own := firstLine(end.Error); own != "" {
			halves = append(halves, own)
		}
	}
	if missing := c.missing(judged); len(missing) > 0 {
		paths := make([]string, len(missing))
		for i, o := range missing {
			paths[i] = c.Physical(o)
		}
		halves = append(halves, "Missing output files: "+strings.Join(paths, ", "))
		code = cmp.Or(code, failed)
	}
	switch {
	case code == "":
		return ""
	case len(halves) == 0:
		return "Runtime error: " + code
	}
	return "Runtime error: " + code + " — " + strings.Join(halves, "; ")
}

// firstLine returns the first line of a text that is not blank, without control characters. A long line is
// truncated.
func firstLine(text string) string {
	for line := range linesOf(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		return Cut(line, maxError)
	}
	return ""
}

// logOf returns the end of what a program has printed to a stream. Each line is a quotation, so that it
// cannot be mistaken for a line of the report.
func logOf(stream, text string) (quoted []string) {
	if text == "" {
		return nil
	}
	quoted = append(quoted, stream+":")
	if len(text) > maxLog {
		text = "…" + tail(text, maxLog)
	}
	for line := range linesOf(text) {
		quoted = append(quoted, strings.TrimRight("> "+line, " "))
	}
	return quoted
}

// linesOf returns the lines of a text. A line ends at each character at which Python ends lines, since a
// model may read it in the same way. Control characters within a line are replaced by blanks.
func linesOf(text string) iter.Seq[string] {
	text = strings.Map(plain, strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n")
}

func plain(r rune) rune {
	switch {
	case EndsLine(r):
		return '\n'
	case r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control):
		return ' '
	}
	return r
}

// EndsLine reports whether a character ends a line in Python.
func EndsLine(r rune) bool {
	return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r)
}

// CutEnd stands at the end of truncated texts.
const CutEnd = "...[truncated]"

// Cut returns a text that has at most the given number of bytes as it is. A longer one is truncated after a
// whole character, and CutEnd is added.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + CutEnd
}

// tail returns at most n bytes from the end of a text. It splits no character.
func tail(text string, n int) string {
	i := len(text) - n
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return text[i:]
}
