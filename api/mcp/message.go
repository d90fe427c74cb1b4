package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
)

// maxLine is how many bytes a message of a client has at most.
const maxLine = 4 << 20

// A message has the members of a request that this package reads itself.
type message struct {
	Version string         `json:"jsonrpc"`
	Method  string         `json:"method"`
	ID      jsontext.Value `json:"id"`
	Params  struct {
		Name         string         `json:"name"`
		URI          string         `json:"uri"`
		RequestID    jsontext.Value `json:"requestId"`
		Capabilities struct {
			Elicitation *elicitation `json:"elicitation"`
		} `json:"capabilities"`
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// A messageError tells a client why the text that it has sent is not a message.
type messageError struct {
	// code is one of the protocol's.
	code int
	text string
}

func (e *messageError) Error() string { return e.text }

// The errors of texts that are not messages.
var (
	errNoJSON   = &messageError{jsonrpc.CodeParseError, "the body is not a message of JSON-RPC, or a name stands in it twice"}
	errBatch    = &messageError{jsonrpc.CodeInvalidRequest, "batches of messages are not part of the protocol any more: send one message for each request"}
	errVersion  = &messageError{jsonrpc.CodeInvalidRequest, `jsonrpc must be "2.0"`}
	errID       = &messageError{jsonrpc.CodeInvalidRequest, "id must be a string or a whole number"}
	errLongLine = &messageError{jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message has at most %d bytes", maxLine)}
)

// maxID is the largest number that an id may be. Some readers of JSON round larger numbers.
const maxID = 1<<53 - 1

// readMessage reads a message. If the text is not a message but has a valid id, the returned message has the id
// alone, so that the client can be answered.
func readMessage(text []byte) (m message, err *messageError) {
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return m, errBatch
	}
	if gojson.Unmarshal(text, &m) != nil {
		var named struct {
			ID jsontext.Value `json:"id"`
		}
		if gojson.Unmarshal(text, &named) != nil || !validID(named.ID) {
			named.ID = nil
		}
		return message{ID: named.ID}, errNoJSON
	}
	if m.ID != nil && !validID(m.ID) {
		m.ID = nil
		return m, errID
	}
	if m.Version != "2.0" {
		return m, errVersion
	}
	return m, nil
}

// validID reports whether an id can be sent back to the client unchanged.
func validID(id jsontext.Value) bool {
	switch id.Kind() {
	case jsontext.KindString:
		return true
	case jsontext.KindNumber:
		var number int64
		return json.Unmarshal(id, &number) == nil && -maxID <= number && number <= maxID
	default:
		return false
	}
}

// answer returns the answer to a text that is not a message. The id in the answer is null if the text has no
// valid id.
func (e *messageError) answer(id jsontext.Value) []byte {
	if id == nil {
		id = jsontext.Value("null")
	}
	return errorTo(id, e.code, e.text)
}

// errorTo returns the answer with an error to a request.
func errorTo(id jsontext.Value, code int, text string) []byte {
	type wrong struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	answer, err := api.Encode(struct {
		JSONRPC string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Error   wrong          `json:"error"`
	}{"2.0", id, wrong{code, text}})
	if err != nil {
		panic(err) // An id that was read can be written.
	}
	return answer
}

// lines reads lines. A line that is too long is skipped, and does not stay in memory.
type lines struct{ from *bufio.Reader }

func linesOf(in io.Reader) lines { return lines{bufio.NewReaderSize(in, 64<<10)} }

// next returns the next line that is not blank. After errLongLine the caller may read on; after any other
// error no lines follow.
func (l lines) next() ([]byte, error) {
	for {
		var line []byte
		length := 0
		part, err := l.from.ReadSlice('\n')
		for ; errors.Is(err, bufio.ErrBufferFull); part, err = l.from.ReadSlice('\n') {
			if length += len(part); length <= maxLine {
				line = append(line, part...)
			}
		}
		if length += len(part); length <= maxLine {
			line = append(line, part...)
		}
		switch {
		case err != nil && length == 0:
			return nil, err
		case length > maxLine:
			return nil, errLongLine
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
	}
}

// Lines returns the transport of a client that sends and reads messages in lines. A line that is not a message
// is answered with an error, and the connection goes on.
func Lines(in io.ReadCloser, out io.WriteCloser) sdk.Transport {
	to := &lineWriter{WriteCloser: out}
	return &sdk.IOTransport{Reader: &messageReader{Closer: in, lines: linesOf(in), to: to}, Writer: to}
}

// A lineWriter keeps lines whole that several goroutines write at the same time.
type lineWriter struct {
	mu sync.Mutex
	io.WriteCloser
}

// Write implements io.Writer.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(line)
}

// A messageReader reads the messages among the lines of a client, and answers the other lines.
type messageReader struct {
	io.Closer
	lines lines
	rest  []byte
	to    *lineWriter
}

// Read implements io.Reader.
func (r *messageReader) Read(into []byte) (int, error) {
	for len(r.rest) == 0 {
		line, err := r.lines.next()
		wrong, isLine := errors.AsType[*messageError](err)
		if err != nil && !isLine {
			return 0, err
		}
		var m message
		if wrong == nil {
			m, wrong = readMessage(line)
		}
		if wrong == nil {
			if _, err := jsonrpc.DecodeMessage(line); err != nil { // The SDK would end the connection.
				wrong = errNoJSON
			}
		}
		if wrong == nil {
			r.rest = append(bytes.TrimSpace(line), '\n')
			break
		}
		if _, err := r.to.Write(append(wrong.answer(m.ID), '\n')); err != nil {
			return 0, err
		}
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
