package mcptool

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	toldLines = 3   // lines of a process that a reason quotes
	toldBytes = 200 // bytes of each
)

// A lineLog logs lines that an MCP server writes and that are no messages, as quoted texts and at most MaxStderr
// bytes of them within a second. It remembers the last lines.
type lineLog struct {
	o     *Options
	where string // what the server writes them to

	mu              sync.Mutex
	second          time.Time
	logged, dropped int
	last            []string
}

// log logs a line.
func (l *lineLog) log(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.second) >= time.Second {
		if l.dropped > 0 {
			l.o.Log.Warn("an MCP server wrote more to its "+l.where+" than is logged", slog.String("toolset", l.o.Toolset), slog.Int("bytes", l.dropped)) //nolint:sloglint // where is one of two constants
		}
		l.second, l.logged, l.dropped = now, 0, 0
	}
	if l.logged+len(line) > MaxStderr {
		l.dropped += len(line)
		return
	}
	l.logged += len(line)
	text := l.o.Mask(string(line))
	l.o.Log.Info("an MCP server wrote to its "+l.where, slog.String("toolset", l.o.Toolset), slog.String("line", strconv.QuoteToASCII(text))) //nolint:sloglint // where is one of two constants
	if len(text) > toldBytes {
		text = strings.ToValidUTF8(text[:toldBytes], "") + " …"
	}
	if l.last = append(l.last, strconv.Quote(text)); len(l.last) > toldLines {
		l.last = l.last[1:]
	}
}

// logAll logs lines until the end of a stream.
func (l *lineLog) logAll(stream io.Reader) {
	in := bufio.NewReaderSize(stream, 4<<10)
	for {
		line, err := in.ReadSlice('\n') // a longer line is logged in pieces
		if line := bytes.TrimSpace(line); len(line) > 0 {
			l.log(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// text returns the last lines, each in quotes.
func (l *lineLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, ", ")
}
