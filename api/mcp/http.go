package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/engine"
)

const (
	// maxBody is the size of a request in bytes.
	maxBody = 4 << 20
	// firstByte is how long a client waits at most for the first byte of a stream, and comments how long it
	// waits for each further one. Clients and proxies close a silent connection.
	firstByte = time.Second
	comments  = 15 * time.Second
	// writeTime is how long one write may take.
	writeTime = 10 * time.Second

	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// Register registers the route /mcp.
func Register(r *api.Router, s *Server) {
	h := &handler{s, r.Bodies, r.Limiters}
	for _, prefix := range []string{"", "/v1"} {
		r.Handle(http.MethodPost, prefix+"/mcp", h.post, r.Needs(api.Use))
	}
}

// handler answers requests over HTTP. It keeps no sessions, so that every server of a group can answer
// every request. Therefore it offers no stream apart from the answers to requests. See Key for the contents
// of session ids.
type handler struct {
	server   *Server
	bodies   *api.Bodies
	limiters *api.Limiters
}

// post answers one message.
func (h *handler) post(c echo.Context) error {
	body, err := h.bodies.ReadJSON(c, maxBody, io.Discard)
	if err != nil {
		return err
	}
	m, wrong := readMessage(body)
	if wrong != nil {
		return api.BadRequest(wrong.text)
	}
	who, request := api.PrincipalOf(c), c.Request()
	session, asks := request.Header.Get(sessionHeader), false
	if session != "" {
		if asks, err = h.server.o.Key.check(who.ID, session); err != nil {
			return err
		}
	}
	depth, err := api.DepthOf(request.Header)
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-store")
	switch m.Method {
	case "":
		return h.answered(c, m.ID, body)
	case "initialize":
		header.Set(sessionHeader, h.server.o.Key.session(who.ID, m.Params.Capabilities.Elicitation.forms()))
	case "notifications/cancelled":
		h.cancel(c, m)
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.Header.Del(sessionHeader)
	w := newWriter(request.Context(), c.Response(), m.Method == "tools/call")
	defer w.close()
	face := h.server.face(caller{
		who: who, admit: func() error { return h.limiters.Admit(c, api.ExecutionRequests) },
		ended: request.Context(), lossy: true, request: nameOf(who.ID, session, m.ID), stream: &stream{asks, w}, depth: depth,
	})
	sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return face }, &sdk.StreamableHTTPOptions{
		Stateless: true,
		// The middleware of all routes has checked Host and Origin.
		DisableLocalhostProtection:   true,
		PropagateRequestCancellation: true,
		MaxRequestBodyBytes:          maxBody,
	}).ServeHTTP(&refusals{writer: w, request: m}, request)
	return nil
}

// An asked is the answer of a client to a request of the server.
type asked struct {
	Result *sdk.ElicitResult `json:"result"`
	Error  jsontext.Value    `json:"error"`
}

// answered handles the answer of a client to a question.
func (h *handler) answered(c echo.Context, id jsontext.Value, body []byte) error {
	var name string
	var a asked
	// Unknown members are ignored. Known members are checked below.
	if json.Unmarshal(id, &name) != nil || json.Unmarshal(body, &a) != nil || a.Result == nil && a.Error == nil {
		return api.BadRequest("the body is neither a request nor the answer to a question of the server")
	}
	name, known := strings.CutPrefix(name, questionPrefix)
	execution, call, found := strings.Cut(name, ":")
	if !known || !found {
		return api.BadRequest("the id of the answer is not that of a question of the server")
	}
	f := &face{h.server, caller{who: api.PrincipalOf(c)}}
	approve, reason := answerOf(a.Result)
	if a.Result == nil {
		reason = reasonCannot
	}
	ctx := c.Request().Context()
	if _, err := f.find(ctx, execution); err != nil {
		return err
	}
	if err := f.decide(context.WithoutCancel(ctx), execution, call, approve, reason); err != nil {
		return err
	}
	return c.NoContent(202)
}

// cancel cancels the request that a client of an older version of the protocol names. Clients of newer
// versions close the connection instead.
func (h *handler) cancel(c echo.Context, m message) {
	who := api.PrincipalOf(c).ID
	id := nameOf(who, c.Request().Header.Get(sessionHeader), m.Params.RequestID)
	if id == "" {
		return
	}
	if _, err := h.server.o.Executions.Cancel(c.Request().Context(), engine.Cancel{Principal: who, RequestID: id}); err != nil {
		api.SetCause(c, err)
	}
}

// nameOf returns the name by which the engine knows a request, or "" if the request cannot be cancelled. It
// includes the session, since the ids of requests are unique only within one.
func nameOf(principal, session string, id jsontext.Value) string {
	if session == "" || len(id) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(principal + "\x00" + session + "\x00" + string(id)))
	return "mcp-" + hex.EncodeToString(sum[:])
}

// A writer sends an answer. If the answer is a stream on which nothing is sent, the writer begins the stream
// and keeps it open with comments.
type writer struct {
	to      http.ResponseWriter
	control *http.ResponseController

	stop  context.CancelFunc
	ended chan struct{}

	// header is the header that the SDK sets. It becomes the header of the answer when the answer begins.
	// Before that, only the SDK uses it.
	header http.Header
	mu     sync.Mutex
	begun  bool
	stream bool
}

// newWriter returns a writer. slow is true if the answer is a stream that may take a while.
func newWriter(ctx context.Context, to http.ResponseWriter, slow bool) *writer {
	ctx, stop := context.WithCancel(ctx)
	w := &writer{to: to, control: http.NewResponseController(to), stop: stop, ended: make(chan struct{}), header: http.Header{}}
	if !slow {
		close(w.ended)
		return w
	}
	go func() {
		defer close(w.ended)
		for wait := firstByte; ; wait = comments {
			select {
			case <-time.After(wait):
				w.comment()
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// close stops the comments.
func (w *writer) close() {
	w.stop()
	<-w.ended
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.to }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(status)
}

// begin sends the status and the headers, unless they were sent. The caller holds mu.
func (w *writer) begin(status int) {
	if w.begun {
		return
	}
	w.begun, w.stream = true, w.header.Get(echo.HeaderContentType) == api.EventStream
	maps.Copy(w.to.Header(), w.header)
	w.to.WriteHeader(status)
}

// Write implements http.ResponseWriter. The SDK writes each event at once.
func (w *writer) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(http.StatusOK)
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	return w.to.Write(data)
}

// comment sends a comment, which begins the stream or keeps it open.
func (w *writer) comment() {
	_ = w.event(": the program runs\n\n") // An error means that the client has left.
}

// message sends a message of the protocol on the stream, which it begins if that has not happened.
func (w *writer) message(text []byte) error {
	return w.event("event: message\ndata: " + string(text) + "\n\n")
}

// event sends the text of an event or of a comment on the stream.
func (w *writer) event(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun {
		w.begun, w.stream = true, true
		w.to.Header().Set(echo.HeaderContentType, api.EventStream)
	}
	if !w.stream {
		return nil
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := io.WriteString(w.to, text); err != nil {
		return err
	}
	return w.control.Flush()
}
