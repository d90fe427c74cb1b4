package openapi

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/engine/tools/httptool"
	"fermata/engine/tools/schema"
)

// document reads a file of testdata.
func document(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var from io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// find returns an operation by its name.
func find(t *testing.T, d *Document, name string) httptool.Operation {
	t.Helper()
	for _, o := range d.Operations {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("there is no operation %s; notes: %q", name, d.Notes)
	return httptool.Operation{}
}

// checkAll checks what must hold for all operations.
func checkAll(t *testing.T, d *Document) {
	t.Helper()
	names := map[string]bool{}
	for _, o := range d.Operations {
		if err := o.Check(); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
		if names[methodName(o.Name)] || !goodName.MatchString(o.Name) || len(o.Description) > MaxDescription {
			t.Errorf("%s: the name or the description is not good", o.Name)
		}
		names[methodName(o.Name)] = true
		if _, err := schema.Compile(o.Input); err != nil {
			t.Errorf("%s: input: %v", o.Name, err)
		}
		if o.Output != nil {
			if _, err := schema.Compile(o.Output); err != nil {
				t.Errorf("%s: output: %v", o.Name, err)
			}
		}
		var in struct {
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(o.Input, &in); err != nil || len(in.Properties) != len(o.Parameters) {
			t.Errorf("%s: %d properties and %d parameters, %v", o.Name, len(in.Properties), len(o.Parameters), err)
		}
	}
}

// inputErr checks an input against the schema of an operation.
func inputErr(t *testing.T, o httptool.Operation, input string) error {
	t.Helper()
	s, err := schema.Compile(o.Input)
	if err != nil {
		t.Fatal(err)
	}
	return s.Check(json.RawMessage(input))
}

func TestPetstore(t *testing.T) {
	doc := document(t, "petstore.json")
	for _, version := range []string{"3.0.0", "3.1.0"} {
		d, err := Read([]byte(strings.Replace(string(doc), `"3.0.0"`, `"`+version+`"`, 1)), Choice{})
		if err != nil {
			t.Fatal(err)
		}
		checkAll(t, d)
		t.Logf("%s: %d operations at %s, notes %q", version, len(d.Operations), d.BaseURL, d.Notes)
		get := find(t, d, "getPetById")
		if get.Method != http.MethodGet || get.Path != "/pet/{petId}" || !slices.Equal(get.Parameters, []httptool.Parameter{{Name: "petId", In: httptool.InPath, Style: httptool.StyleComma}}) {
			t.Errorf("getPetById is %+v", get)
		}
		if inputErr(t, get, `{"petId":1}`) != nil || inputErr(t, get, `{}`) == nil || inputErr(t, get, `{"petId":1,"x":1}`) == nil {
			t.Errorf("the input of getPetById is %s", get.Input)
		}
		if !strings.Contains(string(get.Output), `"$ref":"#/$defs/Category"`) {
			t.Errorf("the result of getPetById is %s", get.Output)
		}
		add := find(t, d, "addPet")
		if inputErr(t, add, `{"name":"Rex","photoUrls":[],"tags":[{"name":"big"}],"x-environment":"demo"}`) != nil || inputErr(t, add, `{"status":"lost"}`) == nil || inputErr(t, add, `{"id":5}`) == nil {
			t.Errorf("the input of addPet is %s", add.Input)
		}
		for _, p := range add.Parameters {
			if (p.In != httptool.InBody) != (p.Name == "x-environment") || p.Name == "id" {
				t.Errorf("addPet sends %+v", p)
			}
		}
		users := find(t, d, "createUsersWithListInput")
		if len(users.Parameters) != 1 || users.Parameters[0].In != httptool.InWhole || users.Parameters[0].Name != "body" {
			t.Errorf("createUsersWithListInput sends %+v", users.Parameters)
		}
		find(t, d, "findPetsByTags")
	}
}

// TestSendGrid reads the document of a well-known service, of 0.8 MB: OpenAPI 3.1.
func TestSendGrid(t *testing.T) {
	doc := document(t, "sendgrid.json.gz")
	start := time.Now()
	d, err := Read(doc, Choice{})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	checkAll(t, d)
	inputs, outputs := 0, 0
	for _, o := range d.Operations {
		inputs += len(o.Input)
		outputs += len(o.Output)
	}
	t.Logf("%d bytes, %d operations at %s in %s; %d bytes of inputs, %d of outputs", len(doc), len(d.Operations), d.BaseURL, took, inputs, outputs)
	for _, note := range d.Notes {
		t.Log(note)
	}
	if len(d.Operations) < 300 || took > time.Minute {
		t.Errorf("%d operations in %s", len(d.Operations), took)
	}
	again, err := Read(doc, Choice{})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := json.Marshal(d)
	second, _ := json.Marshal(again)
	if string(first) != string(second) {
		t.Error("the second reading gives something else")
	}
	some, err := Read(doc, Choice{Operations: []string{d.Operations[7].Name, d.Operations[3].Name}})
	if err != nil || len(some.Operations) != 2 || some.Operations[0].Name != d.Operations[3].Name {
		t.Errorf("two operations: %v, %v", some, err)
	}
}
