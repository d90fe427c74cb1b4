package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// An outcome is what a program has done.
type outcome struct {
	exit           int
	stdout, stderr string
	// files are the sizes and digests of what is in the working directory, by path.
	files map[string]string
	value json.RawMessage
	// valued says whether value can be compared.
	valued bool
}

func (o outcome) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s\nfiles: %v\nvalue: %s", o.exit, o.stdout, o.stderr, o.files, o.value)
}

// parts are what is compared. "error" is the last line of stderr: of a program that fails that is the type and
// the message of its error. "line" is the line of the program in which the error was raised, which is the
// last one that stderr names. They are compared even where "stderr" as a whole may differ.
var parts = []string{"exit", "stdout", "error", "line", "stderr", "files", "value"}

// compare returns how two outcomes differ, by the parts that do.
func compare(plain, served outcome) map[string]string {
	found := map[string]string{}
	note := func(part string, p, s any) {
		if !reflect.DeepEqual(p, s) {
			found[part] = fmt.Sprintf("plain Python has %q, the server has %q", fmt.Sprint(p), fmt.Sprint(s))
		}
	}
	note("exit", plain.exit, served.exit)
	note("stdout", settled(plain.stdout), settled(served.stdout))
	note("error", lastLine(plain.stderr), lastLine(served.stderr))
	note("line", innermost(plain.stderr), innermost(served.stderr))
	note("stderr", settled(plain.stderr), settled(served.stderr))
	note("files", listed(plain.files), listed(served.files))
	if plain.valued {
		note("value", canonical(plain.value), canonical(served.value))
	}
	return found
}

// address matches the address of an object in its repr.
var address = regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`)

// duration matches how long the tests of unittest took.
var duration = regexp.MustCompile(`(?m)^(Ran \d+ tests? in )\d+\.\d+s$`)

// settled returns text without what differs between any two runs of Python.
func settled(text string) string {
	return duration.ReplaceAllString(address.ReplaceAllString(text, "0x…"), "${1}0s")
}

// lastLine returns the last line of stderr that has words. The traceback of a group of errors ends with a
// line of hyphens.
func lastLine(stderr string) string {
	text := strings.TrimRight(settled(stderr), "\n |+-")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ownFrame matches the lines of tracebacks that name lines of the program.
var ownFrame = regexp.MustCompile(`File "<program>", line (\d+)`)

func innermost(stderr string) string {
	if all := ownFrame.FindAllStringSubmatch(stderr, -1); all != nil {
		return all[len(all)-1][1]
	}
	return "none"
}

func listed(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s (%s) ", name, files[name])
	}
	return b.String()
}

// canonical returns a JSON value in a form in which equal values are equal.
func canonical(value json.RawMessage) string {
	if len(value) == 0 {
		return "none"
	}
	decoder := json.NewDecoder(strings.NewReader(string(value)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return fmt.Sprintf("%s: %v", value, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return settled(string(text))
}
