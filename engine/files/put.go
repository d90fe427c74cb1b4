package files

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"path"
	"time"

	"fermata/engine/filename"
)

const (
	// sniffed is how many bytes of a file its media type is guessed from.
	sniffed = 512
	// maxType is the length of the longest media type that is accepted, in bytes.
	maxType = 128
)

// Put stores a file under a new id. It never replaces a file, not even one of the same name.
// If the session does not exist, Put creates it and makes it n.Owner's. Nothing is stored if
// reading n.Content fails, or if ctx ends; Put then returns the error of n.Content, wrapped.
// The other errors are ErrForeign, ErrTooLarge, ErrQuota, ErrFull and *filename.NameError.
func (s *Store) Put(ctx context.Context, n New) (File, error) {
	if !ValidID(n.Session) {
		return File{}, fmt.Errorf("files: malformed session id %q", n.Session)
	}
	if err := filename.Check(n.Name); err != nil {
		return File{}, err
	}
	// Another owner's session is refused before the upload. A session without an owner gets
	// one only after it, because the upload may fail.
	if err := s.owners.missing(ctx, n.Owner, n.Session); !errors.Is(err, ErrNotFound) {
		return File{}, err
	}
	room, err := s.quotas.reserve(ctx, n.Owner, n.Session)
	if err != nil {
		return File{}, err
	}
	stored := false
	defer func() { room.end(stored) }()
	f, err := s.receive(ctx, n, room)
	stored = err == nil
	return f, err
}

// receive stores contents, owner and description of a file, in this order.
func (s *Store) receive(ctx context.Context, n New, room *reservation) (File, error) {
	f := File{Session: n.Session, ID: NewID(), Name: n.Name, ReadOnly: n.ReadOnly, Owner: n.Owner}
	content := &meteredReader{from: n.Content, hash: sha256.New(), limit: s.options.MaxFile, room: room}
	buffered := bufio.NewReaderSize(content, sniffed)
	// An error will come again when the rest is read.
	head, _ := buffered.Peek(sniffed)
	f.Type = mediaType(n.Type, n.Name, head)

	key := contentKey(f.Owner, f.Session, f.ID)
	err := s.bucket.write(ctx, key, buffered, func() error { return s.owners.take(ctx, f.Session, f.Owner) })
	if content.err != nil {
		return File{}, content.err
	}
	if err != nil {
		return File{}, fmt.Errorf("write the contents of a file: %w", err)
	}
	f.Size, f.SHA256, f.Modified = content.size, hex.EncodeToString(content.hash.Sum(nil)), time.Now().UTC()
	f.ETag = etag(f.SHA256)
	if err := s.descriptions.put(ctx, f); err != nil {
		s.bucket.discard(context.WithoutCancel(ctx), key)
		return File{}, err
	}
	return f, nil
}

// A meteredReader reads the contents of a file. It hashes and counts them, and fails when they
// exceed a limit.
type meteredReader struct {
	from  io.Reader
	hash  hash.Hash
	size  int64
	limit int64
	room  *reservation
	// err is the error that ended the reading before the end of the file.
	err error
}

func (r *meteredReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	r.size += int64(n)
	r.hash.Write(p[:n])
	switch {
	case r.size > r.limit:
		r.err = ErrTooLarge
	case !r.room.grow(r.size):
		r.err = ErrQuota
	case err != nil && !errors.Is(err, io.EOF):
		r.err = fmt.Errorf("read content: %w", err)
	default:
		return n, err
	}
	return 0, r.err
}

// mediaType returns the media type of a file: the one that the client has declared, or else
// that of the name's extension, or else a guess from the first bytes.
func mediaType(declared, name string, head []byte) string {
	if kind, parameters, err := mime.ParseMediaType(declared); err == nil && len(declared) <= maxType {
		if formatted := mime.FormatMediaType(kind, parameters); formatted != "" && kind != "application/octet-stream" {
			return formatted
		}
	}
	if byName := mime.TypeByExtension(path.Ext(name)); byName != "" {
		return byName
	}
	return http.DetectContentType(head)
}
