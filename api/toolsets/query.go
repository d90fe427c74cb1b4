package toolsets

import (
	"regexp"
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

var toolsetKey = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// A query reads the parameters of the routes of this package.
type query struct{ *api.Query }

func queryOf(c echo.Context) query { return query{api.QueryOf(c)} }

// names returns the names of toolsets and tools, none if the parameter is not given.
func (q query) names(name string) []string {
	value, given := q.One(name)
	if !given {
		return nil
	}
	names := strings.Split(value, ",")
	if len(names) > maxNames || slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > maxName }) {
		q.Refuse(name, "be 1 to 500 names of toolsets or tools with commas between them, each of 1 to 193 bytes")
	}
	return names
}

// key returns the key of a toolset, empty if it is not given.
func (q query) key(name string) string {
	value, given := q.One(name)
	if given && !toolsetKey.MatchString(value) {
		q.Refuse(name, "be the value of next in an answer")
	}
	return value
}
