package core

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var s Tail
	s.Add(0, []byte("a\xc3"))
	if got := s.String(); got != "a" {
		t.Errorf("before the second byte of a character: %q, want %q", got, "a")
	}
	s.Add(0, []byte("a\xc3\xa9"))    // As a sandbox repeats it to a new server.
	s.Add(1, []byte("\xc3"))         // Nothing new.
	s.Add(9, []byte("out of place")) // No sandbox of ours leaves a gap.
	s.Add(3, []byte("\xff"))
	if got, want := s.String(), "aé\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	at := s.seen
	for range 10 * mostPartial / 30 {
		s.Add(at, []byte(strings.Repeat("é", 15)))
		at += 30
	}
	got := s.String()
	if want := "…" + strings.Repeat("é", mostPartial/2); got != want {
		t.Errorf("got %d bytes that begin with %q, want the last %d bytes with a mark before them", len(got), got[:20], mostPartial)
	}
	if cap(s.text) > 4*mostPartial {
		t.Errorf("a tail takes %d bytes", cap(s.text))
	}
}

// The quota counts what is stored, which may be much more than what a program has printed.
func TestSizeOfPartialOutput(t *testing.T) {
	for _, text := range []string{"", "plain\n", "é…", "\x00\x01\x1f", `"\`, strings.Repeat("\x00", 1000)} {
		outcome := Outcome{Stdout: text}
		raw, err := outcome.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var kept map[string]json.RawMessage
		if err := json.Unmarshal(raw, &kept); err != nil {
			t.Fatal(err)
		}
		if got, want := sizeAsJSON(text), int64(max(0, len(kept["stdout"])-len(`""`))); got != want {
			t.Errorf("%q takes %d bytes, want %d as in %s", text, got, want, kept["stdout"])
		}
	}
}
