package tests

import (
	"slices"
	"strings"
	"testing"
)

// A programCase is a program and how it is to end.
type programCase struct {
	name, code string
	tools      []tool
	answer     handler // echo if nil
	timeout    int
	lang       string
	// stdout is all that is printed. If error is set the program fails with it.
	stdout, error string
	// stderr is what is to be found there, in this order; without any, nothing is.
	stderr []string
	// batches are the numbers of calls by round, if that matters.
	batches []int
}

// runCases runs programs on a server.
func runCases(t *testing.T, c client, cases []programCase) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.answer == nil {
				tc.answer = echo
			}
			a, batches := c.run(t, program{Code: py(tc.code), Tools: tc.tools, Timeout: tc.timeout, Lang: tc.lang}, tc.answer)
			if tc.error == "" {
				a.completes(t, tc.stdout)
			} else {
				a.fails(t, 200, tc.error)
				if a.Stdout != tc.stdout {
					t.Errorf("stdout = %q, want %q", a.Stdout, tc.stdout)
				}
			}
			contains(t, "stderr", a.Stderr, tc.stderr...)
			if len(tc.stderr) == 0 && a.Stderr != "" {
				t.Errorf("stderr = %q, want nothing", a.Stderr)
			}
			if tc.batches != nil && !slices.Equal(batches, tc.batches) {
				t.Errorf("calls by round = %v, want %v", batches, tc.batches)
			}
		})
	}
}

// contains checks that text has the pieces in this order.
func contains(t testing.TB, what, text string, pieces ...string) {
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
