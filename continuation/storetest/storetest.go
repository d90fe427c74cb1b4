// Package storetest tries whether a continuation.Store keeps its contract. Every
// implementation runs it.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"fermata/continuation"
)

// ttl outlasts every test that does not try expiry.
const ttl = time.Minute

// Run tests the store that open returns. Open is called once for each test; it
// may return stores that share their records, and closes what it opened.
func Run(t *testing.T, open func(t *testing.T) continuation.Store) {
	tests := []struct {
		name string
		test func(t *testing.T, s continuation.Store)
	}{
		{"RoundTrip", testRoundTrip},
		{"OddText", testOddText},
		{"AnswerIsKeptByteForByte", testAnswer},
		{"LargeRecord", testLargeRecord},
		{"Versions", testVersions},
		{"OneOfManyClaimsWins", testRace},
		{"ManyWriters", testManyWriters},
		{"Expiry", testExpiry},
		{"ShortestTTL", testShortestTTL},
		{"PutRenewsTTL", testRenew},
		{"List", testList},
		{"ListManyRecords", testListMany},
		{"Delete", testDelete},
		{"CancelledContext", testCancelled},
		{"Ping", testPing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.test(t, open(t)) })
	}
}

// NewRecord returns the first version of a record with every field set and a new
// id.
func NewRecord() continuation.Record {
	return continuation.Record{
		Format:    continuation.RecordFormat,
		ID:        uuid.NewString(),
		Session:   "V1StGXR8_Z5jdHi6B-myT",
		Principal: "key:ops",
		State:     "paused",
		Version:   1,
		Round:     3,
		Created:   time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC),
		Deadline:  time.Date(2026, 2, 3, 4, 10, 6, 1, time.UTC),
		Budget:    time.Minute,
		Spent:     1234567 * time.Nanosecond,
		Owner:     "server-1",
		Sandbox:   "docker:0123456789ab",
		Tools:     []string{"get_weather", "send mail"},
		Issued:    2,
		Pending:   []continuation.Call{{Number: 7, ID: "call_001"}, {Number: 9, ID: "call_002"}},
		Request:   "sha256:00ff",
		Answer:    []byte(`{"status":"tool_call_required"}`),
	}
}

func mustPut(t *testing.T, s continuation.Store, r continuation.Record, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), r, ttl); err != nil {
		t.Fatalf("Put of version %d = %v, want success", r.Version, err)
	}
}

// wantGet checks that the store holds want.
func wantGet(t *testing.T, s continuation.Store, want continuation.Record) {
	t.Helper()
	got, err := s.Get(t.Context(), want.ID)
	if err != nil {
		t.Fatalf("Get = %v, want the record", err)
	}
	// A diff of megabytes would take minutes.
	if !bytes.Equal(got.Answer, want.Answer) {
		t.Errorf("Get returns an answer of %d bytes, want the %d that were put", len(got.Answer), len(want.Answer))
	}
	got.Answer, want.Answer = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Get differs (-want +got):\n%s", diff)
	}
}

// wantError checks that err, from what, wraps want.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

func testRoundTrip(t *testing.T, s continuation.Store) {
	full := NewRecord()
	mustPut(t, s, full, ttl)
	wantGet(t, s, full)

	bare := continuation.Record{Format: continuation.RecordFormat, ID: uuid.NewString(), Version: 1}
	mustPut(t, s, bare, ttl)
	wantGet(t, s, bare)

	_, err := s.Get(t.Context(), uuid.NewString())
	wantError(t, "Get of an unknown id", err, continuation.ErrNotFound)

	unset := NewRecord()
	unset.Format = 0
	mustPut(t, s, unset, ttl)
	unset.Format = continuation.RecordFormat
	wantGet(t, s, unset)
}

func testOddText(t *testing.T, s continuation.Store) {
	for _, text := range []string{
		"",
		"\x00 in \x1f the \x7f middle",
		"line\r\nbreaks\u2028\u2029",
		`"quotes" \ and </script>&amp;`,
		"名前 🎵 e\u0301",
		"{braces}*?[a-z]",
		strings.Repeat("long ", 10_000),
	} {
		r := NewRecord()
		r.Principal, r.Owner, r.Tools = text, text, []string{text, text}
		mustPut(t, s, r, ttl)
		wantGet(t, s, r)
	}

	r := NewRecord()
	r.Principal = "not \xff UTF-8"
	mustPut(t, s, r, ttl)
	r.Principal = "not \uFFFD UTF-8"
	wantGet(t, s, r)
}

