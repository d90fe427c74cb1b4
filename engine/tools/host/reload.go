package host

import (
	"context"
	"errors"
	"os"
	"time"

	"fermata/engine/tools/config"
)

const (
	// look is the interval at which the host checks whether the toolsets file has changed.
	look = time.Second
	// closeTimeout bounds how long former toolsets may take to close.
	closeTimeout = 10 * time.Second
)

// watch reads the file again when it changes and when Reread receives a value, until ctx ends. stamp is the
// stamp of the last reading.
func (h *generations) watch(ctx context.Context, stamp config.Stamp) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.o.Reread:
		case <-ticker.C:
			if stamp.Unchanged() {
				continue
			}
		}
		stamp = h.reload(ctx)
	}
}

// reload reads the file and makes a new generation of it. If there is a mistake in the file, the present
// generation stays. It returns the stamp of what it has read.
func (h *generations) reload(ctx context.Context) config.Stamp {
	file, stamp, err := config.ReadStamped(h.o.Path, os.LookupEnv)
	var next *generation
	if err == nil {
		now, release := h.now()
		file.Adopt(now.file)
		release()
		next, err = h.make(ctx, file)
	}
	if err != nil {
		for _, problem := range problems(err) {
			h.o.Log.Error("the toolsets file cannot be used, and the former toolsets stay", "err", problem)
		}
		return stamp
	}
	h.change(next)
	h.o.Log.Info("the toolsets file was read again", "toolsets", len(file.Toolsets))
	return stamp
}

// problems returns the errors that an error joins, or the error itself.
func problems(err error) []error {
	if mistakes := config.Mistakes(err); len(mistakes) > 0 {
		list := make([]error, len(mistakes))
		for i, m := range mistakes {
			list[i] = m
		}
		return list
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
