// Package storetest tests whether a continuation.Store keeps its contract. The tests of
// every implementation run it.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"fermata/continuation"
)

// ttl is longer than any test that does not test expiry.
const ttl = time.Minute

// A storeTest is a test of any store.
type storeTest struct {
	name string
	test func(t *testing.T, s continuation.Store)
}

// Run tests the store that open returns. It calls open once for each test. The stores may
// share their records; open must see to it that each is closed when its test ends.
func Run(t *testing.T, open func(t *testing.T) continuation.Store) {
	tests := []storeTest{
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
	for _, test := range slices.Concat(tests, journalTests, usageTests, spendingTests) {
		t.Run(test.name, func(t *testing.T) { test.test(t, open(t)) })
	}
}

// NewRecord returns the first version of a record with a new id and values in most fields.
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
	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
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
	// Answers are compared separately, since a diff of megabytes would take minutes.
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
		"Put":    s.Put(ctx, next, ttl, continuation.Chapter{}),
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
