package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"testing"
)

// FuzzT3Parts checks that no name and no value makes a field of its own in a form, or a part or a header in a body of
// several parts.
func FuzzT3Parts(f *testing.F) {
	for _, value := range append(attacks, harmless...) {
		f.Add(value, value)
	}
	f.Add(`a"; filename="b`, "\r\n--")
	f.Add(`; filename=""`, "&x=y")
	base, err := url.Parse("https://example.com/")
	if err != nil {
		f.Fatal(err)
	}
	operationOf := func(media string) *operation {
		s := &Source{headers: map[string][]string{}}
		o, err := s.prepare(Operation{Name: "tool", Method: "POST", Path: "/v1", Media: media, Rest: true, Parameters: []Parameter{
			{Name: "b", In: InBody}, {Name: "f", In: InBody, Style: StyleFile},
		}}, base)
		if err != nil {
			f.Fatal(err)
		}
		return o
	}
	form, parts := operationOf(MediaForm), operationOf(MediaMultipart)
	f.Fuzz(func(t *testing.T, name, value string) {
		input, err := json.Marshal(map[string]any{"b": value, "f": map[string]string{"filename": name, "content": value}, "x" + name: value})
		if err != nil {
			t.Skip(err)
		}
		var sent map[string]any
		if err := json.Unmarshal(input, &sent); err != nil {
			t.Fatal(err)
		}
		value = sent["b"].(string) // What is not UTF-8 became U+FFFD.
		if r, err := parts.build(input); err == nil {
			checkParts(t, r, value)
		}
		r, err := form.build(input)
		if err != nil {
			return
		}
		fields, err := url.ParseQuery(string(r.body))
		if err != nil || len(fields) != 3 || len(fields["b"]) != 1 || fields.Get("b") != value || len(r.header) != 1 {
			t.Fatalf("the form is %s, error %v", r.body, err)
		}
	})
}

// checkParts checks that a request has three parts with a value.
func checkParts(t *testing.T, r *request, value string) {
	t.Helper()
	_, parameters, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	if err != nil || len(r.header) != 1 {
		t.Fatal(r.header, err)
	}
	reader, n := multipart.NewReader(bytes.NewReader(r.body), parameters["boundary"]), 0
	for ; ; n++ {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		content, err := io.ReadAll(p)
		if kind, _, invalid := mime.ParseMediaType(p.Header.Get("Content-Disposition")); err != nil || invalid != nil || kind != "form-data" || string(content) != value || len(p.Header) > 2 {
			t.Fatalf("the part %d is %v %s, errors %v, %v", n, p.Header, content, err, invalid)
		}
	}
	if n != 3 {
		t.Fatalf("%d parts: %s", n, r.body)
	}
}
