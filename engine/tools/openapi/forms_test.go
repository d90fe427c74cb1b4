package openapi

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fermata/engine/tools/httptool"
	"fermata/engine/tools/source"
)

// formsDocument has bodies of all kinds.
const formsDocument = `
openapi: 3.0.3
info: {title: t, version: "1"}
paths:
  /files/{id}#share: {put: {operationId: share, parameters: [{name: id, in: path, required: true, schema: {type: string}}, {name: fields, in: query, required: true, schema: {type: string}}], requestBody: {content: {application/json-patch+json: {schema: {type: array, items: {type: object}}}}}}}
  /responses?beta=true&x=a%20b: {post: {operationId: respond, parameters: [{name: beta, in: query, schema: {type: boolean}}, {name: y, in: query, schema: {type: string}}], requestBody: {content: {application/vnd.api+json: {schema: {type: object, properties: {input: {type: string}}}}}}}}
  /messages:
    post:
      operationId: send
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, required: [To], properties: {To: {type: string}, Body: {type: string}, MediaUrl: {type: array, items: {type: string}}, Data: {type: object}, Max: {type: integer}}}}}}
  /charges:
    post:
      operationId: charge
      requestBody:
        required: true
        content:
          application/x-www-form-urlencoded:
            encoding:
              expand: {style: deepObject, explode: true}
              items: {style: deepObject, explode: true}
              card: {style: deepObject, explode: true}
              codes: {style: form, explode: false}
              bars: {style: pipeDelimited, explode: false}
              spread: {style: form, explode: true}
              meta: {contentType: application/json}
            schema:
              type: object
              required: [amount]
              properties:
                amount: {type: integer}
                expand: {type: array, items: {type: string}}
                items: {type: array, items: {type: object, properties: {price: {type: string}, "n": {type: integer}}}}
                card: {type: object, properties: {number: {type: string}, address: {type: object, properties: {city: {type: string}}}}}
                codes: {type: array, items: {type: integer}}
                bars: {type: array, items: {type: string}}
                spread: {type: object, properties: {a: {type: string}, b: {type: integer}}}
                meta: {type: object}
  /search: {post: {operationId: search, requestBody: {content: {application/x-www-form-urlencoded: {schema: {oneOf: [{type: object, required: [a], properties: {a: {type: string}}}, {type: object, required: [b], properties: {b: {type: string}}}]}}}}}}
  /upload:
    post:
      operationId: upload
      requestBody:
        required: true
        content:
          multipart/form-data:
            encoding: {meta: {contentType: application/json}, picture: {contentType: 'image/png, image/jpeg'}}
            schema:
              type: object
              required: [file]
              properties:
                purpose: {type: string}
                file: {type: string, format: binary, description: What is sent.}
                picture: {type: string, format: binary}
                meta: {type: object, properties: {a: {type: integer}}}
                tags: {type: array, items: {type: string}}
                size: {type: number}
  /xml: {post: {operationId: xml, requestBody: {required: true, content: {application/xml: {schema: {type: object}}}}}}
  /rows: {post: {operationId: rows, requestBody: {required: true, content: {text/csv: {}}}}}
`

