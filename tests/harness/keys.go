package harness

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// Keyed returns the header of a start that may be repeated: its idempotency key.
func Keyed(key string) http.Header { return http.Header{"Idempotency-Key": {key}} }

// PostKeyed is Post with an idempotency key.
func (c Client) PostKeyed(t testing.TB, key string, body any) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	a, err := c.Request(ctx, http.MethodPost, Programmatic, Keyed(key), body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Awkward calls a tool with values that JSON encoders write in different ways, so that an answer
// that is encoded twice does not come out the same by chance.
var Awkward = Program{Code: "got = await ask(text='<&>\u2028é', n=1.50)\nprint(got['text'], got['n'])", Tools: Tools("ask")}

// AskedAgain is the message for a repeated request whose answer is not that of the first one.
const AskedAgain = "got %v for the same request, want the answer again: %v"
