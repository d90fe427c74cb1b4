package httptool_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/engine/tools/httptool"
)

func TestMapping(t *testing.T) {
	at := endpoint(t).URL + "/base/?units=metric"
	const schema = `{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}, "all": {"type": "boolean"}, "more": {"type": "object"}}}`
	for name, test := range map[string]struct{ method, input, uri, body string }{
		"query":          {"GET", `{"city": "Zürich & co", "days": 3, "all": true}`, "/base/v1/Z%C3%BCrich%20%26%20co?units=metric&days=3&all=true", ""},
		"lists repeat":   {"GET", `{"city": "a", "tags": ["x", 1, null, "a b"]}`, "/base/v1/a?units=metric&tags=x&tags=1&tags=a%20b", ""},
		"empty list":     {"GET", `{"city": "a", "tags": []}`, "/base/v1/a?units=metric", ""},
		"null in query":  {"DELETE", `{"city": "a", "days": null}`, "/base/v1/a?units=metric", ""},
		"text for 5":     {"GET", `{"city": "5", "days": "5"}`, "/base/v1/5?units=metric&days=5", ""},
		"5 for text":     {"GET", `{"city": 5, "days": 5}`, "/base/v1/5?units=metric&days=5", ""},
		"digits stay":    {"GET", `{"city": "a", "days": 9007199254740993.10}`, "/base/v1/a?units=metric&days=9007199254740993.10", ""},
		"line breaks":    {"GET", `{"city": "a", "days": "1\r\nX: y"}`, "/base/v1/a?units=metric&days=1%0D%0AX%3A%20y", ""},
		"body":           {"POST", `{"city": "a", "more": {"x": [1, null]}, "days": 9007199254740993.10, "tags": null}`, "/base/v1/a?units=metric", `{"days":9007199254740993.10,"more":{"x": [1, null]},"tags":null}`},
		"body of nobody": {"PUT", `{"city": "a"}`, "/base/v1/a?units=metric", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, at, placed(t, test.method, "/v1/{city}", schema), nil)
			got := mustSee(t, s, test.input)
			if got.Method != test.method || got.URI != test.uri || got.Body != test.body {
				t.Errorf("the endpoint got\n%s %s %s, want\n%s %s %s", got.Method, got.URI, got.Body, test.method, test.uri, test.body)
			}
			if test.body != "" && got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("content type is %q", got.Header.Get("Content-Type"))
			}
		})
	}
	s := open(t, at, placed(t, "POST", "/v1", `{"properties": {"a": {}}, "additionalProperties": {"type": "string"}}`), nil)
	if got := mustSee(t, s, `{"b": "c", "a": 1}`); got.Body != `{"a":1,"b":"c"}` {
		t.Errorf("the body is %s", got.Body)
	}
}

