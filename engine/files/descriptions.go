package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// descriptions stores the descriptions of files: a File as JSON.
type descriptions struct {
	bucket *bucket
	life   time.Duration
}

// get returns the description of one file, or ErrNotFound.
func (d descriptions) get(ctx context.Context, owner Owner, session, id string) (File, error) {
	content, written, err := d.bucket.readSmall(ctx, descriptionKey(owner, session, id))
	if err != nil {
		return File{}, err
	}
	if time.Since(written) >= d.life {
		return File{}, ErrNotFound
	}
	var f File
	if err := json.Unmarshal(content, &f); err != nil {
		return File{}, fmt.Errorf("read the description of file %s: %w", id, err)
	}
	f.ETag, f.Owner = etag(f.SHA256), owner
	return f, nil
}

func etag(hash string) string { return hash[:min(len(hash), 32)] }

// put stores the description of a file, and so makes the file exist.
func (d descriptions) put(ctx context.Context, f File) error {
	encoded, err := json.Marshal(f)
	if err == nil {
		err = d.bucket.put(ctx, descriptionKey(f.Owner, f.Session, f.ID), encoded, false)
	}
	if err != nil {
		return fmt.Errorf("write the description of file %s: %w", f.ID, err)
	}
	return nil
}

// list returns the descriptions of all files that the owner has in a session, in no order.
func (d descriptions) list(ctx context.Context, owner Owner, session string) ([]File, error) {
	var ids []string
	err := d.bucket.walk(ctx, descriptionKey(owner, session, ""), func(o object) {
		if _, id, ok := idsOf(o.key); ok && time.Since(o.written) < d.life {
			ids = append(ids, id)
		}
	})
	if err != nil {
		return nil, err
	}
	all := make([]File, len(ids))
	errs := inParallel(len(ids), func(i int) (err error) {
		all[i], err = d.get(ctx, owner, session, ids[i])
		return err
	})
	found := all[:0]
	for i, err := range errs {
		switch {
		case err == nil:
			found = append(found, all[i])
		case !errors.Is(err, ErrNotFound): // It may have been deleted since it was listed.
			return nil, err
		}
	}
	return found, nil
}
