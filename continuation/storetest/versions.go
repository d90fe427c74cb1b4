package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"fermata/continuation"
)

func testVersions(t *testing.T, s continuation.Store) {
	r := NewRecord()
	for _, version := range []int64{-1, 0, 2, 3} {
		r.Version = version
		wantError(t, fmt.Sprintf("Put of version %d before any", version), s.Put(t.Context(), r, ttl, continuation.Chapter{}), continuation.ErrConflict)
	}
	_, err := s.Get(t.Context(), r.ID)
	wantError(t, "Get after refused Puts", err, continuation.ErrNotFound)

	for version := int64(1); version <= 300; version++ { // beyond one byte
		r.Version, r.Round = version, int(version)
		mustPut(t, s, r, ttl)
	}
	stale := r
	stale.State = "written by a loser"
	for _, version := range []int64{-1, 0, 1, 44, 299, 300, 302, 556} {
		stale.Version = version
		wantError(t, fmt.Sprintf("Put of version %d after 300", version), s.Put(t.Context(), stale, ttl, continuation.Chapter{}), continuation.ErrConflict)
	}
	wantError(t, "the same Put again", s.Put(t.Context(), r, ttl, continuation.Chapter{}), continuation.ErrConflict)
	wantGet(t, s, r)
}

func testRace(t *testing.T, s continuation.Store) {
	for range 100 {
		r := NewRecord()
		mustPut(t, s, r, ttl)
		r.Version = 2

		var won atomic.Int32
		race(16, func(i int) {
			claim := r
			if i%2 == 0 { // the other half of the claims are identical
				claim.Owner = fmt.Sprint("server-", i)
			}
			switch err := s.Put(t.Context(), claim, ttl, continuation.Chapter{}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, continuation.ErrConflict):
				t.Errorf("Put = %v, want success or ErrConflict", err)
			}
		})
		if got := won.Load(); got != 1 {
			t.Fatalf("%d of 16 claims of one version passed, want 1", got)
		}
	}

	var won atomic.Int32
	first := NewRecord()
	race(16, func(int) {
		if s.Put(t.Context(), first, ttl, continuation.Chapter{}) == nil {
			won.Add(1)
		}
	})
	if got := won.Load(); got != 1 {
		t.Errorf("%d of 16 first versions passed, want 1", got)
	}
}

// race runs f n times at once.
func race(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func testManyWriters(t *testing.T, s continuation.Store) {
	race(32, func(int) {
		r := NewRecord()
		for r.Version = 1; r.Version <= 20; r.Version++ {
			if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
				t.Errorf("Put of version %d = %v, want success", r.Version, err)
				return
			}
			got, err := s.Get(t.Context(), r.ID)
			if err != nil || got.Version != r.Version {
				t.Errorf("Get = version %d, %v, want version %d", got.Version, err, r.Version)
				return
			}
		}
		if err := s.Delete(t.Context(), r.ID); err != nil {
			t.Errorf("Delete = %v, want success", err)
		}
	})
}