// TestForms shows what an endpoint gets from tools whose bodies are forms, texts, or JSON of another media type.
func TestForms(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		media := r.Header.Get("Content-Type")
		if kind, parameters, err := mime.ParseMediaType(media); err == nil && parameters["boundary"] != "" {
			media = kind
			body = []byte(strings.ReplaceAll(strings.ReplaceAll(string(body), parameters["boundary"], "B"), "\r\n", "|"))
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.Method + " " + r.URL.String() + " " + media + " " + string(body))
	}))
	defer server.Close()
	d := read(t, []byte(formsDocument))
	if len(d.Notes) > 0 {
		t.Errorf("notes %q", d.Notes)
	}
	tools, err := httptool.New(httptool.Options{BaseURL: server.URL, Operations: d.Operations, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tools.Close(context.Background()) }()
	const form = " application/x-www-form-urlencoded "
	for _, test := range []struct{ tool, input, want string }{
		{"share", `{"id":"1","fields":"a","body":[{"op":"test"}]}`, `PUT /files/1?fields=a application/json-patch+json [{"op":"test"}]`},
		{"respond", `{"input":"x","y":"z"}`, `POST /responses?beta=true&x=a+b&y=z application/vnd.api+json {"input":"x"}`},
		{"send", `{"To":"+1 2","Body":"a&b=é","MediaUrl":["u","v"],"Data":{"a":[1]},"Max":5}`, "POST /messages" + form + "To=%2B1+2&Body=a%26b%3D%C3%A9&MediaUrl=u&MediaUrl=v&Data=%7B%22a%22%3A%5B1%5D%7D&Max=5"},
		{"send", `{"To":"1","Body":null}`, "POST /messages" + form + "To=1"},
		{"send", `{}`, "POST /messages" + form},
		{
			"charge", `{"amount":1,"expand":["a","b"],"items":[{"price":"p","n":2}],"card":{"number":"4","address":{"city":"Rome"}},"codes":[1,2],"bars":["x","y"],"spread":{"a":"s","b":3},"meta":{"k":"v"}}`,
			"POST /charges" + form + "amount=1&expand%5B0%5D=a&expand%5B1%5D=b&items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Bn%5D=2&card%5Bnumber%5D=4&card%5Baddress%5D%5Bcity%5D=Rome&codes=1%2C2&bars=x%7Cy&a=s&b=3&meta=%7B%22k%22%3A%22v%22%7D",
		},
		{"search", `{"body":{"a":"x y"}}`, "POST /search" + form + "a=x+y"},
		{
			"upload", `{"file":"text","purpose":"batch","picture":{"filename":"a\"b.png","base64":"aGk="},"meta":{"a":1},"tags":["x","y"],"size":1.50}`,
			`POST /upload multipart/form-data --B|Content-Disposition: form-data; name="purpose"||batch|--B|Content-Disposition: form-data; name="file"; filename="file"|Content-Type: application/octet-stream||text|` +
				`--B|Content-Disposition: form-data; name="picture"; filename="a\"b.png"|Content-Type: image/png||hi|--B|Content-Disposition: form-data; name="meta"|Content-Type: application/json||{"a":1}|` +
				`--B|Content-Disposition: form-data; name="tags"||x|--B|Content-Disposition: form-data; name="tags"||y|--B|Content-Disposition: form-data; name="size"||1.50|--B--|`,
		},
		{"xml", `{"body":"<a>\"é\"</a>"}`, `POST /xml application/xml <a>"é"</a>`},
		{"rows", `{"body":"a,b\n1,2"}`, "POST /rows text/csv a,b\n1,2"},
	} {
		o := find(t, d, test.tool)
		if err := inputErr(t, o, test.input); err != nil {
			t.Errorf("%s: %v; the input is %s", test.input, err, o.Input)
			continue
		}
		result, err := tools.Call(context.Background(), source.Call{Tool: test.tool, Input: json.RawMessage(test.input), MaxResult: 1 << 20})
		var got string
		if err == nil {
			err = json.Unmarshal(result, &got)
		}
		if err != nil || got != test.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", test.input, got, err, test.want)
		}
	}
	for tool, input := range map[string]string{
		"respond": `{"input":"x","beta":false}`,
		"search":  `{"body":[1]}`, "upload": `{"file":{"filename":"a\r\nX: y","content":""}}`, "xml": `{"body":{}}`,
		"charge": `{"amount":1,"spread":{"amount":"2"}}`,
	} {
		if got, err := tools.Call(context.Background(), source.Call{Tool: tool, Input: json.RawMessage(input), MaxResult: 1 << 20}); err == nil {
			t.Errorf("%s: %s was sent: %s", tool, input, got)
		}
	}
}

// TestLongNames shows that two operations whose names are cut at the same place get names of their own, which do not
// depend on the other operations that are chosen with them.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	doc := `{"openapi":"3.0.3","paths":{"/a#add":{"put":{"operationId":"` + long + `#add"}},"/a#update":{"put":{"operationId":"` + long + `#update"}},"/b":{"get":{"operationId":"b"}}}}`
	d := read(t, []byte(doc))
	if len(d.Operations) != 3 || d.Operations[0].Path != "/a" || d.Operations[1].Path != "/a" || d.Operations[0].Name == d.Operations[1].Name || len(d.Notes) > 0 {
		t.Errorf("%+v", d)
	}
}
