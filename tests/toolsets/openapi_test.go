package toolsets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// payDocument is an OpenAPI document whose parameters are not in the order of the alphabet, and which has a wrong
// place that nobody asks for.
const payDocument = `
openapi: 3.1.0
paths:
  /echo:
    parameters: [{name: key, in: query, required: true, schema: {type: string}}]
    post:
      operationId: transfer
      requestBody: {required: true, content: {application/json: {schema: &transfer {type: object, required: [source, destination, amount], properties: {source: {type: string}, destination: {type: string}, note: {type: string}, amount: {type: number}}}}}}
    put:
      operationId: letter
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object, required: [To], properties: {To: {type: string}, Body: {type: string}, Tags: {type: array, items: {type: string}}}}}}}
  /echo?key=all#upload:
    post:
      operationId: upload
      requestBody: {required: true, content: {multipart/form-data: {schema: {type: object, required: [file], properties: {name: {type: string}, file: {type: string, format: binary}}}}}}
  /wrong: {get: 5}
`

// TestOpenAPI calls tools of a document by position, and checks what the endpoint gets: JSON, a form, and parts.
func TestOpenAPI(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		document := filepath.Join(t.TempDir(), "pay.yaml")
		if err := os.WriteFile(document, []byte(payDocument), 0o600); err != nil {
			t.Fatal(err)
		}
		u, key, all := harness.NewUpstream(t), harness.NewKey(), harness.NewKey()
		text := `
toolsets:
  pay:
    private: true
    openapi: {file: "` + document + `", base_url: URL, tools: {upload: {cost: 1}}}
  plain:
    private: true
    http:
      base_url: URL
      tools:
        - {name: transfer, method: POST, path: /echo, parameters: {type: object, required: [key, source, destination, amount],
           properties: {key: {type: string}, source: {type: string}, destination: {type: string}, note: {type: string}, amount: {type: number}}}}
`
		if err := os.WriteFile(document, []byte(strings.ReplaceAll(payDocument, "key=all", "key="+all)), 0o600); err != nil {
			t.Fatal(err)
		}
		server := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, u, text)})
		a := server.Alice().Post(t, harness.Program{Toolsets: []string{"pay", "plain"}, Code: harness.Py(strings.ReplaceAll(`
			import inspect
			from fermata_tools.pay import Pay
			from fermata_tools.plain import Plain
			print(list(inspect.signature(Pay.transfer).parameters))
			print(inspect.signature(Pay.transfer) == inspect.signature(Plain.transfer))
			print(Pay.transfer("KEY", "mine", "yours", 5) == Plain.transfer("KEY", "mine", "yours", 5))
			Pay.letter("KEY", To="+1", Body="a & b", Tags=["x", "y"])
			Pay.upload(name="n", file={"filename": "a.txt", "base64": "aGk="})
		`, "KEY", key))})
		a.Completes(t, "['key', 'source', 'destination', 'amount', 'note']\nTrue\nTrue\n")
		seen := u.Requests(key)
		if len(seen) != 3 || seen[0].Body != `{"amount":5,"destination":"yours","source":"mine"}` {
			t.Fatalf("the endpoint got %+v", seen)
		}
		if got := seen[2]; got.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || got.Body != "To=%2B1&Body=a+%26+b&Tags=x&Tags=y" {
			t.Errorf("the form is %s %s", got.Header.Get("Content-Type"), got.Body)
		}
		parts := u.Requests(all)
		if len(parts) != 1 || parts[0].Path != "/echo" || !strings.HasPrefix(parts[0].Header.Get("Content-Type"), "multipart/form-data; boundary=") {
			t.Fatalf("the endpoint got %+v", parts)
		}
		harness.Contains(t, "the body", parts[0].Body, `name="name"`+"\r\n\r\nn\r\n", `name="file"; filename="a.txt"`, "\r\n\r\nhi\r\n")
	})
}
