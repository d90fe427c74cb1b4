package toolsets

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"fermata/continuation"
)

const (
	// maxPrincipal is the maximum length of the name of a principal, in characters.
	maxPrincipal = 256
	// maxCursor is the maximum length of a cursor, in bytes.
	maxCursor = 8 << 10
)

// usage reads the parameters of a request of a principal for sums.
func (q query) usage(principal string, operator bool) (continuation.UsageQuery, error) {
	u := continuation.UsageQuery{Principal: principal, Everyone: operator, Since: q.day("since"), Until: q.day("until"), Limit: q.Limit(defaultUsages, maxUsages)}
	if value, given := q.One("principal"); given {
		switch {
		case !operator:
			q.Refuse("principal", "not be given: your requests show your own usage")
		case value == "" || utf8.RuneCountInString(value) > maxPrincipal:
			q.Refuse("principal", "have 1 to "+strconv.Itoa(maxPrincipal)+" characters")
		}
		u.Principal, u.Everyone = value, false
	}
	if value, given := q.One("after"); given {
		after, ok := placeOf(value)
		if !ok {
			q.Refuse("after", "be the value of next in an answer")
		}
		if !u.Everyone { // Whatever the cursor says, the next page has sums of the same principal.
			after.Principal = u.Principal
		}
		u.After = after
	}
	if u.Until != "" && u.Since > u.Until {
		q.Refuse("since", "not be after until")
	}
	return u, q.Err
}

// day returns the value of a parameter that is a day. It is empty if the parameter is not given.
func (q query) day(name string) continuation.Day {
	value, given := q.One(name)
	if !given {
		return ""
	}
	day, ok := continuation.ParseDay(value)
	if !ok {
		q.Refuse(name, "be a day, such as 2026-11-22")
	}
	return day
}

// A cursor names the last sum of a page: its day, its principal and its toolset. It says where the next page
// begins. It gives no access to it.
type cursor [3]string

// cursorForm is the encoding of cursors.
var cursorForm = base64.RawURLEncoding.Strict()

func cursorOf(u continuation.Usage) (string, error) {
	form, err := json.Marshal(cursor{string(u.Day), u.Principal, u.Toolset})
	return cursorForm.EncodeToString(form), err
}

// placeOf returns the sum that a cursor names, without its numbers. It reports false if the text is not a
// cursor.
func placeOf(value string) (last continuation.Usage, ok bool) {
	if len(value) > maxCursor {
		return last, false
	}
	form, err := cursorForm.DecodeString(value)
	if err != nil || cursorForm.EncodeToString(form) != value {
		return last, false
	}
	var c []string
	if err := json.Unmarshal(form, &c); err != nil || len(c) != len(cursor{}) {
		return last, false
	}
	day, ok := continuation.ParseDay(c[0])
	return continuation.Usage{Day: day, Principal: c[1], Toolset: c[2]}, ok
}
