package docker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"fermata/engine/sandbox"
)

const (
	// causeTimeout bounds the search for the cause of a stream's end.
	causeTimeout = 10 * time.Second
	// lateEvents is how long events that tell why a container was killed may come after its end.
	lateEvents = 500 * time.Millisecond
	// exitKilled is the exit code of a container whose first process was killed by SIGKILL.
	exitKilled = "137"
	// maxLine bounds what is kept of a line that a container writes to stderr, in bytes.
	maxLine = 4096
)

// attach opens a stream. The client library does not abort this call when ctx ends. attach
// then returns at once, and the call ends later, when the daemon answers or goes away.
func (p *Provider) attach(ctx context.Context, ref string) (*stream, error) {
	type answer struct {
		types.HijackedResponse
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		response, err := p.client.ContainerAttach(ctx, ref, container.AttachOptions{
			Stream: true, Stdin: true, Stdout: true, Stderr: true,
		})
		answers <- answer{response, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		return &stream{
			Conn: a.Conn,
			demux: demux{
				in:     a.Reader,
				stderr: lines{log: p.o.Log.With("container", ref)},
			},
			cause: func() error { return p.cause(ref) },
		}, nil
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.err == nil {
				a.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// cause returns sandbox.ErrOutOfMemory if a container has ended for lack of memory, and nil
// otherwise. Docker closes the streams of a container before it has recorded how the
// container ended, so cause waits for that. Then Docker removes the container: if it is
// gone already, the events that Docker remembers still tell.
func (p *Provider) cause(ref string) error {
	ctx, cancel := context.WithTimeout(context.Background(), causeTimeout)
	defer cancel()
	ended, failed := p.client.ContainerWait(ctx, ref, container.WaitConditionNotRunning)
	select {
	case <-ended:
	case <-failed: //nolint:errcheck // the inspection that follows tells whether the container is gone
	}
	found, err := p.client.ContainerInspect(ctx, ref)
	if err == nil && found.State.OOMKilled || p.killedForMemory(ctx, ref) {
		return sandbox.ErrOutOfMemory
	}
	return nil
}

// killedForMemory looks through the events of a container that has ended. The event that it was
// out of memory may come after that of its end, or never: containerd forgets it if the
// container's cgroup is removed first. So a container whose first process was killed by SIGKILL
// counts as well, unless Docker was asked to kill it: a program cannot kill that process, and
// the kernel does so for lack of memory only.
func (p *Provider) killedForMemory(ctx context.Context, ref string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, failed := p.client.Events(ctx, events.ListOptions{
		Since: "1", // those that Docker remembers come first, in their order
		Filters: filters.NewArgs(
			filters.Arg("container", ref),
			filters.Arg("event", string(events.ActionOOM)),
			filters.Arg("event", string(events.ActionKill)),
			filters.Arg("event", string(events.ActionDie)),
		),
	})
	var late <-chan time.Time // once the container has been killed and nothing has told why
	for {
		select {
		case m := <-messages:
			if m.Action == events.ActionOOM {
				return true
			}
			if m.Action == events.ActionKill || m.Actor.Attributes["exitCode"] != exitKilled {
				return false
			}
			late = time.After(lateEvents)
		case <-late:
			return true
		case <-failed: //nolint:errcheck // the time is over, or Docker does not answer: nothing is known
			return false
		}
	}
}

// A stream is the connection to a container's first process: its stdin and stdout.
type stream struct {
	net.Conn
	demux demux
	cause func() error
}

// Read reads what the process writes to its stdout.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.demux.Read(b)
	if err == nil || errors.Is(err, net.ErrClosed) {
		return n, err
	}
	if line := s.demux.stderr.last; line != "" {
		err = fmt.Errorf("%s: %w", line, err)
	}
	return n, errors.Join(s.cause(), err)
}

// demux separates stdout and stderr in an attached stream. The stream consists of chunks,
// each with a header: the number of its stream, three unused bytes, and its length.
type demux struct {
	in     io.Reader
	stderr lines
	// left is how many bytes of the current chunk of stdout have not been read.
	left uint32
}

const (
	chunkHeader = 8
	chunkStdout = 1
	chunkStderr = 2
)

func (d *demux) Read(b []byte) (int, error) {
	for d.left == 0 {
		if err := d.next(); err != nil {
			return 0, err
		}
	}
	n, err := d.in.Read(b[:min(len(b), int(d.left))])
	d.left -= uint32(n)
	return n, err
}

// next reads up to the content of the next chunk of stdout.
func (d *demux) next() error {
	var header [chunkHeader]byte
	if _, err := io.ReadFull(d.in, header[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(header[4:])
	switch header[0] {
	case chunkStdout:
		d.left = length
		return nil
	case chunkStderr:
		_, err := io.CopyN(&d.stderr, d.in, int64(length))
		return err
	default:
		return fmt.Errorf("chunk of unknown stream %d in an attached stream", header[0])
	}
}

// lines logs the lines that are written to it and keeps the last one.
type lines struct {
	log     *slog.Logger
	partial []byte
	last    string
}

// Write takes the next bytes of a container's stderr.
func (l *lines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			// A container that never ends its line must not fill our memory.
			l.partial = l.partial[max(0, len(l.partial)-maxLine):]
			return len(p), nil
		}
		l.last, l.partial = string(line[:min(len(line), maxLine)]), rest
		l.log.Warn("sandbox container wrote to stderr", "line", l.last)
	}
}
