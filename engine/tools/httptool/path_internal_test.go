package httptool

import (
	"net/url"
	"strings"
	"testing"
)

// attacks are values of parameters that try to change the endpoint.
var attacks = []string{
	"", ".", "..", "../", "../admin", "%2e%2e", "%2E.", "%252e%252e", "%25252e%25252e", "..%2f", "..%5c", `..\`, `a\..\b`, "a/../../admin", "a/./b", "a//b",
	"/", "//evil", "/a", "a/", "..;", "..;/a", ";a", " ", ".. ", " ..", "\uff0e\uff0e", "\u2025", "a\uff0f..\uff0fb", "\x00", "a\x00", "a\r\nb", "a\nb", "..\x00",
	"%00", "%2f", "a%2f%2fb", "%252f", "%" + strings.Repeat("25", 20) + "2e",
}

// harmless are values that stay one segment.
var harmless = []string{"a", "a b", "?x", "#", "a;b", "@evil", "a/b", "a%2fb", `a\b`, "100%", "%zz", "...", "a..b", "..a", "Zürich", "日本", "a=b&c", "+", ":", "~", "{b}", "true"}

func TestT1PathParameters(t *testing.T) {
	pieces, err := parsePath("/v1/{a}/x-{b}.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range attacks {
		if path, err := fillPath(pieces, map[string]string{"a": value, "b": "b"}); err == nil {
			t.Errorf("%q makes the path %s", value, path)
		} else if !strings.HasPrefix(err.Error(), "a: ") {
			t.Errorf("%q: the error does not name the parameter: %v", value, err)
		}
		if path, err := fillPath(pieces, map[string]string{"a": "a", "b": value}); err == nil || !strings.HasPrefix(err.Error(), "b: ") {
			t.Errorf("%q within a segment makes the path %s, error %v", value, path, err)
		}
	}
	for _, value := range harmless {
		path, err := fillPath(pieces, map[string]string{"a": value, "b": value})
		if err != nil {
			t.Errorf("%q is refused: %v", value, err)
			continue
		}
		wantSegments(t, path, value, value)
	}
	// Two parameters that are harmless alone.
	pieces, err = parsePath("/v1/{a}{b}/c")
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range [][2]string{{"%", "2e."}, {"a", "/.."}, {"%2", "e"}} {
		if path, err := fillPath(pieces, map[string]string{"a": values[0], "b": values[1]}); err == nil && strings.Contains(path, "..") {
			t.Errorf("%q makes the path %s", values, path)
		}
	}
	pieces, err = parsePath("/v1/.{a}/c")
	if err != nil {
		t.Fatal(err)
	}
	if path, err := fillPath(pieces, map[string]string{"a": "%2e"}); err == nil {
		t.Errorf("%%2e behind a dot makes the path %s", path)
	}
}

// wantSegments checks what the endpoint sees of the path /v1/{a}/x-{b}.json.
func wantSegments(t *testing.T, path, a, b string) {
	t.Helper()
	u := &url.URL{Scheme: "https", Host: "example.com"}
	plain, err := url.PathUnescape(path)
	if err != nil {
		t.Fatalf("%q does not unescape: %v", path, err)
	}
	u.Path, u.RawPath = plain, path
	got, err := url.Parse(u.String())
	if err != nil {
		t.Fatal(err)
	}
	segments := strings.Split(got.EscapedPath(), "/")
	if got.Host != "example.com" || got.User != nil || got.RawQuery != "" || got.ForceQuery || got.Fragment != "" || len(segments) != 4 {
		t.Fatalf("the URL is %s", got)
	}
	for i, want := range []string{"", "v1", a, "x-" + b + ".json"} {
		if segment, err := url.PathUnescape(segments[i]); err != nil || segment != want {
			t.Errorf("segment %d is %q, want %q (%v)", i, segment, want, err)
		}
	}
}

func FuzzT1Path(f *testing.F) {
	for _, value := range append(attacks, harmless...) {
		f.Add(value, value)
	}
	pieces, err := parsePath("/v1/{a}/x-{b}.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		path, err := fillPath(pieces, map[string]string{"a": a, "b": b})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a: ") && !strings.HasPrefix(err.Error(), "b: ") {
				t.Fatalf("the error does not name a parameter: %v", err)
			}
			return
		}
		wantSegments(t, path, a, b)
		for range 2 { // what two proxies behind the endpoint make of it
			if path, err = url.PathUnescape(path); err != nil {
				return
			}
			for segment := range strings.SplitSeq(strings.ReplaceAll(path[1:], `\`, "/"), "/") {
				if segment == "" || segment == "." || segment == ".." {
					t.Fatalf("%q and %q make the path %q", a, b, path)
				}
			}
		}
	})
}

func TestParsePath(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/", "/a/{b}", "/{a}.{b}", "/a/{b}:cancel", "/a%20b"} {
		if _, err := parsePath(path); err != nil {
			t.Errorf("%q is refused: %v", path, err)
		}
	}
	for _, path := range []string{"", "a", "/a?b", "/a#b", "/a b", "/a/../b", "/./a", "//a", "/a//b", "/%2e%2e/a", "/{", "/{}", "/a}", "/{a/b}", "/{a{b}}", `/a\b`, "/ü", "/%zz"} {
		if _, err := parsePath(path); err == nil {
			t.Errorf("%q is taken", path)
		}
	}
}
