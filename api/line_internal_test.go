package api

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTraceOf(t *testing.T) {
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, want := range map[string]string{
		"00-" + trace + "-" + parent + "-01":      trace,
		"01-" + trace + "-" + parent + "-01-more": trace,
		"": "",
		"00-" + trace + "-" + parent + "-01-more":                         "",
		"01-" + trace + "-" + parent + "-01more":                          "",
		"ff-" + trace + "-" + parent + "-01":                              "",
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":             "",
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01":            "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01":             "",
		"00-" + trace[:31] + "\n-" + parent + "-01":                       "",
		"00-" + trace + "-" + parent:                                      "",
		"00-" + trace + "_" + parent + "-01" + strings.Repeat("x", 1<<20): "",
	} {
		if got := traceOf(header); got != want {
			t.Errorf("traceOf(%.80q) = %q, want %q", header, got, want)
		}
	}
}

func TestBounded(t *testing.T) {
	if got := Bounded("short"); got != "short" {
		t.Errorf("Bounded = %q, want it unchanged", got)
	}
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("é", 1<<10), "x" + strings.Repeat("é", 1<<10)} {
		got := Bounded(long)
		if len(got) > maxReason+len("…") || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("Bounded of %d bytes = %q, want at most %d bytes and a mark", len(long), got, maxReason)
		}
	}
}

func TestLevelOf(t *testing.T) {
	trouble := errors.New("a test")
	for _, c := range []struct {
		status int
		facts  facts
		want   slog.Level
	}{
		{200, facts{}, slog.LevelInfo},
		{404, facts{}, slog.LevelInfo},
		{429, facts{}, slog.LevelInfo},
		{401, facts{}, slog.LevelWarn},
		{200, facts{warning: "a test"}, slog.LevelWarn},
		{503, facts{}, slog.LevelInfo},
		{503, facts{cause: trouble}, slog.LevelError},
		{200, facts{cause: trouble, warning: "a test"}, slog.LevelError},
	} {
		if got := levelOf(c.status, &c.facts); got != c.want {
			t.Errorf("levelOf(%d, %+v) = %v, want %v", c.status, c.facts, got, c.want)
		}
	}
}

// TestReasonQuotesNothing checks that a reason leaves out what its text quotes of the request.
func TestReasonQuotesNothing(t *testing.T) {
	var l line
	l.refuse(BadRequest(`call_id must match X, got: "secret-value"`), nil)
	if l.reason != "call_id must match X" {
		t.Errorf("reason = %q, want it without the value", l.reason)
	}
}
