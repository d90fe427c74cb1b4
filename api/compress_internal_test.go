package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestCompress compresses bodies one after the other and at the same time, some of which do not get
// smaller.
func TestCompress(t *testing.T) {
	t.Parallel()
	cs := newCompressors()
	noise := make([]byte, 100_000)
	_, _ = rand.Read(noise)
	for _, c := range []struct {
		name string
		body []byte
		want bool
	}{
		{"text", []byte(strings.Repeat("some text ", 1000)), true},
		{"noise", noise, false},
		{"text again", []byte(strings.Repeat("other text ", 100_000)), true},
		{"noise with text", append(bytes.Clone(noise), strings.Repeat("x", 10_000)...), true},
	} {
		for range 2 * cap(cs.free) {
			packed, ok := cs.compress(t.Context(), c.body)
			if ok != c.want {
				t.Fatalf("%s: compressed is %v, want %v", c.name, ok, c.want)
			}
			if !ok {
				continue
			}
			r, err := gzip.NewReader(bytes.NewReader(packed))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, c.body) || len(packed) >= len(c.body) {
				t.Fatalf("%s: got %d bytes that unpack to %d, %v, want all %d in fewer", c.name, len(packed), len(got), err, len(c.body))
			}
		}
	}
	if len(cs.free) != cap(cs.free) {
		t.Errorf("%d of %d compressors are free", len(cs.free), cap(cs.free))
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range cap(cs.free) {
		<-cs.free
	}
	if _, ok := cs.compress(gone, []byte("x")); ok {
		t.Error("a body was compressed for a client that has left, though no compressor was free")
	}
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "deflate, gzip;q=1.0, *;q=0.5": true, "*": true, "*;q=0": false,
		"gzip;q=0": false, "gzip;q=0, *": false, "*, gzip;q=0": false, "*;q=0, gzip": true, "br": false, "gzip;q=x": false, "identity": false,
	} {
		if got := acceptsGzip(http.Header{"Accept-Encoding": {accept}}); got != want {
			t.Errorf("Accept-Encoding: %q accepts gzip: %v, want %v", accept, got, want)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	cs := newCompressors()
	body := []byte(strings.Repeat("2026-11-26T10:00:00Z some line of a log with numbers 12345\n", 1<<20/60))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, ok := cs.compress(b.Context(), body); !ok {
			b.Fatal("not compressed")
		}
	}
}
