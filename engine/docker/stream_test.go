package docker

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"fermata/engine/sandbox"
)

func chunk(kind byte, text string) string {
	header := binary.BigEndian.AppendUint32([]byte{kind, 0, 0, 0}, uint32(len(text)))
	return string(header) + text
}

func TestDemux(t *testing.T) {
	for _, tt := range []struct {
		name, in   string
		want, last string
		err        error
	}{
		{"nothing", "", "", "", nil},
		{"stdout", chunk(1, "ab") + chunk(1, "") + chunk(1, "c"), "abc", "", nil},
		{"both", chunk(1, "a") + chunk(2, "oh\nno\n") + chunk(1, "b"), "ab", "no", nil},
		{"a line in two", chunk(2, "o") + chunk(2, "h\n"), "", "oh", nil},
		{"a line without an end", chunk(2, strings.Repeat("x", 100_000)), "", "", nil},
		{"cut in a header", chunk(1, "a")[:5], "", "", io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := demux{in: iotest.OneByteReader(strings.NewReader(tt.in)), stderr: lines{log: slog.New(slog.DiscardHandler)}}
			got, err := io.ReadAll(&d)
			if string(got) != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("read %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
			if d.stderr.last != tt.last {
				t.Errorf("last line %q, want %q", d.stderr.last, tt.last)
			}
			if len(d.stderr.partial) > maxLine {
				t.Errorf("%d bytes are kept of a line, want at most %d", len(d.stderr.partial), maxLine)
			}
		})
	}
}

func TestDemuxRefuses(t *testing.T) {
	d := demux{in: strings.NewReader(chunk(7, "a")), stderr: lines{log: slog.New(slog.DiscardHandler)}}
	if got, err := io.ReadAll(&d); err == nil {
		t.Errorf("read %q of a chunk of kind 7, want an error", got)
	}
}

func TestContainerIsClosed(t *testing.T) {
	config, host, err := Options{Image: "i", Limits: sandbox.Limits{Memory: 1 << 20, CPUs: 1.5, PIDs: 3}}.container(false, false)
	if err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]bool{
		"no network":          host.NetworkMode == "none",
		"no capability":       slices.Equal(host.CapDrop, []string{"ALL"}) && len(host.CapAdd) == 0,
		"not privileged":      !host.Privileged,
		"read-only root":      host.ReadonlyRootfs,
		"nothing of the host": len(host.Binds)+len(host.Mounts)+len(host.VolumesFrom)+len(host.Devices) == 0,
		"no swap":             host.Memory == 1<<20 && host.MemorySwap == host.Memory,
		"processors":          host.NanoCPUs == 1_500_000_000,
		"processes":           *host.PidsLimit == 4,
		"no log":              host.LogConfig.Type == "none",
		"not root":            config.User == "1000:1000",
		"no terminal":         !config.Tty,
	} {
		if !ok {
			t.Errorf("the container is not as it should be: %s", what)
		}
	}
}
