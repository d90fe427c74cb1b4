package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A place is where in a document something stands. nil is the document itself.
type place struct {
	above *place
	name  string
}

// at returns the place of a member or an element.
func (p *place) at(name string) *place { return &place{p, name} }

// index returns the place of an element.
func (p *place) index(i int) *place { return &place{p, strconv.Itoa(i)} }

// String returns the JSON Pointer of the place.
func (p *place) String() string {
	var names []string
	for ; p != nil; p = p.above {
		names = append(names, strings.ReplaceAll(strings.ReplaceAll(p.name, "~", "~0"), "/", "~1"))
	}
	slices.Reverse(names)
	return cutText("/"+strings.Join(names, "/"), 300)
}

// A placed value is a value of a document and where it stands.
type placed struct {
	value any
	at    *place
}

// member returns the value of a member of an object.
func (v placed) member(name string) placed {
	o, _ := v.value.(*object)
	return placed{o.get(name), v.at.at(name)}
}

var (
	errOutside = errors.New("leads out of the document, and nothing is loaded for it")
	errNowhere = errors.New("leads to something that is not there")
	errEndless = errors.New("refers to itself without end")
)

// A refError is a reference that cannot be followed.
type refError struct {
	ref string
	err error
}

// Error continues a sentence that begins with "it".
func (e *refError) Error() string { return fmt.Sprintf("has the $ref %.200q, which %v", e.ref, e.err) }

// Unwrap returns why the reference cannot be followed.
func (e *refError) Unwrap() error { return e.err }

// resolve returns the value to which a reference leads.
func resolve(tree *object, ref string) (placed, error) {
	if !strings.HasPrefix(ref, "#") {
		return placed{}, &refError{ref, errOutside}
	}
	fragment, err := url.PathUnescape(ref[1:])
	if err != nil || fragment != "" && fragment[0] != '/' {
		return placed{}, &refError{ref, errNowhere}
	}
	v := placed{value: tree}
	for _, token := range strings.Split(fragment, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch at := v.value.(type) {
		case *object:
			if at.find(token) < 0 {
				return placed{}, &refError{ref, errNowhere}
			}
			v = v.member(token)
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return placed{}, &refError{ref, errNowhere}
			}
			v = placed{at[i], v.at.index(i)}
		default:
			return placed{}, &refError{ref, errNowhere}
		}
	}
	return v, nil
}

// follow resolves a value that is a reference, as often as needed. The object is nil if the value is none.
func follow(tree *object, v placed) (*object, *place, error) {
	for range 32 {
		o, ok := v.value.(*object)
		if !ok {
			return nil, v.at, nil
		}
		ref, ok := o.get("$ref").(string)
		if !ok {
			return o, v.at, nil
		}
		next, err := resolve(tree, ref)
		if err != nil {
			return nil, v.at, err
		}
		v = next
	}
	return nil, v.at, fmt.Errorf("has a $ref that %w", errEndless)
}

// kind returns the kind of a value in words for people.
func kind(v any) string {
	switch v.(type) {
	case *object:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	default:
		return "number"
	}
}
