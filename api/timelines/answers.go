package timelines

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine/journal"
	"fermata/engine/timeline"
)

// Answer answers with a body, which is a JSON object, to which it adds the timeline of an execution as the
// last member. If the timeline cannot be made, the answer is sent nevertheless, with a member that says why.
// The client can then ask for the timeline by its route.
func (m *Maker) Answer(c echo.Context, status int, body []byte, execution string) error {
	made, err := m.of(c, execution)
	if err != nil {
		return api.AnswerBytes(c, status, without(c, body, err))
	}
	defer made.Close()
	return made.send(c, status, func(w io.Writer) error { return insert(w, body, made) })
}

// send answers with the JSON that write writes. A large timeline is encoded while it is sent.
func (m *Made) send(c echo.Context, status int, write func(io.Writer) error) error {
	if !m.large() {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		return api.AnswerBytes(c, status, b.Bytes())
	}
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(status)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	// Most writes are small.
	pieces := bufio.NewWriterSize(api.PacedWriter(c), pieceBytes)
	err := write(pieces)
	if err == nil {
		err = pieces.Flush()
	}
	if err != nil && c.Request().Context().Err() == nil {
		api.SetCause(c, err) // The client notices it, since the answer is incomplete.
	}
	return nil
}

// Extend returns what writes a body, which is a JSON object, with the timeline of an execution as the last
// member, for an answer that is part of a stream. The timeline holds memory until done is called.
func (m *Maker) Extend(c echo.Context, body []byte, execution string) (write func(io.Writer) error, done func()) {
	made, err := m.of(c, execution)
	if err != nil {
		return Plain(without(c, body, err))
	}
	return func(w io.Writer) error { return insert(w, body, made) }, made.Close
}

// Plain is Extend for a body that gets no timeline.
func Plain(body []byte) (write func(io.Writer) error, done func()) {
	return func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	}, func() {}
}

// of returns the timeline of an execution for the answer about it.
func (m *Maker) of(c echo.Context, execution string) (*Made, error) {
	// If the client has disconnected while its program ran, no timeline is made.
	ctx := c.Request().Context()
	return m.Of(ctx, journal.Viewer{Principal: api.PrincipalOf(c).ID}, execution, Wish{})
}

// without returns a body with the reason why it has no timeline.
func without(c echo.Context, body []byte, why error) []byte {
	told := api.ErrorOf(context.WithoutCancel(c.Request().Context()), why)
	text, err := api.Encode(told.Text)
	if err != nil {
		text = []byte(`""`) // It does not happen: every text can be encoded.
	}
	api.Warn(c, "an answer has no timeline: "+why.Error())
	return append(opened(body), `,"timeline":{"error":`+string(text)+`}}`...)
}

// insert writes a body and adds a timeline to it as the last member.
func insert(w io.Writer, body []byte, m *Made) error {
	if _, err := w.Write(append(opened(body), `,"timeline":`...)); err != nil {
		return err
	}
	if err := m.Write(w, timeline.View{Blocks: true}); err != nil {
		return err
	}
	_, err := w.Write([]byte{'}'})
	return err
}

// opened returns a JSON object without its last brace.
func opened(body []byte) []byte { return bytes.Clone(bytes.TrimSuffix(body, []byte{'}'})) }
