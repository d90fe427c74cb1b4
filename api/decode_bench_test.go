package api

import (
	"bytes"
	"strings"
	"testing"
)

// BenchmarkDecode measures the decoding of a continuation with a 10 MiB result.
func BenchmarkDecode(b *testing.B) {
	const size = 10 << 20
	results := map[string]string{
		"text":    `"` + strings.Repeat("0123456789abcdef", size/16) + `"`,
		"objects": `[` + strings.Repeat(`{"id":12345,"name":"Ada Lovelace","tags":["a","b"],"score":1.25},`, size/66) + `null]`,
	}
	for name, result := range results {
		b.Run(name, func(b *testing.B) {
			body := []byte(`{"continuation_token":"t","tool_results":[{"call_id":"call_001","result":` + result + `}]}`)
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r, err := decode(body, Limits{Results: 10})
				if err != nil {
					b.Fatal(err)
				}
				if got := r.Results.entries[0].Result; !bytes.Equal(got, []byte(result)) {
					b.Fatal("the result has changed")
				}
			}
		})
	}
}
