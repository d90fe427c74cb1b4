// Package openapi makes operations of HTTP tools out of OpenAPI documents 3.0, 3.1 and 3.2.
//
// A document is not trusted. Nothing is loaded for it: what a $ref leads to must be in the document itself. Only
// the operations that become tools are looked at, and what they refer to, since the documents of many
// well-known services have mistakes in places that do not matter. An operation that cannot be called as the
// document describes it is left out, and so is a keyword of a schema that has no meaning, with a note that
// says where and why. The parameters of a tool have the order in which the document declares them.
package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"fermata/engine/tools/httptool"
)

// A Document has the parts of an OpenAPI document that matter to tools.
type Document struct {
	// BaseURL is the URL to which the paths are relative, or empty if the document has none.
	BaseURL string
	// Path is the path of a server that begins at the address of the document, which is not known, or empty.
	Path string
	// Operations are in the order of their paths.
	Operations []httptool.Operation
	// Notes are sentences for the operator that say what was left out, and why.
	Notes []string
}

// A Choice says which operations become tools: those that one of its lists has. An empty one chooses all.
type Choice struct {
	// Operations has ids of operations or names of tools. In a name with *, which stands for any text,
	// one that begins with / stands for paths.
	Operations []string
	// Tags has tags of operations.
	Tags []string
}

// Read reads a document, which is JSON or YAML. It is an error if an operation that the choice names is missing
// or cannot be a tool, or if there is none with a tag, or none for a name with *.
func Read(doc []byte, choice Choice) (*Document, error) {
	tree, err := parse(doc)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(tree); err != nil {
		return nil, err
	}
	r := &reader{
		tree: tree, old: strings.HasPrefix(tree.text("openapi"), "3.0"),
		document: &Document{BaseURL: baseURL(tree.list("servers"))},
	}
	for _, v := range tree.list("servers") {
		if server, _ := v.(*object); r.document.Path == "" && strings.HasPrefix(server.text("url"), "/") {
			r.document.Path = server.text("url")
		}
	}
	if err := r.read(choice); err != nil {
		return nil, err
	}
	r.document.Notes = r.notes.lines()
	return r.document, nil
}

// checkVersion refuses documents of other versions.
func checkVersion(tree *object) error {
	if tree.find("swagger") >= 0 {
		return errors.New("the document is Swagger 2.0; convert it to OpenAPI 3.0 or 3.1")
	}
	version, ok := tree.get("openapi").(string)
	switch {
	case !ok:
		return errors.New("the document is no OpenAPI document: it has no member openapi with the version")
	case !strings.HasPrefix(version, "3.0") && !strings.HasPrefix(version, "3.1") && !strings.HasPrefix(version, "3.2"):
		return fmt.Errorf("the document is OpenAPI %.20q; 3.0, 3.1 and 3.2 can be read", version)
	}
	return nil
}

// baseURL returns the first server with a complete URL. Its variables have their defaults.
func baseURL(servers []any) string {
	for _, v := range servers {
		server, _ := v.(*object)
		text := server.text("url")
		variables := server.object("variables")
		if variables != nil {
			for _, m := range variables.members {
				text = strings.ReplaceAll(text, "{"+m.name+"}", variables.object(m.name).text("default"))
			}
		}
		u, err := url.Parse(text)
		if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.Fragment == "" && !strings.ContainsAny(text, "{}") {
			return text
		}
	}
	return ""
}
