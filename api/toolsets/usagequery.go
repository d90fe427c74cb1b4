package toolsets

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"unicode/utf8"

	"fermata/api"
	"fermata/continuation"
)

const (
	// maxPrincipal is how long the name of a principal may be, in characters.
	maxPrincipal = 256
	// maxCursor is how long a cursor may be, in bytes.
	maxCursor = 8 << 10
)

// readUsageQuery reads the parameters of a request of a principal for sums.
func readUsageQuery(raw, principal string, operator bool) (continuation.UsageQuery, error) {
	q := continuation.UsageQuery{Principal: principal, Everyone: operator, Limit: usualUsages}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, api.BadRequest("the query is malformed")
	}
	for _, p := range []struct {
		name string
		// read returns what is wrong with a value: how it must be.
		read func(q *continuation.UsageQuery, value string) (must string)
	}{
		{"principal", readPrincipal},
		{"since", func(q *continuation.UsageQuery, value string) string { return readDay(&q.Since, value) }},
		{"until", func(q *continuation.UsageQuery, value string) string { return readDay(&q.Until, value) }},
		{"limit", readLimit},
		{"after", readAfter},
	} {
		given := values[p.name]
		if len(given) > 1 {
			return q, api.BadRequest(p.name + " must not be repeated")
		}
		if len(given) == 0 {
			continue
		}
		if must := p.read(&q, given[0]); must != "" {
			return q, api.BadRequest(p.name + " must " + must)
		}
	}
	if q.Until != "" && q.Since > q.Until {
		return q, api.BadRequest("since must not be after until")
	}
	return q, nil
}

// readPrincipal reads the principal whose sums an operator wants to see.
func readPrincipal(q *continuation.UsageQuery, value string) (must string) {
	if !q.Everyone {
		return "not be given: your requests show your own usage"
	}
	if value == "" || utf8.RuneCountInString(value) > maxPrincipal {
		return "have 1 to " + strconv.Itoa(maxPrincipal) + " characters"
	}
	q.Principal, q.Everyone = value, false
	return ""
}

func readDay(day *continuation.Day, value string) (must string) {
	d, ok := continuation.ParseDay(value)
	if !ok {
		return "be a day, such as 2026-11-22"
	}
	*day = d
	return ""
}

func readLimit(q *continuation.UsageQuery, value string) (must string) {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil || n < 1 || n > mostUsages {
		return "be a number from 1 to " + strconv.Itoa(mostUsages)
	}
	q.Limit = int(n)
	return ""
}

// A cursor names the last sum of a page: its day, its principal and its toolset. It tells where the next
// page begins, and nothing of who may see it.
type cursor [3]string

// cursorForm is how cursors are written.
var cursorForm = base64.RawURLEncoding.Strict()

func cursorOf(u continuation.Usage) (string, error) {
	form, err := json.Marshal(cursor{string(u.Day), u.Principal, u.Toolset})
	return cursorForm.EncodeToString(form), err
}

// readAfter reads a cursor. Those who see their own sums go on in their own, whatever it says.
func readAfter(q *continuation.UsageQuery, value string) (must string) {
	must = "be the value of next in an answer"
	if len(value) > maxCursor {
		return must
	}
	form, err := cursorForm.DecodeString(value)
	if err != nil || cursorForm.EncodeToString(form) != value {
		return must
	}
	var c []string
	if err := json.Unmarshal(form, &c); err != nil || len(c) != len(cursor{}) {
		return must
	}
	day, ok := continuation.ParseDay(c[0])
	if !ok {
		return must
	}
	q.After = continuation.Usage{Day: day, Principal: c[1], Toolset: c[2]}
	if !q.Everyone {
		q.After.Principal = q.Principal
	}
	return ""
}
