package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"path"
	"time"

	"gocloud.dev/blob"
)

const (
	// partSize and partsAtOnce bound what a transfer to an object store holds in
	// memory. It is the least part that they take.
	partSize    = 5 << 20
	partsAtOnce = 2
	// sniffed is how much of a file its type is guessed from.
	sniffed = 512
	// maxType is the longest media type that is believed.
	maxType = 128
)

// A description is a File as it is stored. Its names may not change.
type description struct {
	Session  string `json:"session"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Type     string `json:"type"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// Made is when. Some object stores know only seconds, in which a program can leave
	// a file and the next one change it.
	Made time.Time `json:"made"`
}

func (d description) file() File {
	return File{
		Session: d.Session, ID: d.ID, Name: d.Name, Size: d.Size, SHA256: d.SHA256, Type: d.Type, ReadOnly: d.ReadOnly,
		ETag:     d.SHA256[:min(len(d.SHA256), 32)],
		Modified: d.Made,
	}
}

// receive writes contents, claim and description of a file, or nothing that stays.
func (s *Store) receive(ctx context.Context, n New, t *transfer) (File, error) {
	d := description{Session: n.Session, ID: NewID(), Name: n.Name, ReadOnly: n.ReadOnly}
	content := &counted{from: n.Content, hash: sha256.New(), limit: s.options.MaxFile, transfer: t}
	buffered := bufio.NewReaderSize(content, sniffed)
	// Its error is that of the copying below.
	head, _ := buffered.Peek(sniffed)
	d.Type = mediaType(n.Type, n.Name, head)

	key := contentKey(t.owner, d.Session, d.ID)
	err := s.write(ctx, key, buffered, func() error { return s.makeClaim(ctx, d.Session, t.owner.key()) })
	if content.err != nil {
		return File{}, content.err
	}
	if err != nil {
		return File{}, fmt.Errorf("write file: %w", err)
	}
	d.Size, d.SHA256, d.Made = content.size, hex.EncodeToString(content.hash.Sum(nil)), time.Now().UTC()
	encoded, err := json.Marshal(d)
	if err == nil {
		err = s.writeSmall(ctx, fileKey(t.owner.key(), d.Session, d.ID), encoded, false)
	}
	if err != nil {
		s.discard(ctx, key)
		return File{}, fmt.Errorf("write description: %w", err)
	}
	f := d.file()
	f.Owner = n.Owner
	return f, nil
}

// write copies an object into the bucket. It is there only if all of it could be read
// and commit, which is called then, agrees.
func (s *Store) write(ctx context.Context, key string, from io.Reader, commit func() error) error {
	// Closing the writer would keep what was written so far.
	writing, patience := newPatience(ctx)
	defer patience.end()
	bare, err := s.bucket.NewWriter(writing, key, &blob.WriterOptions{
		BufferSize: partSize, MaxConcurrency: partsAtOnce, ContentType: "application/octet-stream",
	})
	if err != nil {
		return err
	}
	w := patientWriter{bare, patience}
	_, err = io.Copy(w, from)
	if err == nil {
		err = commit()
	}
	if err != nil {
		patience.end()
		_ = w.Close()
		return err
	}
	return w.Close()
}

// writeSmall writes an object that is in memory, if asked so only where there is none.
func (s *Store) writeSmall(ctx context.Context, key string, content []byte, ifNotExist bool) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return s.bucket.Upload(ctx, key, bytes.NewReader(content), &blob.WriterOptions{
		ContentType: "application/octet-stream", IfNotExist: ifNotExist,
	})
}

// A counted reader measures what is read, and fails where there is too much of it.
type counted struct {
	from     io.Reader
	hash     hash.Hash
	size     int64
	limit    int64
	transfer *transfer
	// err is the error that ended it, nil for the end of the file.
	err error
}

func (c *counted) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.from.Read(p)
	c.size += int64(n)
	c.hash.Write(p[:n])
	switch {
	case c.size > c.limit:
		c.err = ErrTooLarge
	case !c.transfer.grow(c.size):
		c.err = ErrQuota
	case err != nil && !errors.Is(err, io.EOF):
		c.err = fmt.Errorf("read content: %w", err)
	default:
		return n, err
	}
	return 0, c.err
}

// mediaType returns the type that a file is given: what the client says, or else what
// the name says, or else what the contents look like.
func mediaType(said, name string, head []byte) string {
	if kind, parameters, err := mime.ParseMediaType(said); err == nil && len(said) <= maxType {
		if formatted := mime.FormatMediaType(kind, parameters); formatted != "" && kind != "application/octet-stream" {
			return formatted
		}
	}
	if byName := mime.TypeByExtension(path.Ext(name)); byName != "" {
		return byName
	}
	return http.DetectContentType(head)
}
