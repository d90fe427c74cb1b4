package outgoing

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// atOnce is how many bytes of a body the system buffers even if the endpoint reads nothing.
const atOnce = 16 << 10

// exchange sends a request and returns the answer, whose body holds the connection until it was read or
// closed. If the request is repeatable, it may use a connection that the principal has used before. If that
// connection is dead, the request is sent once more, on a new connection.
func (c *Client) exchange(ctx context.Context, principal string, repeatable bool, req *http.Request) (*http.Response, error) {
	if o, err := originOf(req.URL); err != nil || o != c.origin || req.URL.User != nil {
		return nil, &Error{Reason: WrongOrigin, Err: err}
	}
	ours := *req
	ours.Header = marked(ctx, req.Header)
	req = &ours
	if repeatable {
		if cn := c.pool.take(principal); cn != nil {
			resp, err := c.over(ctx, cn, req, true)
			if err == nil || cn.answering || ctx.Err() != nil || !rewind(req) {
				return resp, err
			}
		}
	}
	cn, err := c.dial(ctx, principal)
	if err != nil {
		return nil, connectError(ctx, err)
	}
	return c.over(ctx, cn, req, repeatable)
}

// rewind makes a request ready to be sent again.
func rewind(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	if req.GetBody == nil {
		return false
	}
	b, err := req.GetBody()
	req.Body = b
	return err == nil
}

// over makes an exchange over a connection.
func (c *Client) over(ctx context.Context, cn *conn, req *http.Request, keep bool) (*http.Response, error) {
	if err := cn.begin(); err != nil {
		cn.close()
		return nil, &Error{Reason: Broken, Err: err}
	}
	x := &exchanged{cn: cn, keep: keep, written: make(chan bool, 1), ctx: ctx}
	x.stop = context.AfterFunc(ctx, cn.close)
	req.Close = !keep
	if req.Body == nil || req.Body == http.NoBody || 0 < req.ContentLength && req.ContentLength <= atOnce {
		x.written <- c.write(cn, req) == nil
	} else { // An endpoint may answer before it has read the whole request.
		go func() { x.written <- c.write(cn, req) == nil }()
	}
	resp, in, err := cn.answer(req)
	if err != nil {
		x.finish(false)
		failure := answerError(ctx, err, Malformed)
		failure.Sent = cn.wrote.Load()
		return nil, failure
	}
	x.in, x.body = in, resp.Body
	x.keep = keep && !resp.Close
	resp.Body = x
	if resp.ContentLength == 0 || req.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
		x.finish(true)
		resp.Body = http.NoBody
	}
	return resp, nil
}

// write writes a request.
func (c *Client) write(cn *conn, req *http.Request) error {
	out := bufio.NewWriter(cn)
	write := req.Write
	if c.proxy != nil && c.origin.scheme == "http" && c.proxy.Scheme != "socks5" {
		proxied := *req
		proxied.Header = req.Header.Clone()
		if header := c.proxyAuthorization(); header != "" {
			proxied.Header.Set("Proxy-Authorization", header)
		}
		write = proxied.WriteProxy
	}
	if err := write(out); err != nil {
		return err
	}
	return out.Flush()
}

// exchanged is the body of an answer.
type exchanged struct {
	ctx     context.Context //nolint:containedctx // it ends with the body
	cn      *conn
	in      *bufio.Reader
	body    io.ReadCloser
	keep    bool
	written chan bool // gets whether the whole request was written
	stop    func() bool
	end     error // the error with which Read has ended
	done    atomic.Bool
}

// Read reads the body. Its errors are *Error, or io.EOF where the answer ends.
func (x *exchanged) Read(p []byte) (int, error) {
	if x.end != nil {
		return 0, x.end
	}
	n, err := x.body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		x.end = io.EOF
		x.finish(true)
	case err != nil:
		x.end = answerError(x.ctx, err, Malformed)
		x.finish(false)
	}
	return n, x.end
}

// Close closes the connection, unless the body was read to its end. It may be called while Read waits.
func (x *exchanged) Close() error {
	x.finish(false)
	return nil
}

// finish ends the exchange. The connection is kept if the whole request was sent, the whole answer was read,
// and no byte follows it.
func (x *exchanged) finish(whole bool) {
	if !x.done.CompareAndSwap(false, true) {
		return
	}
	keep := x.stop() && whole && x.keep && x.in.Buffered() == 0 && x.cn.in.Buffered() == 0
	if keep {
		select {
		case keep = <-x.written:
			x.written <- keep
		default:
			keep = false
		}
	}
	if keep {
		x.cn.pool.put(x.cn)
		return
	}
	x.cn.close()
	<-x.written // The connection is closed, so this does not block.
}
