package harness

import (
	"slices"
	"strings"
	"testing"
)

// A Case is a program and how it is to end.
type Case struct {
	Name, Code string
	Tools      []Tool
	Answer     Handler // echo if nil
	Timeout    int
	Lang       string
	// stdout is all that is printed. If error is set the program fails with it.
	Stdout, Error string
	// stderr is what is to be found there, in this order; without any, nothing is.
	Stderr []string
	// batches are the numbers of calls by round, if that matters.
	Batches []int
}

// RunCases runs programs on a server.
func RunCases(t *testing.T, c Client, cases []Case) {
	for _, tc := range cases {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			if tc.Answer == nil {
				tc.Answer = Echo
			}
			a, batches := c.Run(t, Program{Code: Py(tc.Code), Tools: tc.Tools, Timeout: tc.Timeout, Lang: tc.Lang}, tc.Answer)
			if tc.Error == "" {
				a.Completes(t, tc.Stdout)
			} else {
				a.Fails(t, 200, tc.Error)
				if a.Stdout != tc.Stdout {
					t.Errorf("stdout = %q, want %q", a.Stdout, tc.Stdout)
				}
			}
			Contains(t, "stderr", a.Stderr, tc.Stderr...)
			if len(tc.Stderr) == 0 && a.Stderr != "" {
				t.Errorf("stderr = %q, want nothing", a.Stderr)
			}
			if tc.Batches != nil && !slices.Equal(batches, tc.Batches) {
				t.Errorf("calls by round = %v, want %v", batches, tc.Batches)
			}
		})
	}
}

// Contains checks that text has the pieces in this order.
func Contains(t testing.TB, what, text string, pieces ...string) {
	t.Helper()
	rest := text
	for _, piece := range pieces {
		_, after, ok := strings.Cut(rest, piece)
		if !ok {
			t.Errorf("%s = %q, want it to contain %q", what, text, pieces)
			return
		}
		rest = after
	}
}
