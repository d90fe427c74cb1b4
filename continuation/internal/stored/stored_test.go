package stored_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/continuation/internal/stored"
	"fermata/continuation/storetest"
)

// Servers of other versions share the stored form. This test may get new cases but must
// never need another change.
func TestForm(t *testing.T) {
	const form = "\x00\x00\x01\xd9" +
		`{"format":1,"id":"5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f","session":"V1StGXR8_Z5jdHi6B-myT",` +
		`"principal":"key:ops","state":"paused","version":1,"round":3,` +
		`"created":"2026-02-03T04:05:06.789012345Z","deadline":"2026-02-03T04:10:06.000000001Z",` +
		`"budget_ns":60000000000,"spent_ns":1234567,"owner":"server-1","sandbox":"docker:0123456789ab",` +
		`"tools":["get_weather","send mail"],"issued":2,` +
		`"pending":[{"number":7,"id":"call_001"},{"number":9,"id":"call_002"}],"request":"sha256:00ff"}` +
		`{"status":"tool_call_required"}`
	want := storetest.NewRecord()
	want.ID = "5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f"

	got, err := stored.Append([]byte("head"), want)
	if err != nil {
		t.Fatalf("Append = %v, want success", err)
	}
	if diff := cmp.Diff("head"+form, string(got)); diff != "" {
		t.Errorf("Append differs (-want +got):\n%s", diff)
	}
	r, err := stored.Decode([]byte(form))
	if err != nil {
		t.Fatalf("Decode = %v, want success", err)
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("Decode differs (-want +got):\n%s", diff)
	}
}

// A newer server may add a field to the format.
func TestDecodeNewField(t *testing.T) {
	r, err := stored.Decode([]byte("\x00\x00\x00\x22" + `{"format":1,"id":"x","added":true}`))
	if err != nil || r.ID != "x" {
		t.Errorf("Decode of a record with a new field = %q, %v, want x", r.ID, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, form := range map[string]string{
		"empty":              "",
		"short":              "\x00\x00\x00",
		"cut off":            "\x00\x00\x00\x03{}",
		"huge length":        "\xff\xff\xff\xff{}",
		"no JSON":            "\x00\x00\x00\x02xx",
		"no format":          "\x00\x00\x00\x02{}",
		"a format to come":   "\x00\x00\x00\x0c" + `{"format":2}`,
		"not a record":       "\x00\x00\x00\x02[]",
		"two values of JSON": "\x00\x00\x00\x18" + strings.Repeat(`{"format":1}`, 2),
	} {
		if r, err := stored.Decode([]byte(form)); err == nil {
			t.Errorf("Decode of %s = %+v, want an error", name, r)
		}
	}
}

func TestMillis(t *testing.T) {
	for ttl, want := range map[time.Duration]int64{
		-time.Hour:                       1,
		0:                                1,
		1:                                1,
		time.Millisecond:                 1,
		time.Millisecond + 1:             2,
		time.Minute:                      60_000,
		90*time.Second + time.Nanosecond: 90_001,
	} {
		if got := stored.Millis(ttl); got != want {
			t.Errorf("Millis(%v) = %d, want %d", ttl, got, want)
		}
	}
}
