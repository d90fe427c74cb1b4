package harness

import (
	"fmt"
	"strings"
	"testing"
)

// The check of journals finds what must not be in one.
func TestJournal(t *testing.T) {
	const started, asked, paused, resumed, ended = `"type":"execution.started","execution":"x"`,
		`"type":"call.started","call":"call_001","record":"r"`, `"type":"execution.paused","round":1,"waiting":["call_001"]`,
		`"type":"execution.resumed","round":1`, `"type":"execution.ended","rounds":1,"calls":1,"stdout_bytes":2`
	output := func(offset int) string {
		return fmt.Sprintf(`"type":"output","stream":"stdout","offset":%d,"text":"é"`, offset)
	}
	completed := `"type":"call.completed","call":"call_001","record":"r"`
	requested, given, refused := strings.Replace(asked, "call.started", "approval.requested", 1), `"type":"approval.given","call":"call_001"`, `"type":"approval.refused","call":"call_001"`
	failed := strings.Replace(completed, "completed", "failed", 1)
	for name, c := range map[string]struct {
		events []string
		bad    bool
	}{
		"whole":                  {events: []string{started, output(0), asked, paused, resumed, completed, ended}},
		"a type nobody knows":    {events: []string{started, `"type":"x"`, output(0)}},
		"no start":               {[]string{output(0)}, true},
		"two starts":             {[]string{started, started}, true},
		"of another execution":   {[]string{`"type":"execution.started","execution":"y"`}, true},
		"a gap":                  {[]string{started, "", output(0)}, true},
		"an older event":         {[]string{started, `"time":"1999-01-01T00:00:00Z",` + output(0)}, true},
		"output is missing":      {[]string{started, output(0), output(3)}, true},
		"output is repeated":     {[]string{started, output(0), output(0)}, true},
		"a call begins twice":    {[]string{started, asked, asked}, true},
		"a call ends twice":      {[]string{started, asked, completed, completed}, true},
		"a call that never was":  {[]string{started, completed}, true},
		"two pauses":             {[]string{started, asked, paused, paused}, true},
		"a pause for nothing":    {[]string{started, paused}, true},
		"no pause":               {[]string{started, asked, resumed}, true},
		"an end with open calls": {[]string{started, output(0), asked, paused, ended}, true},
		"an end without output":  {[]string{started, asked, paused, resumed, completed, ended}, true},
		"approved":               {events: []string{started, output(0), requested, paused, resumed, given, asked, completed, ended}},
		"refused":                {events: []string{started, output(0), requested, paused, resumed, refused, failed, ended}},
		"not approved":           {[]string{started, requested, paused, resumed, asked}, true},
		"refused, but begins":    {[]string{started, requested, paused, resumed, refused, asked}, true},
		"decided twice":          {[]string{started, requested, paused, resumed, refused, given}, true},
		"after the end":          {[]string{started, output(0), asked, paused, resumed, completed, ended, output(2)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := Journal{ID: "x"}
			var err error
			for i, e := range c.events {
				if err != nil {
					t.Fatalf("event %d: %v", i, err)
				}
				if e == "" {
					continue
				}
				moment := `"time":"2000-01-01T00:00:00Z",`
				if strings.HasPrefix(e, `"time"`) {
					moment = ""
				}
				err = j.add(fmt.Appendf(nil, `{"seq":%d,%s%s}`, i+1, moment, e))
			}
			if (err != nil) != c.bad {
				t.Errorf("got %v", err)
			}
		})
	}
}
