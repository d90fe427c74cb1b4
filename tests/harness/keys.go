package harness

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// Keyed is the header of a start that may be repeated.
func Keyed(key string) http.Header { return http.Header{"Idempotency-Key": {key}} }

// PostKeyed is post with a key.
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

// Awkward calls a tool with what a JSON encoder may write in another way.
var Awkward = Program{Code: "got = await ask(text='<&>\u2028é', n=1.50)\nprint(got['text'], got['n'])", Tools: Tools("ask")}

const AskedAgain = "got %v for the same request, want the answer again: %v"
