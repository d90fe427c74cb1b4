package process

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fermata/engine/enginetest"
	"fermata/engine/sandbox"
)

func TestConformance(t *testing.T) {
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
		return p
	})
}
