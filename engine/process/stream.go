//go:build linux

package process

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// lastWordsDelay is how long after one of its sandboxes a zygote may be seen to die.
const lastWordsDelay = 200 * time.Millisecond

// A stream is a connection to a supervisor. If it ends because the zygote has ended, its
// error tells why.
type stream struct {
	net.Conn
	zygote *zygote
	// spoken says that the supervisor has spoken. Only the reader uses it.
	spoken bool
}

// Close closes the connection.
func (s *stream) Close() error {
	s.zygote.heard(s)
	return s.Conn.Close()
}

// Read reads what the supervisor sends.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if !s.spoken {
		s.spoken = true
		s.zygote.heard(s)
	}
	if err == nil || errors.Is(err, net.ErrClosed) {
		return n, err
	}
	if why := s.zygote.whyEnded(); why != "" {
		return n, explain(fmt.Errorf("%s: %w", why, err))
	}
	return n, err
}
