package mcptool

import (
	"strings"
	"testing"
	"time"
)

func masked(s string) string { return strings.ReplaceAll(s, "secret-of-the-file", "***") }

// TestBanner shows that lines on the standard output that are no messages are logged in quotes and skipped.
func TestBanner(t *testing.T) {
	var log record
	s := hostileSource(t, "banner", func(o *Options) { o.Log, o.Mask = log.logger(), masked })
	if got, err := call(t, s, "alice", "echo", `{}`); err != nil || got != `{}` {
		t.Errorf("got %s, %v", got, err)
	}
	if all := log.String(); !strings.Contains(all, `banner\\x1b[1m ***`) || strings.Contains(all, "secret-of") {
		t.Errorf("the log is %s", all)
	}
}

// TestReasonsQuote shows that the reason for a process that ends at once has what the process has said.
func TestReasonsQuote(t *testing.T) {
	s := hostileSource(t, "reasons", func(o *Options) { o.Mask = masked })
	_, err := s.Tools(t.Context())
	const want = string(errEnded) + `; the last that it wrote to its standard error is "line 2 ***", "line 3 ***", "line 4 ***"; to its standard output it wrote what is no message: "hello"`
	wantFailure(t, err, false, want)
}

// TestLateStarts shows that a server that never answers has the reason that it was late.
func TestLateStarts(t *testing.T) {
	s := hostileSource(t, "silent", func(o *Options) { o.StartTimeout = time.Second })
	_, err := s.Tools(t.Context())
	wantFailure(t, err, false, "it was not ready within 1 seconds")
}

// TestBackOffOfOnePrincipal shows that a failed start for one principal keeps no other from trying.
func TestBackOffOfOnePrincipal(t *testing.T) {
	s := hostileSource(t, "", nil)
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	command := s.o.Command
	s.mu.Lock()
	s.o.Command = []string{"/bin/false"}
	s.mu.Unlock()
	_, err := call(t, s, "alice", "echo", `{}`)
	wantFailure(t, err, false, string(errEnded))
	s.mu.Lock()
	s.o.Command = command
	s.mu.Unlock()
	_, err = call(t, s, "alice", "echo", `{}`)
	wantFailure(t, err, false, string(errEnded)) // Her own back-off holds.
	if got, err := call(t, s, "bob", "echo", `{}`); got != `{}` || err != nil || s.State().State != Ready {
		t.Errorf("another principal: %s, %v, %+v", got, err, s.State())
	}
}

// TestSilentToUnknownMethods starts servers that do not answer a request of a method that they do not know, or only
// after they were asked something else.
func TestSilentToUnknownMethods(t *testing.T) {
	for _, mode := range []string{"silent-to-unknown", "late-to-unknown"} {
		t.Run(mode, func(t *testing.T) {
			s := hostileSource(t, mode, func(o *Options) { o.times.probe = 300 * time.Millisecond })
			began := time.Now()
			if got, err := call(t, s, "alice", "echo", `{}`); got != `"{}"` && got != `{}` || err != nil {
				t.Errorf("%s, %v", got, err)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
