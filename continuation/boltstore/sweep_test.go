package boltstore

import (
	"encoding/binary"
	"errors"
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
		return eachRecord(tx, nil, func(_, _ []byte) (bool, error) {
			n++
			return true, nil
		})
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

// The journal of an execution that nobody has ended is removed when JournalSlack is over, however large it is.
func TestSweepJournals(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "records.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("Open = %v, want success", err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v, want success", err)
		}
	}()
	var authors []*storetest.Author
	for range 2 {
		a := storetest.NewAuthor(s, "ada")
		for range 2*cutBatch + 10 {
			a.Write(t, 1)
		}
		authors = append(authors, a)
	}
	// The first record expired more than JournalSlack ago, the second one less than JournalSlack ago.
	at, err := now()
	if err != nil {
		t.Fatal(err)
	}
	slack := continuation.JournalSlack.Milliseconds()
	for i, expiry := range []int64{at - slack - 1, at - slack + 60_000} {
		err := s.db.Update(func(tx *bolt.Tx) error {
			bucket, id := tx.Bucket([]byte(records)), []byte(authors[i].Record.ID)
			value := binary.BigEndian.AppendUint64(nil, uint64(expiry))
			return bucket.Put(id, append(value, bucket.Get(id)[8:]...))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // before the sweep and after it
		if _, err := s.Events(t.Context(), authors[0].Record.ID, 0, 1); !errors.Is(err, continuation.ErrNotFound) {
			t.Errorf("Events of an execution that ran out long ago = %v, want ErrNotFound", err)
		}
		storetest.WantEvents(t, s, authors[1].Record.ID, 1, authors[1].Record.Events)
		if list, err := s.Summaries(t.Context(), "ada", false, continuation.Place{}, 10); err != nil || len(list) != 1 {
			t.Errorf("Summaries = %d, %v, want 1", len(list), err)
		}
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, s); got != 1 {
		t.Errorf("%d records are left, want 1", got)
	}
	err = s.db.View(func(tx *bolt.Tx) error {
		for bucket, want := range map[string]int{records: 1 + 2*cutBatch + 10, summaries: 1, places: 2} {
			if got := tx.Bucket([]byte(bucket)).Stats().KeyN; got != want {
				t.Errorf("%s has %d keys, want %d", bucket, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.keeper.space.totals[everyone]; got != s.keeper.space.live[authors[1].Record.ID].size {
		t.Errorf("journals count %d bytes, want what one of them takes", got)
	}
}
