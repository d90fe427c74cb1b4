//go:build linux

package process

import (
	"context"
	"log/slog"
	"os/exec"
	"testing"
)

// A zygote that has ended tells why by the last line that it has said, and by the signal that has
// ended it, if one has.
func TestWhyEnded(t *testing.T) {
	for script, want := range map[string]string{
		"echo first >&2; echo last >&2; exit 1": "last",
		"exit 3":                                "the zygote has ended (exit status 3) and has said nothing",
		"kill -KILL $$":                         "the zygote was ended by a signal (killed) and has said nothing",
		"echo a warning >&2; kill -KILL $$":     "the zygote was ended by a signal (killed); the last that it said is: a warning",
	} {
		z := newZygote(dir{}, nil)
		z.words = &tail{log: slog.New(slog.DiscardHandler)}
		z.cmd = exec.CommandContext(context.Background(), "/bin/sh", "-c", script)
		z.cmd.Stderr = z.words
		_ = z.cmd.Run() // Every script fails.
		close(z.gone)
		if got := z.whyEnded(); got != want {
			t.Errorf("after %q: %q, want %q", script, got, want)
		}
	}
	if got := newZygote(dir{}, nil).whyEnded(); got != "" {
		t.Errorf("of a zygote that runs: %q", got)
	}
}
