package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// JSONLog makes a server log lines of JSON, which LogLines reads.
var JSONLog = Settings{"LOG_FORMAT": "json"}

// A LogLine is a line of a log with its attributes.
type LogLine map[string]any

// Text returns an attribute that is a text, or "".
func (l LogLine) Text(key string) string {
	s, _ := l[key].(string)
	return s
}

// Number returns an attribute that is a number, or -1.
func (l LogLine) Number(key string) float64 {
	if n, ok := l[key].(float64); ok {
		return n
	}
	return -1
}

// Lines returns the lines of a log that have all these attributes, among them "msg".
func (l *Log) Lines(want LogLine) (lines []LogLine) {
	for text := range strings.Lines(l.All()) {
		var line LogLine
		if json.Unmarshal([]byte(text), &line) != nil {
			continue // The program itself writes a last word that is no line of the log.
		}
		fits := true
		for key, value := range want {
			fits = fits && line[key] == value
		}
		if fits {
			lines = append(lines, line)
		}
	}
	return lines
}

// AwaitLines waits until the log has n lines with these attributes, and returns them: a request is
// logged after its answer.
func (l *Log) AwaitLines(t testing.TB, n int, want LogLine) (lines []LogLine) {
	t.Helper()
	err := Within(10*time.Second, func() error {
		if lines = l.Lines(want); len(lines) != n {
			return fmt.Errorf("the log has %d lines with %v, want %d", len(lines), want, n)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, l.Tail())
	}
	return lines
}
