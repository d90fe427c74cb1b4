package journal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// decoded are bytes, and what Python's bytes.decode("utf-8", errors="replace") makes of them.
var decoded = []struct{ bytes, text string }{
	{"", ""},
	{"abc", "abc"},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\u00e9\u20ac\U0001f600"},
	{"\xff", "\ufffd"},
	{"\xff\xfe", "\ufffd\ufffd"},
	{"\x80", "\ufffd"},
	{"\x80\x80", "\ufffd\ufffd"},
	{"\xc0\x80", "\ufffd\ufffd"},
	{"\xc1\xbf", "\ufffd\ufffd"},
	{"\xc3", "\ufffd"},
	{"\xc3A", "\ufffdA"},
	{"\xc3\xc3\xa9", "\ufffd\u00e9"},
	{"\xe2\x82", "\ufffd"},
	{"\xe2\x82A", "\ufffdA"},
	{"\xe2A", "\ufffdA"},
	{"\xe0\x80\x80", "\ufffd\ufffd\ufffd"},
	{"\xe0\x9f\xbf", "\ufffd\ufffd\ufffd"},
	{"\xe0\xa0", "\ufffd"},
	{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
	{"\xed\xa0\x80\xed\xb0\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"},
	{"\xef\xbf\xbd", "\ufffd"},
	{"\xef\xbf", "\ufffd"},
	{"\xf0\x9f\x98", "\ufffd"},
	{"\xf0\x9f\x98A", "\ufffdA"},
	{"\xf0\x9f\x98\xf0\x9f\x98\x80", "\ufffd\U0001f600"},
	{"\xf0\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
	{"\xf0\x8f\xbf\xbf", "\ufffd\ufffd\ufffd\ufffd"},
	{"\xf4\x8f\xbf\xbf", "\U0010ffff"},
	{"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
	{"\xf5\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
	{"\xf8\x88\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
	{"\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd", "\ufffd\ufffd\ufffdb\ufffdc\ufffd\ufffdd"},
	{"a\x00b\xe2\x80\xa8c", "a\u0000b\u2028c"},
	{"\xef\xbb\xbfx", "\ufeffx"},
	{"\xf0\x9f", "\ufffd"},
	{"\xf0\x9fx", "\ufffdx"},
	{"\xf4\x8f\xbf\xffx", "\ufffd\ufffdx"},
	{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA", "\ufffd\ufffd\ufffd\ufffdA"},
}

// decode returns the text of b, which it decodes in pieces. The sizes of the pieces are sizes, again and
// again.
func decode(t testing.TB, b []byte, sizes ...int) string {
	t.Helper()
	var d Decoder
	var text strings.Builder
	for turn := 0; len(b) > 0; turn++ {
		n := min(len(b), sizes[turn%len(sizes)])
		text.WriteString(d.Write(b[:n]))
		b = b[n:]
		if d.Held() >= utf8.UTFMax {
			t.Errorf("%d bytes are held back", d.Held())
		}
	}
	text.WriteString(d.Close())
	if d.Held() != 0 || d.Close() != "" {
		t.Errorf("%d bytes are held back at the end", d.Held())
	}
	return text.String()
}

func TestDecoder(t *testing.T) {
	for _, c := range decoded {
		for size := 1; size <= len(c.bytes)+1; size++ {
			if got := decode(t, []byte(c.bytes), size); got != c.text {
				t.Errorf("%q, %d bytes at once, is %q, want %q", c.bytes, size, got, c.text)
			}
		}
	}
}

// A Decoder holds back nothing but the beginning of a character.
func TestDecoderHolds(t *testing.T) {
	var d Decoder
	for _, c := range []struct {
		bytes, text string
		held        int
	}{
		{"a\xf0", "a", 1},
		{"\x9f", "", 2},
		{"\x98", "", 3},
		{"", "", 3},
		{"\x80b\xe2\x82", "\U0001f600b", 2},
		{"c", "\ufffdc", 0},
		{"\xe0", "", 1},
		{"\x80\xc3", "\ufffd\ufffd", 1},
	} {
		if got := d.Write([]byte(c.bytes)); got != c.text || d.Held() != c.held {
			t.Errorf("%q is %q, and %d bytes are held back, want %q and %d", c.bytes, got, d.Held(), c.text, c.held)
		}
	}
	if got := d.Close(); got != "\ufffd" {
		t.Errorf("Close = %q, want one U+FFFD", got)
	}
}

// The text does not depend on where the pieces end, and valid UTF-8 is not changed.
func FuzzDecoder(f *testing.F) {
	for _, c := range decoded {
		f.Add([]byte(c.bytes), byte(1), byte(2))
	}
	f.Fuzz(func(t *testing.T, b []byte, first, second byte) {
		whole := decode(t, b, len(b)+1)
		if got := decode(t, b, 1+int(first)%8, 1+int(second)%8); got != whole {
			t.Errorf("in pieces %q is %q, and whole it is %q", b, got, whole)
		}
		if !utf8.ValidString(whole) || utf8.Valid(b) && whole != string(b) {
			t.Errorf("%q is %q", b, whole)
		}
	})
}
