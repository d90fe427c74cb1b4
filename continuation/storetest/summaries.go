package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/continuation"
)

// summaries returns a page of the list of a principal; "*" is everyone.
func summaries(t *testing.T, s continuation.Store, principal string, after continuation.Place, limit int) []continuation.Summary {
	t.Helper()
	list, err := s.Summaries(t.Context(), principal, principal == "*", after, limit)
	if err != nil {
		t.Fatalf("Summaries = %v, want success", err)
	}
	return list
}

// wantList waits until the list of a principal has these summaries, newest first.
func wantList(t *testing.T, s continuation.Store, principal string, want ...*continuation.Summary) {
	t.Helper()
	eventually(t, func() string {
		list := summaries(t, s, principal, continuation.Place{}, len(want)+1)
		wanted := make([]continuation.Summary, len(want))
		for i, w := range want {
			wanted[i] = *w
		}
		return cmp.Diff(wanted, list)
	})
}

func testSummaries(t *testing.T, s continuation.Store) {
	const n = 23
	all := map[string][]continuation.Summary{}
	for i := range n {
		a := NewAuthor(s, []string{"ada", "bob", "eve"}[i%3])
		a.Record.Created = time.Now().Add(time.Duration(i*i%n) * time.Second).Truncate(time.Millisecond) // The executions are not created in this order.
		a.Write(t, 1)
		if i%2 == 0 {
			a.End(t, time.Hour)
		}
		summary := *a.Summary(i%2 == 0)
		all[a.Record.Principal] = append(all[a.Record.Principal], summary)
		all["*"] = append(all["*"], summary)
		if i == n/2 {
			time.Sleep(500 * time.Millisecond) // In this time the journals of ended executions may be moved.
		}
	}
	for principal, want := range all {
		slices.SortFunc(want, func(a, b continuation.Summary) int {
			if c := b.Created.Compare(a.Created); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		// Other tests may have left journals, from which the list of everyone must be filtered.
		ours := func(got []continuation.Summary) []continuation.Summary {
			return slices.DeleteFunc(got, func(s continuation.Summary) bool {
				return !slices.ContainsFunc(want, func(w continuation.Summary) bool { return w.ID == s.ID })
			})
		}
		eventually(t, func() string { return cmp.Diff(want, ours(summaries(t, s, principal, continuation.Place{}, 1000))) })
		for _, limit := range []int{1, 2, 7, n + 1} {
			var got []continuation.Summary
			for place := (continuation.Place{}); ; {
				page := summaries(t, s, principal, place, limit)
				got = append(got, page...)
				if len(page) < limit {
					break
				}
				last := page[len(page)-1]
				place = continuation.Place{Created: last.Created, ID: last.ID}
			}
			if diff := cmp.Diff(want, ours(got)); diff != "" {
				t.Errorf("the list of %s in pages of %d differs (-want +got):\n%s", principal, limit, diff)
			}
		}
	}
	if list := summaries(t, s, "nobody", continuation.Place{}, 10); len(list) != 0 {
		t.Errorf("the list of a principal without executions has %d, want none", len(list))
	}
}

// A summary that is written again takes the place of the one before.
func testSummaryChanges(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	a.Write(t, 1)
	for i := range 3 {
		r, c := a.Next(1)
		c.Summary = a.Summary(false)
		c.Summary.Content = fmt.Appendf(nil, `{"change":%d}`, i)
		a.Put(t, r, c)
		got, err := s.Summary(t.Context(), r.ID)
		if diff := cmp.Diff(*c.Summary, got); err != nil || diff != "" {
			t.Errorf("Summary = %v, differs (-want +got):\n%s", err, diff)
		}
		wantList(t, s, "ada", c.Summary)
	}
}

// Executions that began in the same millisecond are told apart by their ids.
func testSameMoment(t *testing.T, s continuation.Store) {
	began := time.Now().Truncate(time.Millisecond)
	want := map[string]int{}
	for range 40 {
		a := NewAuthor(s, "ada")
		a.Record.Created = began.Add(time.Duration(len(want)) * time.Nanosecond)
		a.Write(t, 1)
		want[a.Record.ID] = 1
	}
	eventually(t, func() string {
		got := map[string]int{}
		for place := (continuation.Place{}); ; {
			page := summaries(t, s, "ada", place, 3)
			for _, s := range page {
				got[s.ID]++
				place = continuation.Place{Created: s.Created, ID: s.ID}
			}
			if len(page) < 3 {
				return cmp.Diff(want, got)
			}
		}
	})
}
