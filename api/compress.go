package api

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
)

// minCompressed is the size in bytes from which an answer is compressed: smaller ones fit into one
// packet anyway, and the answers of rounds are to be fast.
const minCompressed = 1 << 10

// compressors compress answers. There are as many as processors, since they do nothing but compute: an
// answer is compressed as a whole before it is sent, so that a slow client holds none of them.
type compressors struct{ free chan *gzip.Writer }

func newCompressors() compressors {
	n := runtime.GOMAXPROCS(0)
	cs := compressors{make(chan *gzip.Writer, n)}
	for range n {
		cs.free <- nil // It is made when it is needed.
	}
	return cs
}

// compress returns a body compressed. It returns false if that would not make it smaller, or if ctx
// ends first.
func (cs compressors) compress(ctx context.Context, body []byte) ([]byte, bool) {
	var w *gzip.Writer
	select {
	case w = <-cs.free:
	case <-ctx.Done():
		return nil, false
	}
	defer func() { cs.free <- w }()
	to := &bounded{limit: len(body)}
	if w == nil {
		w, _ = gzip.NewWriterLevel(to, gzip.BestSpeed) // Only an unknown level is an error.
	} else {
		w.Reset(to)
	}
	if _, err := w.Write(body); err != nil {
		return nil, false
	}
	if err := w.Close(); err != nil {
		return nil, false
	}
	return to.Bytes(), true
}

// bounded is a buffer of at most limit bytes.
type bounded struct {
	bytes.Buffer
	limit int
}

var errBounded = errors.New("api: the compressed answer would be larger")

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, errBounded
	}
	return b.Buffer.Write(p)
}

// acceptsGzip reports whether a client takes answers that are compressed with gzip.
func acceptsGzip(header http.Header) bool {
	takes, exact := false, false
	for part := range strings.SplitSeq(strings.Join(header.Values(echo.HeaderAcceptEncoding), ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil || name != "gzip" && (name != "*" || exact) {
			continue
		}
		exact = name == "gzip"
		q, err := strconv.ParseFloat(params["q"], 64)
		takes = params["q"] == "" || err == nil && q > 0
	}
	return takes
}

// AnswerBlob answers with a body of a media type. A large one is compressed if the client accepts that.
// No answer has a secret that stays the same from one answer to the next, so the size of a compressed
// one tells nothing (BREACH).
func AnswerBlob(c echo.Context, status int, mediaType string, body []byte) error {
	request, header := c.Request(), c.Response().Header()
	factsOf(c).place.settle(int64(len(body)))
	if packers := factsOf(c).compressors; packers != nil && len(body) >= minCompressed {
		header.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		if acceptsGzip(request.Header) {
			if packed, ok := packers.compress(request.Context(), body); ok {
				header.Set(echo.HeaderContentEncoding, "gzip")
				body = packed
			}
		}
	}
	header.Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	return c.Blob(status, mediaType, body)
}

// plainBodies is a middleware that refuses bodies that are compressed: what they unpack to could be
// a thousand times larger than what has arrived.
func plainBodies(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		coding := strings.TrimSpace(strings.Join(request.Header.Values(echo.HeaderContentEncoding), ", "))
		if request.ContentLength == 0 || coding == "" || strings.EqualFold(coding, "identity") {
			return next(c)
		}
		c.Response().Header().Set(echo.HeaderAcceptEncoding, "identity")
		return encodedBody(coding)
	}
}
