package usage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const life = 48 * time.Hour

func openStore(t *testing.T) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(filepath.Join(t.TempDir(), "records.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func closeCounter(t *testing.T, c *usage.Counter) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close = %v, want success", err)
	}
}

func today() continuation.Day { return continuation.DayOf(time.Now()) }

func wantList(t *testing.T, c *usage.Counter, q continuation.UsageQuery, want []continuation.Usage) {
	t.Helper()
	got, err := c.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List differs (-want +got):\n%s", diff)
	}
}

// Concurrent calls of Used add up, and Close writes the rest.
func TestCounter(t *testing.T) {
	store := openStore(t)
	c := usage.New(usage.Options{Store: store, Life: life, Log: slog.New(slog.DiscardHandler)})
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			for range 100 {
				c.Used("ada", "weather", 3)
			}
		})
	}
	working.Wait()
	c.Used("ada", "files", 0)
	closeCounter(t, c)

	c = usage.New(usage.Options{Store: store, Life: life, Log: slog.New(slog.DiscardHandler)})
	defer closeCounter(t, c)
	wantList(t, c, continuation.UsageQuery{Principal: "ada", Limit: 10}, []continuation.Usage{
		{Day: today(), Principal: "ada", Toolset: "files", Calls: 1},
		{Day: today(), Principal: "ada", Toolset: "weather", Calls: 800, Cost: 2400},
	})
}

// Counts are in the store a second later, without Close.
func TestWritesEverySecond(t *testing.T) {
	c := usage.New(usage.Options{Store: openStore(t), Life: life, Log: slog.New(slog.DiscardHandler)})
	defer closeCounter(t, c)
	for i := range int64(2) {
		c.Used("ada", "weather", 3)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			list, err := c.List(t.Context(), continuation.UsageQuery{Everyone: true, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 1 && list[0].Calls == i+1 && list[0].Cost == 3*(i+1) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("after 10 s the sums are %v, want %d calls", list, i+1)
			}
		}
	}
}

// Days that are older than Life are not shown, even if the store still has them.
func TestLife(t *testing.T) {
	store := openStore(t)
	row := func(days int) continuation.Usage {
		return continuation.Usage{Day: today().Add(-days), Principal: "ada", Toolset: "weather", Calls: 1, Cost: 3}
	}
	if err := store.AddUsage(t.Context(), []continuation.Usage{row(0), row(2), row(3), row(300)}, 1000*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	c := usage.New(usage.Options{Store: store, Life: life, Log: slog.New(slog.DiscardHandler)})
	defer closeCounter(t, c)
	wantList(t, c, continuation.UsageQuery{Principal: "ada", Until: "9999-12-31", Limit: 10}, []continuation.Usage{row(0), row(2)})
	wantList(t, c, continuation.UsageQuery{Principal: "ada", Since: today().Add(-1), Limit: 10}, []continuation.Usage{row(0)})
}

// failing is a store that reports each write as failed although it has succeeded.
type failing struct{ continuation.Usages }

func (f failing) AddUsage(ctx context.Context, add []continuation.Usage, life time.Duration) error {
	return errors.Join(f.Usages.AddUsage(ctx, add, life), continuation.ErrUnavailable)
}

// Sums that may have been written are not written again, and sums for which there is no room are logged.
func TestNeverTooMuch(t *testing.T) {
	store := openStore(t)
	var log bytes.Buffer
	c := usage.New(usage.Options{Store: failing{store}, Life: life, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 10_003 {
		c.Used(fmt.Sprint("user ", i), "weather", 3)
	}
	closeCounter(t, c)
	list, err := store.Usage(t.Context(), continuation.UsageQuery{Everyone: true, Since: today(), Until: today(), Limit: 20_000})
	if err != nil || len(list) != 10_000 {
		t.Errorf("Usage = %d sums, %v; want 10,000", len(list), err)
	}
	for _, u := range list {
		if u.Calls != 1 {
			t.Fatalf("%v is counted more than once", u)
		}
	}
	for _, want := range []string{"calls may be missing", "calls=10000", "too many principals", "calls=3"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
}
