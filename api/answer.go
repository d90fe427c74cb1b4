package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// AnswerTimeout is how long a client may take to receive an answer.
const AnswerTimeout = 60 * time.Second

// Encode returns v as JSON. Equal values have equal bytes. Bytes in strings that are not
// UTF-8 are replaced, and JSON within v keeps its spelling except for white space.
func Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v,
		jsontext.AllowInvalidUTF8(true),
		// Programs and clients may send both.
		jsontext.AllowDuplicateNames(true),
		jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, fmt.Errorf("api: encode an answer: %w", err)
	}
	return body, nil
}

// Answer answers with v as JSON.
func Answer(c echo.Context, status int, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	return AnswerBytes(c, status, body)
}

// AnswerBytes answers with a body that is JSON already.
func AnswerBytes(c echo.Context, status int, body []byte) error {
	response := http.NewResponseController(c.Response())
	_ = response.SetWriteDeadline(time.Now().Add(AnswerTimeout))
	if err := AnswerBlob(c, status, echo.MIMEApplicationJSON, body); err != nil {
		return err
	}
	// The flush spares the client the wait until the request is logged. An error means that the
	// client has left.
	_ = response.Flush()
	return nil
}
