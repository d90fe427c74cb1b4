package outgoing

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is one connection to the endpoint. One exchange at a time uses it.
type conn struct {
	net.Conn           // TCP, or TLS over it
	raw       net.Conn // TCP
	in        *bufio.Reader
	principal string
	pool      *pool
	expiry    *time.Timer // set while the connection is kept
	idle      time.Duration

	answering bool        // whether the answer of this exchange has begun
	wrote     atomic.Bool // whether a byte of this exchange's request may have been sent
}

// begin prepares an exchange.
func (c *conn) begin() error {
	c.answering = false
	c.wrote.Store(false)
	return c.SetReadDeadline(time.Time{})
}

// Read reads with the idle deadline, once the answer has begun.
func (c *conn) Read(p []byte) (int, error) {
	if c.answering {
		if err := c.SetReadDeadline(time.Now().Add(c.idle)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	c.answering = c.answering || n > 0
	return n, err
}

// Write notes that something has been sent.
func (c *conn) Write(p []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(p)
}

// close closes the connection and forgets it.
func (c *conn) close() {
	c.pool.remove(c)
	_ = c.raw.Close() // No TLS close message is sent, since an endpoint that does not read would block it.
}

// quiet reports whether the connection can be used again: the endpoint has not closed it, and has sent nothing
// after the last answer.
func (c *conn) quiet() bool {
	if c.in.Buffered() > 0 {
		return false
	}
	// Bytes that TLS has read ahead are found by a read that must not wait, and bytes in the TCP socket by a
	// peek.
	if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return false
	}
	if _, err := c.Conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	tcp, ok := c.raw.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := tcp.SyscallConn()
	if err != nil || c.SetReadDeadline(time.Time{}) != nil {
		return false
	}
	quiet := false
	err = rc.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
		return true
	})
	return err == nil && quiet
}

// answer reads the head of the answer to a request, after all 1xx answers. It also returns the reader from
// which the body of the answer is read.
func (c *conn) answer(req *http.Request) (*http.Response, *bufio.Reader, error) {
	left := MaxHeaders
	for range maxInterim {
		head, err := readHead(c.in, left)
		if err != nil {
			return nil, nil, err
		}
		left -= len(head)
		if err := checkHead(head); err != nil {
			return nil, nil, err
		}
		in := bufio.NewReader(io.MultiReader(bytes.NewReader(head), c.in))
		resp, err := http.ReadResponse(in, req)
		if err != nil {
			return nil, nil, &Error{Reason: Malformed, Err: err}
		}
		if resp.StatusCode >= 200 {
			return resp, in, nil
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || in.Buffered() > 0 {
			return nil, nil, &Error{Reason: Malformed, Err: errors.New("an unasked switch of protocols, or a 1xx answer with a body")}
		}
	}
	return nil, nil, &Error{Reason: LongHeaders, Err: errors.New("too many 1xx answers")}
}

// readHead reads the lines of a head and the empty line after it.
func readHead(in *bufio.Reader, limit int) ([]byte, error) {
	var head []byte
	for begin := 0; ; {
		part, err := in.ReadSlice('\n')
		if len(head)+len(part) > limit {
			return nil, &Error{Reason: LongHeaders, Limit: MaxHeaders}
		}
		head = append(head, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		line := bytes.TrimRight(head[begin:], "\r\n")
		if begin == 0 && !bytes.HasPrefix(line, []byte("HTTP/1.")) {
			return nil, &Error{Reason: Malformed, Err: errors.New("no status line of HTTP/1")}
		}
		if len(line) == 0 {
			return head, nil
		}
		begin = len(head)
	}
}

// checkHead refuses an answer whose end two readers could find in different places. It does not check what
// http.ReadResponse refuses.
func checkHead(head []byte) error {
	lengths, codings := 0, 0
	for line := range bytes.Lines(head) {
		if bytes.ContainsAny(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), "\x00\r") {
			return &Error{Reason: Malformed, Err: errors.New("a control character in a header")}
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch asciiLower(string(bytes.TrimSpace(name))) {
		case "content-length":
			lengths++
		case "transfer-encoding":
			codings++
		}
	}
	if lengths+codings > 1 {
		return &Error{Reason: Ambiguous, Err: errors.New("more than one Content-Length or Transfer-Encoding")}
	}
	return nil
}
