package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/continuation"
)

var usageTests = []storeTest{
	{"UsageAddsUp", testUsage},
	{"UsagePages", testUsagePages},
	{"UsageOfManyWriters", testUsageWriters},
	{"UsageLife", testUsageLife},
	{"UsageOddText", testUsageOddText},
	{"UsageCancelledContext", testUsageCancelled},
}

// usageLife is longer than the age of any day in these tests.
const usageLife = 30 * 24 * time.Hour

// ago returns the day that was some days before today.
func ago(days int) continuation.Day { return continuation.DayOf(time.Now()).Add(-days) }

func mustAdd(t *testing.T, s continuation.Store, add ...continuation.Usage) {
	t.Helper()
	if err := s.AddUsage(t.Context(), add, usageLife); err != nil {
		t.Fatalf("AddUsage = %v, want success", err)
	}
}

// usage returns all sums of a principal, or of everyone for "*", in pages.
func usage(t *testing.T, s continuation.Store, principal string, since, until continuation.Day, limit int) []continuation.Usage {
	t.Helper()
	var all []continuation.Usage
	q := continuation.UsageQuery{Principal: principal, Everyone: principal == "*", Since: since, Until: until, Limit: limit}
	for {
		page, err := s.Usage(t.Context(), q)
		if err != nil || len(page) > limit {
			t.Fatalf("Usage = %d sums, %v; want at most %d", len(page), err, limit)
		}
		all = append(all, page...)
		if len(page) < limit {
			return all
		}
		q.After = page[len(page)-1]
		q.After.Calls, q.After.Cost = 0, 0
	}
}

func wantUsage(t *testing.T, what string, got, want []continuation.Usage) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

func testUsage(t *testing.T, s continuation.Store) {
	wantUsage(t, "the usage of nobody", usage(t, s, "ada", ago(9), ago(0), 10), nil)
	row := func(days int, toolset string, calls, cost int64) continuation.Usage {
		return continuation.Usage{Day: ago(days), Principal: "ada", Toolset: toolset, Calls: calls, Cost: cost}
	}
	mustAdd(t, s, row(1, "weather", 2, 6), row(0, "weather", 1, 3))
	other := continuation.Usage{Day: ago(0), Principal: "bob", Toolset: "weather", Calls: 100, Cost: 1 << 40}
	mustAdd(t, s, row(0, "weather", 4, 12), row(0, "files", 1, 0), other)
	mustAdd(t, s)

	want := []continuation.Usage{row(0, "files", 1, 0), row(0, "weather", 5, 15), row(1, "weather", 2, 6)}
	wantUsage(t, "the usage of ada", usage(t, s, "ada", ago(9), ago(0), 10), want)
	wantUsage(t, "the usage of bob", usage(t, s, "bob", ago(9), ago(0), 10), []continuation.Usage{other})
	wantUsage(t, "the usage of yesterday", usage(t, s, "ada", ago(1), ago(1), 10), want[2:])
	wantUsage(t, "the usage of today", usage(t, s, "ada", ago(0), ago(0), 10), want[:2])
	wantUsage(t, "the usage of the days before", usage(t, s, "ada", ago(9), ago(2), 10), nil)
	wantUsage(t, "the usage of a span that is none", usage(t, s, "ada", ago(0), ago(1), 10), nil)
	if all := usage(t, s, "*", ago(9), ago(0), 10); len(all) != 4 || !slices.Contains(all, other) {
		t.Errorf("the usage of everyone is %v, want 4 sums with that of bob", all)
	}
}

func testUsagePages(t *testing.T, s continuation.Store) {
	const principals, toolsets, days = 7, 3, 5
	want := map[string][]continuation.Usage{}
	for day := range days {
		for p := range principals {
			for toolset := range toolsets {
				u := continuation.Usage{
					Day: ago(2 * day), Principal: fmt.Sprint("user ", p), Toolset: fmt.Sprint("t", toolset),
					Calls: int64(1 + day), Cost: int64(p * toolset),
				}
				mustAdd(t, s, u)
				want[u.Principal] = append(want[u.Principal], u)
			}
		}
	}
	whole := usage(t, s, "*", ago(20), ago(0), 1000)
	if len(whole) != principals*toolsets*days || !slices.IsSortedFunc(whole, func(a, b continuation.Usage) int {
		return strings.Compare(string(b.Day), string(a.Day))
	}) {
		t.Errorf("the usage of everyone has %d sums, want %d in the order of their days", len(whole), principals*toolsets*days)
	}
	for _, limit := range []int{1, 2, 3, 8, 1000} {
		wantUsage(t, fmt.Sprintf("the usage of everyone in pages of %d", limit), usage(t, s, "*", ago(20), ago(0), limit), whole)
		for p, sums := range want {
			wantUsage(t, fmt.Sprintf("the usage of %s in pages of %d", p, limit), usage(t, s, p, ago(20), ago(0), limit), sums)
			var among []continuation.Usage
			for _, u := range whole {
				if u.Principal == p {
					among = append(among, u)
				}
			}
			wantUsage(t, "the usage of "+p+" among that of everyone", among, sums)
		}
	}
}

func testUsageWriters(t *testing.T, s continuation.Store) {
	const writers, writes = 4, 25
	u := continuation.Usage{Day: ago(0), Principal: "ada", Toolset: "weather", Calls: 1, Cost: 3}
	var working sync.WaitGroup
	for range writers {
		working.Go(func() {
			for range writes {
				if err := s.AddUsage(context.WithoutCancel(t.Context()), []continuation.Usage{u}, usageLife); err != nil {
					t.Errorf("AddUsage = %v, want success", err)
				}
			}
		})
	}
	working.Wait()
	u.Calls, u.Cost = writers*writes, 3*writers*writes
	wantUsage(t, "what many have added", usage(t, s, "ada", ago(0), ago(0), 10), []continuation.Usage{u})
}

func testUsageLife(t *testing.T, s continuation.Store) {
	row := func(days int) continuation.Usage {
		return continuation.Usage{Day: ago(days), Principal: "ada", Toolset: "weather", Calls: 1, Cost: 3}
	}
	mustAdd(t, s, row(400), row(5), row(0))
	wantUsage(t, "what lives", usage(t, s, "ada", ago(401), ago(0), 10), []continuation.Usage{row(0), row(5)})
}

func testUsageOddText(t *testing.T, s continuation.Store) {
	for _, text := range []string{"", "\x00 in \x1f the middle", "{braces}*?[a-z]", "名前 🎵", "key:ops"} {
		u := continuation.Usage{Day: ago(0), Principal: text, Toolset: "weather", Calls: 1, Cost: 3}
		mustAdd(t, s, u)
		wantUsage(t, fmt.Sprintf("the usage of %q", text), usage(t, s, text, ago(0), ago(0), 10), []continuation.Usage{u})
	}
}

func testUsageCancelled(t *testing.T, s continuation.Store) {
	u := continuation.Usage{Day: ago(0), Principal: "ada", Toolset: "weather", Calls: 1, Cost: 3}
	mustAdd(t, s, u)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Usage(ctx, continuation.UsageQuery{Principal: "ada", Since: ago(1), Until: ago(0), Limit: 10})
	for what, err := range map[string]error{"AddUsage": s.AddUsage(ctx, []continuation.Usage{u}, usageLife), "Usage": err} {
		wantError(t, what+" with a cancelled context", err, continuation.ErrUnavailable)
		wantError(t, what+" with a cancelled context", err, context.Canceled)
	}
	wantUsage(t, "what there was", usage(t, s, "ada", ago(0), ago(0), 10), []continuation.Usage{u})
}
