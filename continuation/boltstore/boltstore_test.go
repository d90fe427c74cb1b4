package boltstore_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/continuation/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(tb testing.TB, path string, options ...boltstore.Option) *boltstore.Store {
	tb.Helper()
	s, err := boltstore.Open(path, slog.New(slog.DiscardHandler), options...)
	if err != nil {
		tb.Fatalf("Open = %v, want success", err)
	}
	return s
}

func closeStore(tb testing.TB, s *boltstore.Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Errorf("Close = %v, want success", err)
	}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) continuation.Store {
		s := open(t, filepath.Join(t.TempDir(), "records.db"))
		t.Cleanup(func() { closeStore(t, s) })
		return s
	})
}

func TestLimits(t *testing.T) {
	storetest.RunLimits(t, func(t *testing.T, limits continuation.JournalLimits) continuation.Store {
		s := open(t, filepath.Join(t.TempDir(), "records.db"), boltstore.WithLimits(limits))
		t.Cleanup(func() { closeStore(t, s) })
		return s
	})
}

func BenchmarkStore(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "records.db"))
	defer closeStore(b, s)
	storetest.Benchmark(b, s)
}