func testAnswer(t *testing.T, s continuation.Store) {
	for _, answer := range []string{
		"{ \"spaces\" :\n\t[ 1.0, 1e400, 9007199254740993 ] }\n",
		`"<b>&\u2028\ud800"`,
		"not JSON at all \x00\xff",
	} {
		r := NewRecord()
		r.Answer = []byte(answer)
		mustPut(t, s, r, ttl)
		wantGet(t, s, r)
	}
}

func testLargeRecord(t *testing.T, s continuation.Store) {
	r := NewRecord()
	r.Answer = []byte(`"` + strings.Repeat("0123456789abcdef", 5<<20/16) + `"`)
	mustPut(t, s, r, ttl)
	small := NewRecord()
	mustPut(t, s, small, ttl)
	r.Version, r.State = 2, "completed"
	mustPut(t, s, r, ttl)
	wantGet(t, s, r)
	wantGet(t, s, small)
}

func testVersions(t *testing.T, s continuation.Store) {
	r := NewRecord()
	for _, version := range []int64{-1, 0, 2, 3} {
		r.Version = version
		wantError(t, fmt.Sprintf("Put of version %d before any", version), s.Put(t.Context(), r, ttl), continuation.ErrConflict)
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
		wantError(t, fmt.Sprintf("Put of version %d after 300", version), s.Put(t.Context(), stale, ttl), continuation.ErrConflict)
	}
	wantError(t, "the same Put again", s.Put(t.Context(), r, ttl), continuation.ErrConflict)
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
			if i%2 == 0 { // half of the claims are the same to the byte
				claim.Owner = fmt.Sprint("server-", i)
			}
			switch err := s.Put(t.Context(), claim, ttl); {
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
		if s.Put(t.Context(), first, ttl) == nil {
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
			if err := s.Put(t.Context(), r, ttl); err != nil {
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
	wantError(t, "Put of version 2 after the record expired", s.Put(t.Context(), next, ttl), continuation.ErrConflict)
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

func testList(t *testing.T, s continuation.Store) {
	want := make(map[string]continuation.Record)
	for i := range 20 {
		r := NewRecord()
		r.Round = i
		mustPut(t, s, r, ttl)
		want[r.ID] = r
	}
	gone := NewRecord()
	mustPut(t, s, gone, ttl)
	if err := s.Delete(t.Context(), gone.ID); err != nil {
		t.Fatalf("Delete = %v, want success", err)
	}

	list, err := s.List(t.Context())
	if err != nil {
		t.Fatalf("List = %v, want success", err)
	}
	got := make(map[string]continuation.Record)
	for _, r := range list {
		if _, ours := want[r.ID]; ours || r.ID == gone.ID {
			got[r.ID] = r
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List differs (-want +got):\n%s", diff)
	}
}

func testListMany(t *testing.T, s continuation.Store) {
	const n = 3000
	want := make(map[string]int, n)
	for range n {
		r := NewRecord()
		mustPut(t, s, r, ttl)
		want[r.ID] = 1
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatalf("List = %v, want success", err)
	}
	got := make(map[string]int, n)
	for _, r := range list {
		if want[r.ID] > 0 {
			got[r.ID]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("how often List names each record differs (-want +got):\n%s", diff)
	}
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
	wantError(t, "Put of version 2 of a deleted record", s.Put(t.Context(), next, ttl), continuation.ErrConflict)
	mustPut(t, s, r, ttl)
}

func testCancelled(t *testing.T, s continuation.Store) {
	r := NewRecord()
	mustPut(t, s, r, ttl)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	next := r
	next.Version = 2
	_, getErr := s.Get(ctx, r.ID)
	_, listErr := s.List(ctx)
	for what, err := range map[string]error{
		"Put":    s.Put(ctx, next, ttl),
		"Get":    getErr,
		"List":   listErr,
		"Delete": s.Delete(ctx, r.ID),
		"Ping":   s.Ping(ctx),
	} {
		wantError(t, what+" with a cancelled context", err, continuation.ErrUnavailable)
		wantError(t, what+" with a cancelled context", err, context.Canceled)
	}
	wantGet(t, s, r)
}

func testPing(t *testing.T, s continuation.Store) {
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want success", err)
	}
}