func TestStyles(t *testing.T) {
	at := endpoint(t).URL
	for name, test := range map[string]struct {
		parameter httptool.Parameter
		value     string
		uri       string
	}{
		"comma":           {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleComma}, `["a", "b,c"]`, "/?x=a%2Cb%2Cc"},
		"space":           {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleSpace}, `["a", "b"]`, "/?x=a%20b"},
		"pipe":            {httptool.Parameter{In: httptool.InQuery, Style: httptool.StylePipe}, `["a", "b"]`, "/?x=a%7Cb"},
		"deep":            {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleDeep}, `{"a": 1, "b": null, "c&d": true}`, "/?x%5Ba%5D=1&x%5Bc%26d%5D=true"},
		"object in one":   {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleComma}, `{"a": 1, "b": null, "c": "d,e"}`, "/?x=a%2C1%2Cc%2Cd%2Ce"},
		"pairs":           {httptool.Parameter{In: httptool.InQuery, Style: httptool.StylePairs}, `{"a": 1, "c": "d"}`, "/?x=a%3D1%2Cc%3Dd"},
		"nested deep":     {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleDeep}, `{"a": [{"b": 1}, 2]}`, "/?x%5Ba%5D%5B0%5D%5Bb%5D=1&x%5Ba%5D%5B1%5D=2"},
		"spread":          {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleSpread}, `{"a": 1}`, "/?a=1"},
		"JSON":            {httptool.Parameter{In: httptool.InQuery, Style: httptool.StyleJSON}, `{"a":[1]}`, "/?x=%7B%22a%22%3A%5B1%5D%7D"},
		"another name":    {httptool.Parameter{In: httptool.InQuery, Sent: "x[]"}, `["a", "b"]`, "/?x%5B%5D=a&x%5B%5D=b"},
		"comma in header": {httptool.Parameter{In: httptool.InHeader, Sent: "X-List", Style: httptool.StyleComma}, `["a", "b"]`, "/"},
		"body":            {httptool.Parameter{In: httptool.InWhole}, `[1, {"a": null}]`, "/"},
	} {
		t.Run(name, func(t *testing.T) {
			test.parameter.Name = "x"
			got := mustSee(t, open(t, at, httptool.Operation{Method: "POST", Path: "/", Parameters: []httptool.Parameter{test.parameter}}, nil), `{"x": `+test.value+`}`)
			if got.URI != test.uri {
				t.Errorf("the URI is %s, want %s", got.URI, test.uri)
			}
			if test.parameter.In == httptool.InHeader && got.Header.Get("X-List") != "a,b" {
				t.Errorf("headers are %v", got.Header)
			}
			if test.parameter.In == httptool.InWhole && got.Body != test.value {
				t.Errorf("the body is %s", got.Body)
			}
		})
	}
	got := mustSee(t, open(t, at, httptool.Operation{Method: "GET", Path: "/{x}", Parameters: []httptool.Parameter{{Name: "x", In: httptool.InPath, Style: httptool.StyleComma}}}, nil), `{"x": [1, 2]}`)
	if got.URI != "/1%2C2" {
		t.Errorf("the URI is %s", got.URI)
	}
}

func TestT1PathOfACall(t *testing.T) {
	var requests atomic.Int32
	e := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer e.Close()
	s := open(t, e.URL, placed(t, "GET", "/v1/{city}", `{"properties": {"city": {}}}`), nil)
	for _, value := range []string{`".."`, `"%2e%2e"`, `"a/../../admin"`, `"\u0000"`, `"a\r\nb"`, `""`, `null`, `[1]`, `["a"]`, `{"a": 1}`, `"\ud800"`} {
		_, err := call(t, s, `{"city": `+value+`}`)
		wantFailure(t, err, "city: ")
	}
	_, err := call(t, s, `{}`)
	wantFailure(t, err, "city: is required")
	_, err = call(t, s, `{"city": "`+strings.Repeat("a", 1<<20)+`"}`)
	wantFailure(t, err, "the limit is 16384 bytes")
	_, err = call(t, s, `[]`)
	wantFailure(t, err, "must be an object")
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestT2UndeclaredArguments(t *testing.T) {
	at := endpoint(t).URL + "?api_key=secret-of-the-toolset"
	schema := `{"type":"object","properties":{"q":{},"API_Key":{},"authorization":{}},"required":["q","API_Key"]}`
	op := placed(t, "GET", "/", schema)
	op.Parameters = append(op.Parameters, httptool.Parameter{Name: "version", In: httptool.InHeader, Sent: "X-Version"},
		httptool.Parameter{Name: "filter", In: httptool.InQuery, Style: httptool.StyleSpread})
	s := open(t, at, op, func(o *httptool.Options) {
		o.Headers = map[string]string{"Authorization": "Bearer x", "x-version": "2", "Idempotency-Key": "ours"}
	})
	for _, input := range []string{`{"admin": 1}`, `{"Q": 1}`, `{"_method": "DELETE"}`, `{"api_key": "a"}`, `{"callback": null}`, `{"Host": "a"}`} {
		_, err := call(t, s, input)
		wantFailure(t, err, "is not a parameter of this tool")
	}
	for _, input := range []string{`{"API_Key": "a"}`, `{"version": "1"}`} {
		_, err := call(t, s, input)
		wantFailure(t, err, "is set by the server")
	}
	for _, input := range []string{`{"filter": {"api_key": "a"}}`, `{"filter": {"API_KEY": "a"}}`, `{"filter": {"q": "a"}}`} {
		_, err := call(t, s, input)
		wantFailure(t, err, "filter: must not have the member")
	}
	got := mustSee(t, s, `{"q": "a&api_key=b", "authorization": "c", "filter": {"d": 1}}`)
	if got.URI != "/?api_key=secret-of-the-toolset&q=a%26api_key%3Db&authorization=c&d=1" {
		t.Errorf("the URI is %s", got.URI)
	}
	for name, want := range map[string]string{"Authorization": "Bearer x", "X-Version": "2", "Idempotency-Key": "ours"} {
		if values := got.Header.Values(name); len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q", name, values)
		}
	}
	tools, err := s.Tools(t.Context())
	if err != nil || string(tools[0].Input) != `{"properties":{"q":{},"authorization":{}},"required":["q"],"type":"object","additionalProperties":false}` {
		t.Errorf("the schema is %s, error %v", tools[0].Input, err)
	}
	for _, header := range []string{"Host", "authorization", "Cookie", "Content-Type", "content-length", "Transfer-Encoding", "X-Forwarded-For", "x-http-method-override", "Connection", "a b", "", "X:Y", "Proxy-Authorization"} {
		parameter := httptool.Parameter{Name: header, In: httptool.InHeader}
		if _, err := httptool.New(httptool.Options{BaseURL: at, Operations: []httptool.Operation{{Name: "a", Method: "GET", Path: "/", Parameters: []httptool.Parameter{parameter}}}}); err == nil {
			t.Errorf("a parameter may set the header %q", header)
		}
	}
}

