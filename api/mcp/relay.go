package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"fermata/api"
)

const (
	maxAnswer   = 8 << 20 // bytes of a message of the server
	maxRelayed  = 64      // requests that are under way at once, and the same number of other messages
	answersFrom = time.Minute
)

// A Remote is a running server.
type Remote struct {
	// URL is the URL of its route /mcp. Key is the API key of the client, or empty.
	URL, Key string
	Log      *slog.Logger
}

// Relay passes the messages of a client on to a running server, and the messages of the server to the
// client. Each message is one line of in or out. It returns when in or ctx ends.
func Relay(ctx context.Context, in io.Reader, out io.Writer, to Remote) error {
	ctx, stop := context.WithCancel(ctx)
	r := &relay{
		remote: to, out: out, under: map[string]context.CancelFunc{}, slots: make(chan struct{}, maxRelayed), brief: make(chan struct{}, maxRelayed),
		client: &http.Client{
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: answersFrom, MaxIdleConnsPerHost: maxRelayed},
			// The key must not be sent to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	defer r.client.CloseIdleConnections()
	defer r.going.Wait()
	defer stop()
	type read struct {
		line []byte
		err  error
	}
	reads := make(chan read)
	go func() { // A read of stdin cannot be interrupted, so this goroutine may live until the process ends.
		for from := linesOf(in); ; {
			line, err := from.next()
			select {
			case reads <- read{line, err}:
			case <-ctx.Done():
				return
			}
			if _, more := errors.AsType[*messageError](err); err != nil && !more {
				return
			}
		}
	}()
	for {
		select {
		case next := <-reads:
			wrong, refused := errors.AsType[*messageError](next.err)
			switch {
			case errors.Is(next.err, io.EOF):
				return nil
			case refused:
				r.refuse(wrong, nil)
			case next.err != nil:
				return fmt.Errorf("read the messages of the client: %w", next.err)
			default:
				r.pass(ctx, next.line)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// A relay passes messages on.
type relay struct {
	remote Remote
	client *http.Client
	going  sync.WaitGroup
	// slots limits the requests that are under way, and brief all other messages: a message that ends a
	// request must not wait until a request has ended.
	slots, brief chan struct{}

	writing sync.Mutex
	out     io.Writer

	mu sync.Mutex
	// under are the requests that are under way, by id.
	under map[string]context.CancelFunc
	// session and version come from the answer to initialize.
	session, version string
}

// pass passes one message on.
func (r *relay) pass(ctx context.Context, line []byte) {
	m, wrong := readMessage(line)
	if wrong != nil {
		r.refuse(wrong, m.ID)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	id := string(m.ID)
	if id != "" {
		r.mu.Lock()
		r.under[id] = cancel
		r.mu.Unlock()
	}
	send := func() {
		defer cancel()
		err := r.send(ctx, m, line)
		if id != "" {
			r.mu.Lock()
			delete(r.under, id)
			r.mu.Unlock()
		}
		if err != nil && ctx.Err() == nil {
			r.fail(m.ID, err.Error())
		}
		if m.Method == "notifications/cancelled" {
			r.cancel(string(m.Params.RequestID))
		}
	}
	if m.Method == "initialize" {
		send() // It is waited for, since the following messages need the answer.
		return
	}
	slots := r.slots
	if m.Method == "" || id == "" { // an answer or a notification
		slots = r.brief
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		cancel()
		return
	}
	r.going.Go(func() {
		defer func() { <-slots }()
		send()
	})
}

// cancel closes the connection of a request. In newer versions of the protocol this is how a request is
// cancelled.
func (r *relay) cancel(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.under[id]; cancel != nil {
		cancel()
	}
}

// send posts a message and passes the answer on.
func (r *relay) send(ctx context.Context, m message, line []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.remote.URL, bytes.NewReader(line))
	if err != nil {
		return err
	}
	r.head(request.Header, m)
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("the server cannot be reached: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if session := response.Header.Get(sessionHeader); session != "" {
		r.mu.Lock()
		r.session = session
		r.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // An invalid type is refused below.
	switch {
	case response.StatusCode == http.StatusAccepted:
		return nil
	case kind == api.EventStream:
		return r.stream(response.Body, m)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the answer of the server broke off: %w", err)
	}
	if r.answer(text, m) {
		return nil
	}
	return fmt.Errorf("the server answers %s: %s", response.Status, shorten(string(text), maxMessage))
}

// head sets the headers of a request.
func (r *relay) head(header http.Header, m message) {
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	if r.remote.Key != "" {
		header.Set("Authorization", "Bearer "+r.remote.Key)
	}
	r.mu.Lock()
	session, version := r.session, r.version
	r.mu.Unlock()
	if m.Params.Meta.Version != "" {
		session, version = "", m.Params.Meta.Version
	}
	if session != "" {
		header.Set(sessionHeader, session)
	}
	if version != "" {
		header.Set(versionHeader, version)
	}
	if version >= statelessSince {
		header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			header.Set("Mcp-Name", name)
		}
	}
}

// stream passes on the messages of a stream of events.
func (r *relay) stream(body io.Reader, m message) error {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, maxAnswer)
	for scanner.Scan() {
		// The server sends each message on one line.
		if data, found := bytes.CutPrefix(scanner.Bytes(), []byte("data:")); found && !r.answer(data, m) {
			return errors.New("the server sent what is no message of JSON-RPC")
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("the answer of the server broke off: %w", err)
	}
	return nil
}

// answer passes a message of the server on. It reports false if the text is not a message.
func (r *relay) answer(text []byte, m message) bool {
	var head struct {
		JSONRPC string `json:"jsonrpc"`
		Result  struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(text, &head) != nil || head.JSONRPC != "2.0" {
		return false
	}
	if m.Method == "initialize" && head.Result.Version != "" {
		r.mu.Lock()
		r.version = head.Result.Version
		r.mu.Unlock()
	}
	r.write(text)
	return true
}

// fail answers a request that could not be passed on with an error.
func (r *relay) fail(id jsontext.Value, text string) {
	r.remote.Log.Warn("a message of the client could not be passed on", "err", text)
	if len(id) == 0 {
		return
	}
	r.write(errorTo(id, jsonrpc.CodeInternalError, text))
}

// refuse answers what is no message.
func (r *relay) refuse(wrong *messageError, id jsontext.Value) {
	r.remote.Log.Warn("a message of the client is not passed on", "reason", wrong.text)
	r.write(wrong.answer(id))
}

// write writes a message on one line.
func (r *relay) write(text []byte) {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return // It does not happen: the text is valid JSON.
	}
	line.WriteByte('\n')
	r.writing.Lock()
	defer r.writing.Unlock()
	if _, err := r.out.Write(line.Bytes()); err != nil {
		r.remote.Log.Warn("the client does not read", "err", err)
	}
}
