package librechat

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/api/auth"
	"fermata/engine/filename"
	"fermata/engine/files"
)

const (
	// drained is how much of a refused file is read and dropped, so that the server reaches the
	// files behind it and the client reads the answer.
	drained = 64 << 20
	// discardTimeout bounds the removal of the files of a failed upload.
	discardTimeout = 10 * time.Second
)

// uploads are the handlers of requests with new files.
type uploads struct {
	store  uploadStore
	bodies *api.Bodies
	// memory is what the store holds in memory of an upload in progress, in bytes.
	memory int64
}

// upload stores the files of a form, either all or none.
func (h *uploads) upload(c echo.Context) error {
	f, err := h.open(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	err = f.readAll(ctx)
	if err == nil && len(f.done) == 0 {
		err = errNoFile
	}
	if err != nil {
		f.discard(ctx)
		return err
	}
	return api.Answer(c, http.StatusOK, uploadAnswer{"success", f.session, f.session, f.done})
}

// uploadBatch stores those files of a form that it can store, and answers for each file.
func (h *uploads) uploadBatch(c echo.Context) error {
	f, err := h.open(c)
	if err != nil {
		return err
	}
	f.partly = true
	ctx := c.Request().Context()
	err = f.readAll(ctx)
	limitReached := errors.Is(err, errTooManyFiles)
	if limitReached || errors.Is(err, errLongRest) {
		err = nil // The answer tells what became of the files before the error.
	}
	if err == nil && len(f.done) == 0 {
		err = errNoFiles
	}
	if err != nil {
		f.discard(ctx)
		return err
	}
	answer := batchAnswer{uploadAnswer: uploadAnswer{"success", f.session, f.session, f.done}}
	for i := range f.done {
		if f.done[i].Status = "success"; f.done[i].Error != "" {
			f.done[i].Status = "error"
			answer.Failed++
		}
	}
	answer.Succeeded = len(f.done) - answer.Failed
	if limitReached {
		answer.LimitReached, answer.MaxFiles = true, maxUploads
	}
	status := http.StatusOK
	switch answer.Failed {
	case 0:
	case len(f.done):
		status, answer.Message = http.StatusBadRequest, "error"
	default:
		answer.Message = "partial_success"
	}
	return api.Answer(c, status, answer)
}

// A form is an upload that is being read, part by part: first fields that name the owner of the
// files, then the files.
type form struct {
	store   uploadStore
	parts   *multipart.Reader
	body    *headReader
	who     auth.Principal
	session string
	// into is the session that the client has named for the files, if any.
	into string
	// partly is true if a file with a mistake is no reason to refuse the others.
	partly   bool
	scope    scope
	readOnly bool
	owner    files.Owner
	done     []uploaded
}

// open begins to read the form of a request.
func (h *uploads) open(c echo.Context) (*form, error) {
	r := c.Request()
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if mediaType != echo.MIMEMultipartForm {
		return nil, errNotMultipart
	}
	// A store may collect the parts of a file in memory, however slowly they arrive.
	if err := h.bodies.Hold(c, h.memory); err != nil {
		return nil, err
	}
	body := &headReader{api.PacedBody(c), -1}
	r.Body = body
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, errNotMultipart
	}
	return &form{store: h.store, parts: parts, body: body, who: api.PrincipalOf(c), session: files.NewID(), into: c.QueryParam("session_id")}, nil
}

// readAll reads the form and stores its files.
func (f *form) readAll(ctx context.Context) error {
	for fields := 0; ; {
		// Every part is read to its end before the next one.
		f.body.room = maxPartHeader
		// NextPart would decode contents that are marked as quoted-printable.
		part, err := f.parts.NextRawPart()
		f.body.room = -1
		// If the error only wraps io.EOF, the last boundary is missing.
		if err == io.EOF {
			// The connection is good for another request only when the end of the body has
			// been seen.
			_, _ = io.CopyN(io.Discard, f.body, maxField)
			return nil
		}
		if err != nil {
			return bodyError(err)
		}
		_, disposition, _ := mime.ParseMediaType(part.Header.Get(echo.HeaderContentDisposition))
		name, isFile := disposition["filename"]
		if !isFile {
			if fields++; fields > maxFields {
				return errTooManyFields
			}
			if err := f.field(disposition["name"], part); err != nil {
				return err
			}
			continue
		}
		if len(f.done) == maxUploads {
			return errTooManyFiles
		}
		if err := f.file(ctx, name, part); err != nil {
			return err
		}
	}
}

