package timeline

import "testing"

func TestIDsOfCallsInPaths(t *testing.T) {
	for call, want := range map[string]string{
		"toolu_01.a-b": "toolu_01.a-b", "functions.run_code:0": "functions.run_code%3A0", "call_a|fc_b": "call_a%7Cfc_b",
		"50%": "50%25", "../x": "%2E.%2Fx", "_a": "%5Fa", "]<\"'": "%5D%3C%22%27",
	} {
		if got := inPath(call); got != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
}
