//go:build linux

package process

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fermata/engine/enginetest"
	"fermata/engine/sandbox"
)

func TestConformance(t *testing.T) {
	for _, kind := range sandbox.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T) sandbox.Provider {
				p, err := New(t.Context(), Options{
					Dir:    filepath.Join(t.TempDir(), "sandboxes"),
					Server: enginetest.Server,
					Python: cmp.Or(os.Getenv("PYTHON"), "python3"),
					Limits: sandbox.Limits{Memory: 512 << 20, CPUs: 2, PIDs: 32, Output: 1 << 20, Disk: 32 << 20},
					Orphan: time.Minute,
					Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
				})
				if err != nil {
					t.Fatal(err)
				}
				return oneKind{p, kind}
			})
		})
	}
}

// oneKind makes sandboxes of one kind, whichever it is asked for.
type oneKind struct {
	*Provider
	kind sandbox.Kind
}

func (p oneKind) Create(ctx context.Context, _ sandbox.Kind) (string, error) {
	return p.Provider.Create(ctx, p.kind)
}
