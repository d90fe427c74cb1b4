package redisstore

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestClientLog checks that what the client for Redis says is one bounded line at level debug.
func TestClientLog(t *testing.T) {
	var b bytes.Buffer
	level := new(slog.LevelVar)
	l := clientLog{slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level}))}
	l.Printf(t.Context(), "a test %d", 1)
	if b.Len() > 0 {
		t.Errorf("logged %q at level info, want nothing", b.String())
	}
	level.Set(slog.LevelDebug)
	l.Printf(t.Context(), "a test\n%s", strings.Repeat("x", 1<<20))
	if got := b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `line="a test\nxxx`) || len(got) > 2*maxSaid {
		t.Errorf("logged %d bytes, %.200q, want one bounded line", len(got), got)
	}
}
