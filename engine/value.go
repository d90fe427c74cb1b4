package engine

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// maxValue bounds what a program returns, in bytes of JSON. The runner applies it as well: it
// sends the text of a larger value, cut.
const maxValue = 64_000

// returned checks what a worker says that its program has returned, and returns it in a form that
// every reader of JSON accepts. It returns nothing for null, and for what no worker of ours
// sends: it is the program that has forged it.
func returned(value jsontext.Value) json.RawMessage {
	if len(value) > maxValue || TooDeep(value) {
		return nil
	}
	value, err := strict(value.Clone())
	if err != nil || bytes.Equal(value, []byte("null")) {
		return nil
	}
	return json.RawMessage(value)
}
