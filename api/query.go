package api

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// A Query reads the parameters of a request. It keeps the first mistake.
type Query struct {
	Values url.Values
	Err    error
}

// QueryOf returns the parameters of a request.
func QueryOf(c echo.Context) *Query {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return &Query{url.Values{}, BadRequest("the query is malformed")}
	}
	return &Query{values, nil}
}

// Refuse notes a mistake in a parameter.
func (q *Query) Refuse(name, must string) {
	if q.Err == nil {
		q.Err = BadRequest(name + " must " + must)
	}
}

// Slips refuses a parameter that must be one of these in another spelling, such as turnId or path[].
func (q *Query) Slips(names ...string) {
	for _, given := range slices.Sorted(maps.Keys(q.Values)) { // Of several, always the same one is told.
		i := slices.IndexFunc(names, func(name string) bool { return letters(name) == letters(given) })
		if i >= 0 && given != names[i] && q.Err == nil {
			q.Err = BadRequestf("the parameter %q is not known; did you mean %s?", given, names[i])
		}
	}
}

// letters returns a name without what tells spellings of one name apart.
func letters(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. []", r) {
			return -1
		}
		return r
	}, name))
}

// One returns the value of a parameter that may occur once.
func (q *Query) One(name string) (value string, given bool) {
	values := q.Values[name]
	if len(values) > 1 {
		q.Refuse(name, "not be repeated")
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// Choice returns one of some words, empty if none is given.
func (q *Query) Choice(name string, words ...string) string {
	value, given := q.One(name)
	if given && !slices.Contains(words, value) {
		q.Refuse(name, "be one of: "+strings.Join(words, ", "))
	}
	return value
}

// Limit returns the size of a page.
func (q *Query) Limit(usual, most int) int {
	text, given := q.One("limit")
	if !given {
		return usual
	}
	n, ok := Decimal(text)
	if !ok || n < 1 || n > int64(most) {
		q.Refuse("limit", "be a number from 1 to "+strconv.Itoa(most))
	}
	return int(n)
}

// Decimal returns a number that is written with digits alone.
func Decimal(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
