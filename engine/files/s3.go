package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// partSize bounds how much of a file an upload holds in memory. Object stores accept no smaller
	// parts.
	partSize = 5 << 20
	// noSuchKey is the code of the error about an object that does not exist.
	noSuchKey = "NoSuchKey"
	// octets is the type that objects have. Nobody reads it: the types of files are in their
	// descriptions.
	octets = "application/octet-stream"
)

// s3Objects keep objects in a bucket of an object store.
type s3Objects struct {
	client minio.Core
	name   string
	// anonymous is true if no credentials are wanted.
	anonymous bool
	transport *http.Transport
}

func (s *s3Objects) check(ctx context.Context) error {
	there, err := s.client.BucketExists(ctx, s.name)
	if err == nil && !there {
		err = fmt.Errorf("there is no bucket %q at %s", s.name, s.client.EndpointURL())
	}
	if err == nil || s.anonymous || ctx.Err() != nil {
		return err
	}
	if found, credentialsErr := s.client.GetCreds(); credentialsErr == nil && found.SignerType.IsAnonymous() {
		return fmt.Errorf("no credentials were found in the environment, in the shared files of AWS or by the machine's role: %w", err)
	}
	return err
}

func (s *s3Objects) open(ctx context.Context, key string, part section) (io.ReadCloser, time.Time, error) {
	var options minio.GetObjectOptions
	if part != whole {
		if err := options.SetRange(part.from, part.to-1); err != nil {
			return nil, time.Time{}, fmt.Errorf("read %s: %w", key, err)
		}
	}
	ctx, stall := newStallTimer(ctx, stallTimeout)
	content, info, _, err := s.client.GetObject(ctx, s.name, key, options)
	stall.end()
	if err == nil {
		return stallReader{ctx, content, stall}, info.LastModified, nil
	}
	defer stall.stop()
	if minio.ToErrorResponse(err).Code == noSuchKey {
		return nil, time.Time{}, ErrNotFound
	}
	return nil, time.Time{}, fmt.Errorf("read %s: %w", key, causeOf(ctx, err))
}

func (s *s3Objects) put(ctx context.Context, key string, content []byte, onlyNew bool) error {
	options := minio.PutObjectOptions{ContentType: octets}
	if onlyNew {
		options.SetMatchETagExcept("*")
	}
	return within(ctx, requestTimeout, func(ctx context.Context) error {
		_, err := s.client.PutObject(ctx, s.name, key, bytes.NewReader(content), int64(len(content)), "", hashOf(content), options)
		return err
	})
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// within makes a request that may take so long.
func within(ctx context.Context, limit time.Duration, request func(context.Context) error) error {
	ctx, cancel := withDeadline(ctx, limit)
	defer cancel()
	return causeOf(ctx, request(ctx))
}

// write sends a file that is smaller than a part in one request, and any other one in parts.
func (s *s3Objects) write(ctx context.Context, key string, from io.Reader, commit func() error) error {
	var part bytes.Buffer
	more, err := nextPart(&part, from)
	if err != nil {
		return err
	}
	if more {
		return s.writeParts(ctx, key, &part, from, commit)
	}
	if err := commit(); err != nil {
		return err
	}
	return s.put(ctx, key, part.Bytes(), false)
}

// nextPart reads the next part of a file, and reports whether the file may have more.
func nextPart(part *bytes.Buffer, from io.Reader) (more bool, err error) {
	part.Reset()
	_, err = io.CopyN(part, from, partSize)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// writeParts sends a file whose first part has been read.
func (s *s3Objects) writeParts(ctx context.Context, key string, part *bytes.Buffer, from io.Reader, commit func() error) (err error) {
	u := upload{s3Objects: s, key: key}
	if err := u.begin(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.abort(ctx))
		}
	}()
	for more := true; part.Len() > 0; {
		if err := u.send(ctx, part.Bytes()); err != nil {
			return err
		}
		if !more {
			break
		}
		if more, err = nextPart(part, from); err != nil {
			return err
		}
	}
	if err := commit(); err != nil {
		return err
	}
	return u.complete(ctx)
}

// An upload writes an object part by part.
type upload struct {
	*s3Objects

	key, id string
	parts   []minio.CompletePart
}

func (u *upload) begin(ctx context.Context) error {
	return within(ctx, stallTimeout, func(ctx context.Context) (err error) {
		u.id, err = u.client.NewMultipartUpload(ctx, u.name, u.key, minio.PutObjectOptions{ContentType: octets})
		return err
	})
}

func (u *upload) send(ctx context.Context, part []byte) error {
	return within(ctx, stallTimeout, func(ctx context.Context) error {
		number := len(u.parts) + 1
		sent, err := u.client.PutObjectPart(ctx, u.name, u.key, u.id, number, bytes.NewReader(part), int64(len(part)),
			minio.PutObjectPartOptions{Sha256Hex: hashOf(part)})
		u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: sent.ETag})
		return err
	})
}

func (u *upload) complete(ctx context.Context) error {
	return within(ctx, stallTimeout, func(ctx context.Context) error {
		_, err := u.client.CompleteMultipartUpload(ctx, u.name, u.key, u.id, u.parts, minio.PutObjectOptions{ContentType: octets})
		return err
	})
}

// abort removes the parts, even if ctx has ended.
func (u *upload) abort(ctx context.Context) error {
	return within(context.WithoutCancel(ctx), requestTimeout, func(ctx context.Context) error {
		return u.client.AbortMultipartUpload(ctx, u.name, u.key, u.id)
	})
}

func (s *s3Objects) walk(ctx context.Context, prefix string, visit func(object)) error {
	ctx, stall := newStallTimer(ctx, requestTimeout)
	defer stall.stop()
	for found := range s.client.ListObjectsIter(ctx, s.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		stall.end()
		if found.Err != nil {
			return fmt.Errorf("list %s: %w", prefix, causeOf(ctx, found.Err))
		}
		visit(object{found.Key, found.Size, found.LastModified})
		stall.begin()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("list %s: %w", prefix, context.Cause(ctx))
	}
	return nil
}

func (s *s3Objects) remove(ctx context.Context, key string) error {
	err := within(ctx, requestTimeout, func(ctx context.Context) error {
		return s.client.RemoveObject(ctx, s.name, key, minio.RemoveObjectOptions{})
	})
	if err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

func (s *s3Objects) close() error {
	s.transport.CloseIdleConnections()
	return nil
}
