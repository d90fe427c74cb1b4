package httptool

import (
	"encoding/json"
	"net/url"
	"testing"
)

// FuzzT2Request checks that whatever a value is, the request differs from others in that value alone.
func FuzzT2Request(f *testing.F) {
	for _, value := range append(attacks, harmless...) {
		f.Add(value, value)
	}
	base, err := url.Parse("https://example.com/base?api_key=secret")
	if err != nil {
		f.Fatal(err)
	}
	s := &Source{headers: map[string][]string{}}
	o, err := s.prepare(Operation{Name: "tool", Method: "POST", Path: "/v1", Parameters: []Parameter{
		{Name: "q", In: InQuery}, {Name: "f", In: InQuery, Style: StyleSpread}, {Name: "h", In: InHeader, Sent: "X-H"}, {Name: "b", In: InBody},
	}}, base)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		input, err := json.Marshal(map[string]any{"q": value, "h": value, "b": value, "f": map[string]string{name: value}})
		if err != nil {
			t.Skip(err)
		}
		r, err := o.build(input)
		if err != nil {
			return
		}
		var sent map[string]any
		if err := json.Unmarshal(input, &sent); err != nil {
			t.Fatal(err)
		}
		value = sent["q"].(string) // what is not UTF-8 became U+FFFD
		got, err := url.Parse(r.url.String())
		if err != nil {
			t.Fatal(err)
		}
		query, err := url.ParseQuery(got.RawQuery)
		if err != nil || got.Host != "example.com" || got.Path != "/base/v1" || got.Fragment != "" || len(query) != 3 || len(query["api_key"]) != 1 ||
			query.Get("api_key") != "secret" || len(query["q"]) != 1 || query.Get("q") != value {
			t.Fatalf("the URL is %s, error %v", got, err)
		}
		if h := r.header["X-H"]; len(r.header) != 2 || len(h) != 1 || h[0] != value {
			t.Fatalf("the headers are %v", r.header)
		}
		var body map[string]string
		if err := json.Unmarshal(r.body, &body); err != nil || len(body) != 1 || body["b"] != value {
			t.Fatalf("the body is %s, error %v", r.body, err)
		}
	})
}
