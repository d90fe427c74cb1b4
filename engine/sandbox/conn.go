package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"fermata/python"
)

// writeTimeout bounds one write to a sandbox. Its supervisor always reads, so a
// write that takes longer goes to one that is sick.
const writeTimeout = 10 * time.Second

// A sandbox is one attached sandbox: a goroutine reads its frames until the stream
// ends.
type sandbox struct {
	ref    string
	marker []byte
	limits frameLimits
	hello  hello
	stream io.ReadWriteCloser
	// share is that of the execution that it runs, once there is one.
	share atomic.Pointer[share]
	// stopped says that the supervisor was told to stop the program, stops how often.
	stopped bool
	stops   int
	// frames has what the sandbox sends; it is closed when the stream has ended.
	frames chan frame
	// broken is why it has, set before.
	broken error
	// ended is closed with frames, for those who do not listen.
	ended chan struct{}
	// born is when it was attached to.
	born time.Time
	// taken is closed when it does not wait in the pool any more.
	taken chan struct{}
	// quit is closed to end the reader when nobody listens any more.
	quit chan struct{}
}

// hello is the supervisor's answer to an attach frame.
type hello struct {
	Protocol int    `json:"protocol"`
	Python   string `json:"python"`
	// State is ready, running, paused or ended.
	State string `json:"state"`
	// Round is the number of pauses so far.
	Round int `json:"round"`
	// Ran is for how long the program may have run while it had no server, in
	// nanoseconds.
	Ran time.Duration `json:"ran"`
}

// attach opens the stream to a sandbox and waits until it says that it is there.
// The marker is the same each time and random: where all servers share one stream,
// the supervisor finds by it where this one begins, should the one before have died
// while it wrote.
func attach(ctx context.Context, p Provider, ref string, marker []byte, limits frameLimits) (*sandbox, error) {
	stream, err := p.Attach(ctx, ref)
	if err != nil {
		return nil, err
	}
	s := &sandbox{
		ref: ref, marker: marker, limits: limits, stream: stream, born: time.Now(),
		frames: make(chan frame), ended: make(chan struct{}), quit: make(chan struct{}),
	}
	go s.read()
	if err := s.greet(ctx); err != nil {
		s.detach()
		return nil, fmt.Errorf("attach to sandbox %s: %w", ref, err)
	}
	return s, nil
}

func (s *sandbox) greet(ctx context.Context) error {
	if err := s.send(frameAttach, s.marker); err != nil {
		return err
	}
	select {
	case f, ok := <-s.frames:
		if !ok {
			return fmt.Errorf("%w: %w", ErrGone, s.broken)
		}
		if f.kind != frameHello {
			return fmt.Errorf("frame %q in place of a hello", f.kind)
		}
		if err := json.Unmarshal(f.payload, &s.hello); err != nil {
			return fmt.Errorf("read hello: %w", err)
		}
		if s.hello.Protocol != python.Protocol {
			return fmt.Errorf("the sandbox's runner speaks protocol %d and this server %d: "+
				"make the sandbox image again, from this server's version", s.hello.Protocol, python.Protocol)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read passes on frames until the stream ends or breaks.
func (s *sandbox) read() {
	defer close(s.ended)
	defer close(s.frames)
	r := &frameReader{Reader: bufio.NewReaderSize(s.stream, 1<<14), limits: s.limits, holder: s.share.Load}
	if err := skipPast(r, s.marker); err != nil {
		s.broken = err
		return
	}
	for {
		f, err := r.next()
		if err != nil {
			s.broken = err
			return
		}
		select {
		case s.frames <- f:
		case <-s.quit:
			return
		}
	}
}

// lost is the end of a program whose sandbox has gone, or cannot be spoken to.
func (s *sandbox) lost() ending {
	select {
	case <-s.ended:
		if errors.Is(s.broken, ErrOutOfMemory) {
			return failed(OutOfMemory, "", 0)
		}
	default:
	}
	return failed(SandboxLost, "", 0)
}

// resume hands over the results of the last calls, and lets the program go on.
func (s *sandbox) resume(results [][]byte) error {
	s.stopped = false
	return s.send(frameResults, results...)
}

// stop stops what still runs in a pause.
func (s *sandbox) stop() error {
	s.stopped = true
	s.stops++
	return s.send(frameStop, strconv.AppendInt(nil, int64(s.stops), 10))
}

// still reports whether a frame says that the program has stopped in this pause, rather
// than in one before: as the answer to the latest stop, or by itself after the calls that
// came before the frame.
func (s *sandbox) still(stopped frame) bool {
	return len(stopped.payload) == 0 || s.stopped && string(stopped.payload) == strconv.Itoa(s.stops)
}

// send writes one frame to the supervisor.
func (s *sandbox) send(kind frameKind, parts ...[]byte) error {
	if d, ok := s.stream.(interface{ SetWriteDeadline(time.Time) error }); ok {
		if err := d.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
	}
	return writeFrame(s.stream, kind, parts...)
}

// detach lets go of the stream and ends the reader. The sandbox stays.
func (s *sandbox) detach() {
	close(s.quit)
	// The reader and the other end notice; there is nothing to do about an error.
	_ = s.stream.Close()
}

// gone reports whether an idle sandbox has ended.
func (s *sandbox) gone() bool {
	select {
	case <-s.frames:
		// An idle sandbox has nothing to say: what speaks is not to be trusted.
		return true
	default:
		return false
	}
}
