package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// partialSuffix ends the name of the temporary file of an object that is being written. No key ends
// with it.
const partialSuffix = ".tmp"

// A directory keeps each object in a file, whose path below the directory is the key. Its keys are
// those of this package: relative paths without empty, . or .. segments.
type directory struct{ root string }

// openDirectory opens the directory that a URL names, and creates it if it does not exist.
func openDirectory(u *url.URL) (*directory, error) {
	switch {
	case u.Host != "" || !filepath.IsAbs(u.Path):
		return nil, errors.New("the URL of a directory has the form file:///directory")
	case u.RawQuery != "":
		return nil, fmt.Errorf("the URL of a directory takes no parameters, and has %q", u.RawQuery)
	}
	d := &directory{filepath.Clean(u.Path)}
	return d, os.MkdirAll(d.root, 0o700) //nolint:gosec // the operator names it
}

func (d *directory) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

func (d *directory) check(context.Context) error {
	_, err := os.ReadDir(d.root)
	return err
}

func (d *directory) open(_ context.Context, key string, s section) (io.ReadCloser, time.Time, error) {
	f, err := os.Open(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, ErrNotFound
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, errors.Join(err, f.Close())
	}
	if s == whole {
		return f, info.ModTime(), nil
	}
	return fileSection{io.NewSectionReader(f, s.from, s.to-s.from), f}, info.ModTime(), nil
}

// A fileSection reads a section of a file, and closes the file.
type fileSection struct {
	io.Reader
	io.Closer
}

func (d *directory) put(ctx context.Context, key string, content []byte, onlyNew bool) error {
	return d.write(ctx, key, strings.NewReader(string(content)), func() error {
		if !onlyNew {
			return nil
		}
		// Callers with onlyNew exclude each other (see sessionOwners).
		_, err := os.Lstat(d.path(key))
		if err == nil {
			return fs.ErrExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// write writes a temporary file next to the final one, since it could not be renamed from another
// disk.
func (d *directory) write(ctx context.Context, key string, from io.Reader, commit func() error) error {
	final := d.path(key)
	if err := os.MkdirAll(filepath.Dir(final), 0o700); err != nil {
		return err
	}
	partial := final + "." + strconv.FormatInt(time.Now().UnixNano(), 16) + partialSuffix
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = commit()
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = os.Rename(partial, final)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return nil
}

func (d *directory) walk(ctx context.Context, prefix string, visit func(object)) error {
	// A prefix may end within a name.
	top := d.path(path.Dir(prefix + "*"))
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || !entry.Type().IsRegular() {
			return gone(err)
		}
		relative, err := filepath.Rel(d.root, name)
		key := filepath.ToSlash(relative)
		if err != nil || !strings.HasPrefix(key, prefix) {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return gone(err)
		}
		visit(object{key, info.Size(), info.ModTime()})
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	return nil
}

// gone forgives that a file was removed, or a directory not yet made, while it was looked at.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *directory) remove(_ context.Context, key string) error {
	err := os.Remove(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	return err
}

func (d *directory) close() error { return nil }
