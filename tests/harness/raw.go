package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// AtOnce is how long an answer to the head of a request may take. The server needs no time for
// it, but the machine may be busy.
const AtOnce = 10 * time.Second

// SendRaw opens a connection and sends text over it: the head of a request, or all of it.
func (s *Server) SendRaw(t testing.TB, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// The server may close the connection before it has read everything.
	_, _ = io.WriteString(conn, text)
	return conn
}

// ReadAnswer reads an answer from a connection.
func ReadAnswer(conn net.Conn, within time.Duration) (status int, body string, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// AwaitClose waits until the server closes a connection. It returns an error if the server does
// not do so in time.
func AwaitClose(conn net.Conn, within time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection is open after %v", within)
	}
	return nil // The connection has ended, with or without an error.
}