func TestT3Headers(t *testing.T) {
	at := endpoint(t).URL
	s := open(t, at, httptool.Operation{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "h", In: httptool.InHeader, Sent: "X-H"}, {Name: "q", In: httptool.InQuery}}}, nil)
	for _, value := range []string{`"a\r\nX-Evil: b"`, `"a\nb"`, `"a\rb"`, `"\u0000"`, `"ü"`, `"\u2028"`, `"\t"`, `"\u007f"`, `["a"]`, `{}`} {
		_, err := call(t, s, `{"h": `+value+`}`)
		wantFailure(t, err, "h: must")
	}
	_, err := call(t, s, `{"q": "a\u0000b"}`)
	wantFailure(t, err, "q: must not have NUL")
	if got := mustSee(t, s, `{"h": "a b"}`); got.Header.Get("X-H") != "a b" || got.Body != "" || got.Header.Get("Content-Type") != "" {
		t.Errorf("the endpoint got %+v", got)
	}
	for name, value := range map[string]string{"A": "b\r\nc: d", "A b": "c", "Host": "a", "Content-Length": "1", "Transfer-Encoding": "chunked", "C": "ü"} {
		if _, err := httptool.New(httptool.Options{BaseURL: at, Headers: map[string]string{name: value}}); err == nil {
			t.Errorf("the header %q: %q is taken", name, value)
		}
	}
	for _, op := range []httptool.Operation{
		{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InBody}}},
		{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InWhole}}},
		{Method: "GET", Path: "/", Rest: true},
		{Method: "POST", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InWhole}, {Name: "b", In: httptool.InBody}}},
		{Method: "TRACE", Path: "/"},
		{Method: "get", Path: "/"},
		{Method: "GET", Path: "a"},
		{Method: "GET", Path: "/{a}"},
		{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InPath}}},
		{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: "cookie"}}},
		{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InQuery}, {Name: "a", In: httptool.InQuery}}},
		{Method: "GET", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InQuery, Style: "matrix"}}},
		{Method: "GET", Path: "/", Result: "a"},
		{Method: "GET", Path: "/", Result: "/~2"},
	} {
		op.Name = "a"
		if _, err := httptool.New(httptool.Options{BaseURL: at, Operations: []httptool.Operation{op}}); err == nil {
			t.Errorf("the operation %+v is taken", op)
		}
	}
	for _, base := range []string{"", "a", "ftp://a", "http://u:p@a", "http://a/#b", "http://a b/"} {
		if _, err := httptool.New(httptool.Options{BaseURL: base}); err == nil {
			t.Errorf("the base URL %q is taken", base)
		}
	}
}
