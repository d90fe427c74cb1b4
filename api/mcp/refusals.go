package mcp

import (
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A refusals is the writer of a request. The SDK refuses some requests with a plain text, which becomes a message
// with the id of the request, so that clients know what it answers.
type refusals struct {
	*writer
	request message
	refused bool
}

// unknownMethod begins the text with which the SDK refuses a method that it does not know.
const unknownMethod = "JSON RPC not handled"

// WriteHeader implements http.ResponseWriter.
func (r *refusals) WriteHeader(status int) {
	if r.request.ID != nil && strings.HasPrefix(r.header.Get(echo.HeaderContentType), echo.MIMETextPlain) {
		r.refused = true
		r.header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		r.header.Del(echo.HeaderContentLength)
	}
	r.writer.WriteHeader(status)
}

// Write implements http.ResponseWriter. The SDK writes a plain text at once.
func (r *refusals) Write(data []byte) (int, error) {
	if !r.refused {
		return r.writer.Write(data)
	}
	code, why := int(jsonrpc.CodeInvalidRequest), strings.TrimSpace(string(data))
	if strings.HasPrefix(why, unknownMethod) {
		code, why = jsonrpc.CodeMethodNotFound, fmt.Sprintf("there is no method %.100q", r.request.Method)
	}
	if _, err := r.writer.Write(errorTo(r.request.ID, code, why)); err != nil {
		return 0, err
	}
	return len(data), nil
}
