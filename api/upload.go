package api

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

	"fermata/engine/files"
)

const (
	// maxUploads is the number of files in one request.
	maxUploads = 200
	// maxFields and maxField bound what comes beside the files.
	maxFields = 32
	maxField  = 1 << 10
	// maxStray is the size of a field that is not ours.
	maxStray = 64 << 10
	// maxPartHeader bounds what comes before the contents of a file or field; the form's
	// reader would take 10 MiB into memory. Some of what follows is read along with it.
	maxPartHeader = 64 << 10
	// drained is how much is read of a file that was refused, so that those after it,
	// and the answer, have their turn.
	drained = 64 << 20
	// discardTimeout bounds the removal of what a failed upload has stored.
	discardTimeout = 10 * time.Second
)

// upload stores the files of a form, all or none.
func (s *server) upload(c echo.Context) error {
	u, err := s.newUpload(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	err = u.readAll(ctx)
	if err == nil && len(u.files) == 0 {
		err = errNoFile
	}
	if err != nil {
		u.discard(ctx)
		return err
	}
	return write(c, http.StatusOK, encodeUpload(u.session, u.files))
}

// uploadBatch stores those files of a form that it can, and says which.
func (s *server) uploadBatch(c echo.Context) error {
	u, err := s.newUpload(c)
	if err != nil {
		return err
	}
	u.partly = true
	ctx := c.Request().Context()
	err = u.readAll(ctx)
	limitReached := errors.Is(err, errTooManyFiles)
	if limitReached || errors.Is(err, errLongRest) {
		err = nil // What came before is answered for.
	}
	if err == nil && len(u.files) == 0 {
		err = errNoFiles
	}
	if err != nil {
		u.discard(ctx)
		return err
	}
	failed := 0
	for _, f := range u.files {
		if f.err != nil {
			failed++
		}
	}
	status, message := http.StatusOK, "success"
	switch failed {
	case 0:
	case len(u.files):
		status, message = http.StatusBadRequest, "error"
	default:
		message = "partial_success"
	}
	return write(c, status, encodeBatch(message, u.session, u.files, failed, limitReached))
}

// An upload is a form being read, part by part: fields that say whose the files are,
// then files.
type upload struct {
	store   *files.Store
	form    *multipart.Reader
	body    *movingReader
	who     Principal
	session string
	// partly says that what is wrong with a file is no reason to refuse the others.
	partly   bool
	scope    scope
	readOnly bool
	owner    files.Owner
	files    []uploaded
}

func (s *server) newUpload(c echo.Context) (*upload, error) {
	r := c.Request()
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if mediaType != echo.MIMEMultipartForm {
		return nil, errNotMultipart
	}
	// A store may gather the parts of a file in memory, however slowly they come.
	held := s.bodies.lease(principal(c).ID)
	c.Set(leaseKey, held)
	if err := held.take(s.options.UploadMemory); err != nil {
		return nil, err
	}
	body := newMovingReader(r.Body, http.NewResponseController(c.Response()))
	r.Body = body
	form, err := r.MultipartReader()
	if err != nil {
		return nil, errNotMultipart
	}
	return &upload{store: s.options.Files, form: form, body: body, who: principal(c), session: files.NewID()}, nil
}

// readAll reads the form and stores its files.
func (u *upload) readAll(ctx context.Context) error {
	for fields := 0; ; {
		// All of the part before has been read.
		u.body.head = maxPartHeader
		// Not NextPart: that decodes contents that say they are quoted-printable.
		part, err := u.form.NextRawPart()
		u.body.head = -1
		// A wrapped one means that the last boundary is missing.
		if err == io.EOF {
			// What may follow is nothing, but the connection is good for the next request
			// only when that has been seen.
			_, _ = io.CopyN(io.Discard, u.body, maxField)
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
			if err := u.field(disposition["name"], part); err != nil {
				return err
			}
			continue
		}
		if len(u.files) == maxUploads {
			return errTooManyFiles
		}
		if err := u.file(ctx, name, part); err != nil {
			return err
		}
	}
}

// field takes a field of the form. Those that are not ours are ignored, if they are small.
func (u *upload) field(name string, part io.Reader) error {
	value, err := io.ReadAll(io.LimitReader(part, maxField+1))
	if err != nil {
		return bodyError(err)
	}
	var to *string
	switch name {
	case "kind":
		to = &u.scope.kind
	case "id":
		to = &u.scope.id
	case "version":
		to = &u.scope.version
	case "read_only":
		u.readOnly = string(value) == "true"
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
		return fieldTooLong(name)
	case len(u.files) > 0:
		// It would be too late for the files before it.
		return fieldAfterFile(name)
	}
	*to = string(value)
	return nil
}

// file stores a file of the form.
func (u *upload) file(ctx context.Context, name string, part *multipart.Part) error {
	if len(u.files) == 0 {
		owner, err := u.scope.owner(u.who)
		if err != nil {
			return err
		}
		u.owner = owner
	}
	f, err := u.store.Put(ctx, files.New{
		Owner: u.owner, Session: u.session, Name: name, ReadOnly: u.readOnly,
		Type: part.Header.Get(echo.HeaderContentType), Content: partReader{part},
	})
	if err == nil {
		u.files = append(u.files, uploaded{name: name, id: f.ID})
		return nil
	}
	// A form that has broken off has no next file.
	if cut, ok := errors.AsType[*failure](err); ok {
		return cut
	}
	answer := answerTo(ctx, err)
	if answer.status >= http.StatusInternalServerError {
		return err
	}
	rest, drainErr := io.CopyN(io.Discard, partReader{part}, drained)
	if !u.partly {
		return err
	}
	u.files = append(u.files, uploaded{name: name, err: answer})
	switch {
	case rest == drained:
		return errLongRest
	case errors.Is(drainErr, io.EOF):
		return nil
	}
	return drainErr
}

// discard removes the files that were stored.
func (u *upload) discard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for _, f := range u.files {
		if f.err == nil {
			// What stays is swept with the rest when its life is over.
			_ = u.store.Delete(ctx, u.owner, u.session, f.id)
		}
	}
}

// A partReader makes failures of the errors of a part.
type partReader struct{ from io.Reader }

func (r partReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = bodyError(err)
	}
	return n, err
}

// bodyError returns why a form could not be read.
func bodyError(err error) *failure {
	if refused, ok := errors.AsType[*failure](err); ok {
		return refused
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errUploadTimeout
	}
	return errBodyIncomplete
}
