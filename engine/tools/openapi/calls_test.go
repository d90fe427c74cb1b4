package openapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fermata/engine/tools/httptool"
	"fermata/engine/tools/source"
)

// TestCalls shows what an endpoint gets from the tools of a document.
func TestCalls(t *testing.T) {
	const doc = `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{
		"/shops/{shop}/items":{
			"parameters":[{"name":"shop","in":"path","required":true,"schema":{"type":"string"}}],
			"get":{"operationId":"find","parameters":[
				{"name":"tag","in":"query","schema":{"type":"array","items":{"type":"string"}}},
				{"name":"ids","in":"query","style":"pipeDelimited","explode":false,"schema":{"type":"array","items":{"type":"integer"}}},
				{"name":"filter","in":"query","style":"deepObject","explode":true,"schema":{"type":"object","additionalProperties":{"type":"string"}}},
				{"name":"page","in":"query","schema":{"type":"object","properties":{"limit":{"type":"integer"}}}},
				{"name":"query","in":"query","content":{"application/json":{"schema":{"type":"object"}}}},
				{"name":"X-Trace","in":"header","schema":{"type":"string"}}]},
			"post":{"operationId":"add","requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","properties":{"shop":{"type":"string"},"price":{"type":"number"}}}}}}},
			"put":{"operationId":"replace","requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"array","items":{"type":"string"}}}}}}}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(strings.TrimSpace(r.Method + " " + r.URL.String() + " " + r.Header.Get("X-Trace") + " " + string(body)))
	}))
	defer server.Close()
	d := read(t, []byte(doc))
	tools, err := httptool.New(httptool.Options{BaseURL: server.URL + "/v1", Operations: d.Operations, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tools.Close(context.Background()) }()
	for _, test := range []struct{ tool, input, want string }{
		{"find", `{"shop":"a b"}`, "GET /v1/shops/a%20b/items"},
		{
			"find", `{"shop":"a","tag":["x","y&z"],"ids":[1,2],"filter":{"k":"v"},"page":{"limit":5},"query":{"a":1},"X-Trace":"t1"}`,
			"GET /v1/shops/a/items?tag=x&tag=y%26z&ids=1%7C2&filter%5Bk%5D=v&limit=5&query=%7B%22a%22%3A1%7D t1",
		},
		{"add", `{"shop":"a","shop_body":"b","price":9007199254740993.10}`, `POST /v1/shops/a/items  {"price":9007199254740993.10,"shop":"b"}`},
		{"replace", `{"shop":"a","body":["x"]}`, `PUT /v1/shops/a/items  ["x"]`},
	} {
		o := find(t, d, test.tool)
		if err := inputErr(t, o, test.input); err != nil {
			t.Errorf("%s: %v", test.input, err)
			continue
		}
		result, err := tools.Call(context.Background(), source.Call{Tool: test.tool, Input: json.RawMessage(test.input), MaxResult: 1 << 20})
		if err != nil {
			t.Errorf("%s: %v", test.input, err)
			continue
		}
		var got string
		if err := json.Unmarshal(result, &got); err != nil || got != test.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", test.input, got, err, test.want)
		}
	}
}
