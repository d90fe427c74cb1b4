package toolsets

import (
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"fermata/api"
)

const (
	// maxNames is how many toolsets and tools a request may name.
	maxNames = 500
	// maxName is how many bytes a name may have: a key, a dot and the name of a tool.
	maxName = 64 + 1 + 128
)

// A query reads the parameters of a request. It keeps the first mistake.
type query struct {
	values url.Values
	err    error
}

func queryOf(c echo.Context) *query {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return &query{url.Values{}, api.BadRequest("the query is malformed")}
	}
	return &query{values, nil}
}

// refuse notes a mistake in a parameter.
func (q *query) refuse(name, must string) {
	if q.err == nil {
		q.err = api.BadRequest(name + " must " + must)
	}
}

// one returns the value of a parameter that may occur once.
func (q *query) one(name string) (value string, given bool) {
	values := q.values[name]
	if len(values) > 1 {
		q.refuse(name, "not be repeated")
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// choice returns one of some words, empty if none is given.
func (q *query) choice(name string, words ...string) string {
	value, given := q.one(name)
	if given && !slices.Contains(words, value) {
		q.refuse(name, "be one of: "+strings.Join(words, ", "))
	}
	return value
}

// names returns the names of toolsets and tools, none if the parameter is not given.
func (q *query) names(name string) []string {
	value, given := q.one(name)
	if !given {
		return nil
	}
	names := strings.Split(value, ",")
	if len(names) > maxNames || slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > maxName }) {
		q.refuse(name, "be 1 to 500 names of toolsets or tools with commas between them, each of 1 to 193 bytes")
	}
	return names
}
