package journal

import (
	"encoding/json"
	"strings"

	"fermata/continuation"
)

// A Transcript collects what a program has printed from the events of its journal.
type Transcript struct {
	last           int64
	stdout, stderr strings.Builder
}

// Add adds the next events. It ignores events that are not output or cannot be read.
func (t *Transcript) Add(events ...continuation.Event) {
	for _, e := range events {
		t.last = e.Seq
		var o Output
		if err := json.Unmarshal(e.Content, &o); err != nil || o.Type != TypeOutput {
			continue
		}
		if Stream(o.Stream) == Stdout {
			t.stdout.WriteString(o.Text)
		} else {
			t.stderr.WriteString(o.Text)
		}
	}
}

// Last returns the number of the last event that was added.
func (t *Transcript) Last() int64 { return t.last }

// Stdout returns what was printed to stdout.
func (t *Transcript) Stdout() string { return t.stdout.String() }

// Stderr returns what was printed to stderr.
func (t *Transcript) Stderr() string { return t.stderr.String() }
