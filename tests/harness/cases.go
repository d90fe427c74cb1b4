package harness

import (
	"slices"
	"strings"
	"testing"
)

// A Case is a program and how it must end.
type Case struct {
	Name, Code string
	Tools      []Tool
	Answer     Handler // Echo if nil
	Timeout    int
	Lang       string
	// Stdout is all that the program prints. If Error is set, the program must fail with it.
	Stdout, Error string
	// Stderr are pieces that stderr must contain in this order. Without any it must be empty.
	Stderr []string
	// Batches are the numbers of calls in each round; nil does not check them.
	Batches []int
}

// RunCases runs each case as a parallel subtest.
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

// Contains checks that text contains the pieces in this order.
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
