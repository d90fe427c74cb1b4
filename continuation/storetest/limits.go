package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
)

// RunLimits tests whether the store that open returns keeps its limits. Each call of open must return a store
// without journals.
func RunLimits(t *testing.T, open func(t *testing.T, limits continuation.JournalLimits) continuation.Store) {
	for name, test := range map[string]struct {
		limits continuation.JournalLimits
		test   func(t *testing.T, s continuation.Store)
	}{
		"Number":    {continuation.JournalLimits{Principal: 5 * continuation.JournalLeast}, testNumberLimit},
		"Bytes":     {continuation.JournalLimits{Principal: 100 << 10}, testBytesLimit},
		"Everyone":  {continuation.JournalLimits{Principal: 100 << 10, All: 6 * continuation.JournalLeast}, testWholeLimit},
		"LiveStays": {continuation.JournalLimits{Principal: 20 << 10}, testLiveLimit},
	} {
		t.Run(name, func(t *testing.T) { test.test(t, open(t, test.limits)) })
	}
}

// tell writes the whole journal of an execution, with about the given number of bytes.
func tell(t *testing.T, s continuation.Store, principal string, bytes int) string {
	t.Helper()
	a := NewAuthor(s, principal)
	a.begin(t, bytes)
	a.End(t, time.Hour)
	time.Sleep(2 * time.Millisecond) // Ends are ordered by whole milliseconds.
	return a.Record.ID
}

func (a *Author) begin(t *testing.T, bytes int) {
	t.Helper()
	r, c := a.Next(1)
	c.Events[0] = fmt.Appendf(nil, `"%s"`, strings.Repeat("x", bytes))
	c.Summary = a.Summary(false)
	a.Put(t, r, c)
}

// wantKept waits until exactly these of the executions have journals.
func wantKept(t *testing.T, s continuation.Store, all, want []string) {
	t.Helper()
	eventually(t, func() string {
		var got []string
		for _, id := range all {
			if _, err := s.Events(t.Context(), id, 0, 1); err == nil {
				got = append(got, id)
			}
		}
		list := summaries(t, s, "*", continuation.Place{}, len(all)+1)
		if !slices.Equal(got, want) || len(list) != len(want) {
			return fmt.Sprintf("%d of %d journals and %d summaries are kept, want the %d newest", len(got), len(all), len(list), len(want))
		}
		return ""
	})
}

func testNumberLimit(t *testing.T, s continuation.Store) {
	var ids []string
	for range 12 {
		ids = append(ids, tell(t, s, "ada", 10))
	}
	bob := tell(t, s, "bob", 10)
	wantKept(t, s, append(slices.Clone(ids), bob), append(slices.Clone(ids[7:]), bob))
}

func testBytesLimit(t *testing.T, s continuation.Store) {
	var ids []string
	for range 8 {
		ids = append(ids, tell(t, s, "ada", 30<<10))
	}
	wantKept(t, s, ids, ids[5:])
	// Forgetting one makes room.
	if err := s.Forget(t.Context(), ids[6]); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, tell(t, s, "ada", 30<<10))
	wantKept(t, s, ids, []string{ids[5], ids[7], ids[8]})
}

func testWholeLimit(t *testing.T, s continuation.Store) {
	var ids []string
	for i := range 10 {
		ids = append(ids, tell(t, s, fmt.Sprint("user ", i), 10))
	}
	wantKept(t, s, ids, ids[4:])
}

func testLiveLimit(t *testing.T, s continuation.Store) {
	ended := tell(t, s, "ada", 10)
	live := NewAuthor(s, "ada")
	live.begin(t, 2<<20)
	live.Write(t, 1)
	wantKept(t, s, []string{ended, live.Record.ID}, []string{live.Record.ID})
}