// field handles a field of the form. Small fields without a meaning are ignored.
func (f *form) field(name string, part io.Reader) error {
	value, err := io.ReadAll(io.LimitReader(part, maxField+1))
	if err != nil {
		return bodyError(err)
	}
	var to *string
	switch name {
	case "kind":
		to = &f.scope.kind
	case "id":
		to = &f.scope.id
	case "version":
		to = &f.scope.version
	case "session_id":
		to = &f.into
	case "read_only":
		f.readOnly = string(value) == "true"
		to = new(string)
	default:
		if rest, err := io.CopyN(io.Discard, part, maxStray); rest == maxStray {
			return errStrayField
		} else if !errors.Is(err, io.EOF) {
			return bodyError(err)
		}
		return nil
	}
	switch {
	case len(value) > maxField:
		return api.BadRequestf("%s must have at most %d bytes", name, maxField)
	case len(f.done) > 0:
		// It would be too late for the files before it.
		return api.BadRequest(name + " must come before the file")
	}
	*to = string(value)
	return nil
}

// place decides whose the files are and in which session they are stored: a new one, or the one that
// the client has named, if that is not another owner's.
func (f *form) place(ctx context.Context) (err error) {
	if f.owner, err = f.scope.owner(f.who); err != nil || f.into == "" {
		return err
	}
	if !files.ValidID(f.into) {
		return errUploadSession
	}
	foreign, err := f.store.Foreign(ctx, f.owner, f.into)
	if err == nil && foreign {
		err = files.ErrForeign
	}
	f.session = f.into
	return err
}

// file stores a file of the form.
func (f *form) file(ctx context.Context, name string, part *multipart.Part) error {
	if len(f.done) == 0 {
		if err := f.place(ctx); err != nil {
			return err
		}
	}
	stored, err := f.store.Put(ctx, files.New{
		Owner: f.owner, Session: f.session, Name: filename.Composed(name), ReadOnly: f.readOnly,
		Type: part.Header.Get(echo.HeaderContentType), Content: partReader{part},
	})
	if err == nil {
		f.done = append(f.done, uploaded{Filename: name, FileID: stored.ID, ID: stored.ID, Name: stored.Name, SessionID: f.session})
		return nil
	}
	// A form that has broken off has no further files.
	if cut, ok := errors.AsType[*api.Error](err); ok {
		return cut
	}
	answer := api.ErrorOf(ctx, err)
	if answer.Status >= http.StatusInternalServerError {
		return err
	}
	rest, drainErr := io.CopyN(io.Discard, partReader{part}, drained)
	if !f.partly {
		return err
	}
	f.done = append(f.done, uploaded{Filename: name, Error: answer.Text})
	switch {
	case rest == drained:
		return errLongRest
	case errors.Is(drainErr, io.EOF):
		return nil
	}
	return drainErr
}

// discard removes the files that were stored.
func (f *form) discard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for _, file := range f.done {
		if file.Error == "" {
			// A file that stays is swept like all others when its life is over.
			_ = f.store.Delete(ctx, f.owner, f.session, file.FileID)
		}
	}
}

// A headReader bounds how much is read until the next file or field begins.
type headReader struct {
	io.ReadCloser
	// room is how many bytes may still come before that, -1 where there is no such limit.
	room int
}

func (r *headReader) Read(p []byte) (int, error) {
	if r.room == 0 {
		return 0, errPartHeader
	}
	if r.room > 0 {
		p = p[:min(len(p), r.room)]
	}
	n, err := r.ReadCloser.Read(p)
	if r.room > 0 {
		r.room -= n
	}
	return n, err
}

// A partReader turns the errors of a part into errors for the client.
type partReader struct{ from io.Reader }

func (r partReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = bodyError(err)
	}
	return n, err
}

// bodyError returns why a form could not be read.
func bodyError(err error) *api.Error {
	if refused, ok := errors.AsType[*api.Error](err); ok {
		return refused
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errUploadTimeout
	}
	return api.ErrBodyIncomplete
}
