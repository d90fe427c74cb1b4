package live

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine/journal"
)

// maxRepeats is how often a parameter that may be repeated may occur. maxText is the maximum length of a
// parameter that is a text, in characters.
const (
	maxRepeats = 16
	maxText    = 256
)

// A query reads the parameters of the routes of this package.
type query struct{ *api.Query }

func queryOf(c echo.Context) query { return query{api.QueryOf(c)} }

// text returns the value of a parameter that is a text. It is empty if the parameter is not given.
func (q query) text(name string) string {
	value, given := q.One(name)
	if given && (value == "" || utf8.RuneCountInString(value) > maxText) {
		q.Refuse(name, "have 1 to "+strconv.Itoa(maxText)+" characters")
	}
	return value
}

// several returns the values of a parameter that may be repeated.
func (q query) several(name string) []string {
	values := q.Values[name]
	if len(values) > maxRepeats {
		q.Refuse(name, "occur at most "+strconv.Itoa(maxRepeats)+" times")
		return nil
	}
	return values
}

// choices returns the values of a parameter that may be repeated. Each must be one of the words.
func (q query) choices(name string, words ...string) []string {
	values := q.several(name)
	for _, v := range values {
		if !slices.Contains(words, v) {
			q.Refuse(name, "be one of: "+strings.Join(words, ", "))
		}
	}
	return values
}

var labelKey = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// labels returns labels in the form key:value.
func (q query) labels(name string) []journal.Label {
	var labels []journal.Label
	for _, text := range q.several(name) {
		key, value, cut := strings.Cut(text, ":")
		if !cut || !labelKey.MatchString(key) || utf8.RuneCountInString(value) > maxText {
			q.Refuse(name, "be key:value, with a key of 1 to 64 characters of a-z, 0-9, _, . and -")
		}
		labels = append(labels, journal.Label{Key: key, Value: value})
	}
	return labels
}

// moment returns the value of a parameter that is a time. It is zero if the parameter is not given.
func (q query) moment(name string) time.Time {
	text, given := q.One(name)
	if !given {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.IsZero() {
		q.Refuse(name, "be a time as in RFC 3339, such as 2026-11-22T10:00:00Z")
	}
	return t
}

// span returns the times of since and until.
func (q query) span() (since, until time.Time) {
	since, until = q.moment("since"), q.moment("until")
	if !until.IsZero() && since.After(until) {
		q.Refuse("since", "not be after until")
	}
	return since, until
}

// after returns the number of the event after which a reader wants to go on. The header that readers send
// when they have lost their stream takes precedence over the parameter.
func (q query) after(c echo.Context) int64 {
	name := "after"
	text, given := q.One(name)
	if last := c.Request().Header.Values("Last-Event-ID"); len(last) > 0 && strings.Join(last, "") != "" {
		name, text, given = "Last-Event-ID", strings.Join(last, ","), true
	}
	if !given {
		return 0
	}
	n, ok := api.Decimal(text)
	if !ok {
		q.Refuse(name, "be the number of an event")
	}
	// No journal is so long. The bound lets stores add to the number without an overflow.
	return min(n, math.MaxInt64>>1)
}

// principal returns the principal whose executions an operator wants to see.
func (q query) principal(v journal.Viewer) string {
	name := q.text("principal")
	if name != "" && !v.Operator {
		q.Refuse("principal", "not be given: your requests show your own executions")
	}
	return name
}

// The kinds of cursors. A cursor of one list is not valid in another list.
const (
	executionCursor = 'e'
	callCursor      = 'c'
	ownCallCursor   = 'o'
)

// cursorForm is the encoding of cursors. A cursor says where the next page begins. It gives no access to it.
var cursorForm = base64.RawURLEncoding.Strict()

const cursorSize = 1 + 8 + len(uuid.UUID{}) + 8

func cursor(kind byte, at journal.CallPlace) string {
	b := make([]byte, 0, cursorSize)
	b = append(b, kind)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Created.UnixMilli()))
	id, err := uuid.Parse(at.ID)
	if err != nil {
		id = uuid.Nil // It does not happen: all ids are UUIDs.
	}
	b = append(b, id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Seq))
	return cursorForm.EncodeToString(b)
}

// cursor returns the place in a list that the parameter after names, or the beginning if it is not given.
func (q query) cursor(kind byte) journal.CallPlace {
	text, given := q.One("after")
	if !given {
		return journal.CallPlace{}
	}
	b, err := cursorForm.DecodeString(text)
	if err != nil || len(text) != cursorForm.EncodedLen(cursorSize) || len(b) != cursorSize || b[0] != kind {
		q.Refuse("after", "be the value of next in an answer")
		return journal.CallPlace{}
	}
	ms, seq := int64(binary.BigEndian.Uint64(b[1:])), int64(binary.BigEndian.Uint64(b[25:]))
	id, err := uuid.FromBytes(b[9:25])
	if err != nil || ms < 0 || ms > maxMoment || seq < 0 || (kind == executionCursor) != (seq == 0) && kind != callCursor {
		q.Refuse("after", "be the value of next in an answer")
		return journal.CallPlace{}
	}
	return journal.CallPlace{Place: continuation.Place{Created: time.UnixMilli(ms), ID: id.String()}, Seq: seq}
}

// maxMoment is the last moment that RFC 3339 can express, in milliseconds since 1970.
const maxMoment = 253402300799999
