package librechat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine/filename"
	"fermata/engine/files"
)

// download sends a file as it is, or a range of it. Browsers save it and display none of it, since a
// program or a client has chosen what it is.
func (h *sessionFiles) download(c echo.Context) error {
	ctx := c.Request().Context()
	session, name := c.Param("session"), nameOf(c)
	if !files.ValidID(session) || filename.Check(name) != nil {
		return errBadRequest
	}
	owner, err := readOwner(c)
	if err != nil {
		return err
	}
	f, err := h.find(ctx, owner, session, name)
	if err != nil {
		return notDownloadable(err)
	}
	wanted, err := rangeOf(c, f)
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodHead {
		describe(c, f, wanted)
		return nil
	}
	content, err := h.store.Content(ctx, f, wanted.from, wanted.to)
	if err != nil {
		return notDownloadable(err)
	}
	defer func() { _ = content.Close() }()
	describe(c, f, wanted)
	_, err = io.Copy(api.PacedWriter(c), content)
	if err != nil && ctx.Err() == nil {
		// The client sees that bytes are missing; net/http closes the connection after
		// them.
		api.SetCause(c, fmt.Errorf("send file: %w", err))
	}
	return nil
}

// nameOf returns the id or the name at the end of the path of a request. A slash in a name is written
// %2F there, and echo does not decode paths with such.
func nameOf(c echo.Context) string {
	name := c.Param("file")
	if c.Request().URL.RawPath == "" {
		return name
	}
	decoded, err := url.PathUnescape(name)
	if err != nil {
		return "" // It is the name of no file.
	}
	return decoded
}

// find returns the file of a session with the id, or else the latest one with the name.
func (h *sessionFiles) find(ctx context.Context, owner files.Owner, session, name string) (files.File, error) {
	if files.ValidID(name) {
		if f, err := h.store.Stat(ctx, owner, session, name); !errors.Is(err, files.ErrNotFound) {
			return f, err
		}
	}
	// Equal names are listed from the oldest to the latest.
	sorted, err := h.store.List(ctx, owner, session)
	if err != nil {
		return files.File{}, err
	}
	for _, f := range slices.Backward(sorted) {
		if filename.Same(f.Name, name) {
			return f, nil
		}
	}
	return files.File{}, files.ErrNotFound
}

// notDownloadable returns the answer to a request for a file that cannot be sent.
func notDownloadable(err error) error {
	if errors.Is(err, files.ErrNotFound) {
		return errNoDownload
	}
	return err
}

// A byteRange is the part of a file that is sent: from the byte from up to the byte before to. partial is
// true if the client has asked for a part.
type byteRange struct {
	from, to int64
	partial  bool
}

// rangeOf returns the part of a file that a request asks for. A range that is not one of bytes, and
// several ranges, are no reason to refuse the request: the client gets the whole file.
func rangeOf(c echo.Context, f files.File) (byteRange, error) {
	all := byteRange{to: f.Size}
	header := c.Request().Header
	text, ok := strings.CutPrefix(header.Get("Range"), "bytes=")
	if !ok || c.Request().Method != http.MethodGet {
		return all, nil
	}
	if condition := header.Get("If-Range"); condition != "" && condition != quoted(f.ETag) {
		return all, nil
	}
	first, last, ok := strings.Cut(strings.TrimSpace(text), "-")
	from, to, ok := boundsOf(first, last, f.Size, ok)
	switch {
	case !ok:
		return all, nil
	case from >= f.Size:
		c.Response().Header().Set("Content-Range", "bytes */"+strconv.FormatInt(f.Size, 10))
		return all, errRange
	}
	return byteRange{from, min(to, f.Size), true}, nil
}

// boundsOf returns the bounds of the range first-last in a file of the size: -5 is its last five bytes, 5-
// all but the first five. ok is false if it is no range.
func boundsOf(first, last string, size int64, dash bool) (from, to int64, ok bool) {
	number := func(text string) int64 {
		n, err := strconv.ParseUint(text, 10, 63)
		if errors.Is(err, strconv.ErrRange) {
			return size // It lies behind every file.
		}
		if err != nil {
			return -1
		}
		return int64(n)
	}
	from, to = number(first), number(last)
	switch {
	case !dash, first == "" && last == "", first != "" && from < 0, last != "" && to < 0:
		return 0, 0, false
	case first == "" && to == 0:
		return size, size, true // The last zero bytes of a file cannot be sent.
	case first == "":
		return max(size-to, 0), size, true
	case last == "":
		return from, size, true
	}
	return from, min(to, size-1) + 1, to >= from
}

// describe sends the status and the headers of a download.
func describe(c echo.Context, f files.File, part byteRange) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, harmless(f.Type))
	header.Set(echo.HeaderContentSecurityPolicy, "sandbox")
	header.Set(echo.HeaderContentLength, strconv.FormatInt(part.to-part.from, 10))
	header.Set("Accept-Ranges", "bytes")
	header.Set("ETag", quoted(f.ETag))
	header.Set(echo.HeaderContentDisposition, disposition(f.Name))
	status := http.StatusOK
	if part.partial {
		status = http.StatusPartialContent
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.from, part.to-1, f.Size))
	}
	c.Response().WriteHeader(status)
}

func quoted(etag string) string { return `"` + etag + `"` }

// disposition returns how a file is to be saved: under the last part of its name. Programs that do not
// know filename* get a name of harmless ASCII characters.
func disposition(name string) string {
	name = path.Base(name)
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"%\`, r) {
			return '_'
		}
		return r
	}, name)
	return `attachment; filename="` + plain + `"; filename*=UTF-8''` + percent(name)
}

// harmless returns the type under which to send a file. Clients expect the type of the file. Browsers
// get only those that they never run or draw, whatever the file contains: no page, picture, style
// or script comes from here.
func harmless(declared string) string {
	media, parameters, err := mime.ParseMediaType(declared)
	if err != nil || media != "text/plain" && media != "text/csv" {
		return echo.MIMEOctetStream
	}
	if strings.EqualFold(parameters["charset"], "utf-8") {
		return media + "; charset=utf-8"
	}
	return media
}

// percent escapes everything in a text that RFC 5987 may want escaped.
func percent(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
