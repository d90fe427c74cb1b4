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

// AtOnce is how long an answer may take that needs nothing but the head of a request, on
// a machine that is busy.
const AtOnce = 10 * time.Second

// SendRaw sends the head of a request, and whatever follows it, over a connection of its own.
func (s *Server) SendRaw(t testing.TB, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// The server may close a connection before it has all of this.
	_, _ = io.WriteString(conn, text)
	return conn
}

// ReadAnswer reads the answer on a connection.
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

// AwaitClose returns nil if the server closes the connection in time.
func AwaitClose(conn net.Conn, within time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection is open after %v", within)
	}
	return nil // However it ended.
}
