package storetest

import (
	"errors"
	"testing"
	"time"

	"fermata/continuation"
)

// awaitExpiry waits until the record is gone.
func awaitExpiry(t *testing.T, s continuation.Store, id string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; {
		_, err := s.Get(t.Context(), id)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return
		case err != nil:
			t.Fatalf("Get = %v, want the record or ErrNotFound", err)
		case time.Now().After(deadline):
			t.Fatal("the record is still there after 5 s, want it gone")
		}
	}
}

func testExpiry(t *testing.T, s continuation.Store) {
	const short = 50 * time.Millisecond
	r := NewRecord()
	began := time.Now()
	mustPut(t, s, r, short)
	awaitExpiry(t, s, r.ID)
	// Redis and the boot clock both count whole milliseconds.
	if lived := time.Since(began); lived < short-2*time.Millisecond {
		t.Errorf("the record lived for %v, want %v", lived, short)
	}

	list, err := s.List(t.Context())
	if err != nil {
		t.Fatalf("List = %v, want success", err)
	}
	for _, got := range list {
		if got.ID == r.ID {
			t.Error("List returns an expired record, want only live ones")
		}
	}

	next := r
	next.Version = 2
	wantError(t, "Put of version 2 after the record expired", s.Put(t.Context(), next, ttl, continuation.Chapter{}), continuation.ErrConflict)
	mustPut(t, s, r, ttl)
	wantGet(t, s, r)
}

func testShortestTTL(t *testing.T, s continuation.Store) {
	for _, ttl := range []time.Duration{-time.Hour, 0, 1, time.Millisecond - 1} {
		r := NewRecord()
		mustPut(t, s, r, ttl)
		awaitExpiry(t, s, r.ID)
	}
}

func testRenew(t *testing.T, s continuation.Store) {
	r := NewRecord()
	mustPut(t, s, r, 100*time.Millisecond)
	r.Version = 2
	mustPut(t, s, r, ttl)
	shorter := NewRecord()
	mustPut(t, s, shorter, ttl)
	shorter.Version = 2
	mustPut(t, s, shorter, 200*time.Millisecond)

	awaitExpiry(t, s, shorter.ID)
	wantGet(t, s, r)
}

func testDelete(t *testing.T, s continuation.Store) {
	r := NewRecord()
	mustPut(t, s, r, ttl)
	for range 2 {
		if err := s.Delete(t.Context(), r.ID); err != nil {
			t.Errorf("Delete = %v, want success", err)
		}
		_, err := s.Get(t.Context(), r.ID)
		wantError(t, "Get of a deleted record", err, continuation.ErrNotFound)
	}
	next := r
	next.Version = 2
	wantError(t, "Put of version 2 of a deleted record", s.Put(t.Context(), next, ttl, continuation.Chapter{}), continuation.ErrConflict)
	mustPut(t, s, r, ttl)
}
