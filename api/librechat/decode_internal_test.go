package librechat

import (
	"bytes"
	"strings"
	"testing"
)

// However many entries a client sends, the server keeps no more than it accepts.
func TestDecodeKeepsNoMoreThanTheLimit(t *testing.T) {
	body := `{"tools":[` + strings.Repeat(`{"name":"a"},`, 1000) + `{}],"tool_results":[` + strings.Repeat(`{},`, 1000) + `{}]}`
	r, err := decode([]byte(body), Limits{Tools: 3, Results: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tools.entries) != 3 || len(r.Results.entries) != 2 {
		t.Errorf("kept %d tools and %d results, want 3 and 2", len(r.Tools.entries), len(r.Results.entries))
	}
	if r.Tools.count != 1001 || r.Results.count != 1001 {
		t.Errorf("counted %d tools and %d results, want 1001 of each", r.Tools.count, r.Results.count)
	}
}

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
