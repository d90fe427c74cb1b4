package boltstore

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/storetest"
)

// count returns how many records the file holds, expired ones included.
func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.db.View(func(tx *bolt.Tx) error {
		n = tx.Bucket([]byte(records)).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	s, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("Open = %v, want success", err)
	}
	const live, dead = 50, 3*sweepBatch + 1
	last := ""
	for i := range live + dead {
		r, ttl := storetest.NewRecord(), time.Minute
		if i >= live {
			ttl, last = time.Millisecond, r.ID
		}
		if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
			t.Fatalf("Put = %v, want success", err)
		}
	}
	for {
		if _, err := s.Get(t.Context(), last); err != nil {
			break // expired
		}
	}

	if err := s.sweep(t.Context()); err != nil {
		t.Errorf("sweep = %v, want success", err)
	}
	if got := count(t, s); got != live {
		t.Errorf("%d records are left, want the %d live ones", got, live)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v, want success", err)
	}
}
