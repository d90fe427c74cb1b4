package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

// A frameKind is the type of a frame. The list is that of the runner's frames.py.
type frameKind byte

const (
	frameAttach  frameKind = 'A'
	frameProgram frameKind = 'G'
	frameResults frameKind = 'R'
	frameKill    frameKind = 'K'
	frameFile    frameKind = 'F'
	frameList    frameKind = 'L'
	frameTake    frameKind = 'T'
	frameStop    frameKind = 'S'
	frameHello   frameKind = 'H'
	frameCalls   frameKind = 'C'
	frameDone    frameKind = 'D'
	frameExit    frameKind = 'X'
	frameListing frameKind = 'M'
	frameContent frameKind = 'B'
	frameLost    frameKind = 'N'
	frameStopped frameKind = 'P'
	frameRan     frameKind = 'E'
)

const frameHeader = 5

// The largest payloads of the frames of a sandbox, in bytes.
const (
	// maxFrame bounds a frame that a supervisor passes on without reading it.
	maxFrame = 32 << 20
	// maxCallsFrame leaves room for what stands around the inputs of one pause.
	maxCallsFrame = maxInputs + 1<<20
	// maxHeadFrame bounds a hello, the report of a worker, and what comes before the
	// output of a program.
	maxHeadFrame = 64 << 10
	// maxContentFrame bounds a piece of a file.
	maxContentFrame = 1 << 20
	// maxListedName bounds one name in a listing and what stands around it.
	maxListedName = 4 << 10
	// maxListedInputs is more than the input files that an execution is given.
	maxListedInputs = 512
	// defaultOutput is the limit of output where the options name none.
	defaultOutput = 1 << 20
)

// frameLimits bound what a sandbox may send. They are looked at before memory is taken.
type frameLimits struct {
	// output bounds stdout and stderr each, in bytes, files how many new files are listed.
	output int64
	files  int
}

func newFrameLimits(o Options) frameLimits {
	return frameLimits{output: cmp.Or(o.MaxOutput, defaultOutput), files: o.MaxOutputFiles}
}

// most returns the largest payload of a kind of frame. It reports false for a kind that
// no sandbox sends.
func (l frameLimits) most(kind frameKind) (most int64, known bool) {
	switch kind {
	case frameCalls:
		return maxCallsFrame, true
	case frameHello, frameDone, frameStopped, frameRan:
		return maxHeadFrame, true
	case frameExit:
		return 2*l.output + maxHeadFrame, true
	case frameListing:
		return int64(maxListedInputs+l.files) * maxListedName, true
	case frameContent:
		return maxContentFrame, true
	case frameLost:
		return 0, true
	default:
		return 0, false
	}
}

// errProtocol means that a sandbox has sent what it may not send.
var errProtocol = errors.New("engine: a sandbox broke the protocol")

// A frame is one message between the engine and a supervisor.
type frame struct {
	kind    frameKind
	payload []byte
	// err says why a frame of the worker was not taken. It has no payload then.
	err error
	// held bytes are counted for its payload in the share.
	share *share
	held  int64
}

// hold counts n bytes more for the payload. It reports false, and sets err, if they may
// not be taken.
func (f *frame) hold(n int64) bool {
	if f.share == nil {
		return true
	}
	if f.err = f.share.hold(n); f.err == nil {
		f.held += n
	}
	return f.err == nil
}

// release ends the counting of the payload.
func (f *frame) release() {
	if f.share != nil {
		f.share.release(f.held)
		f.held = 0
	}
}

// A frameReader reads the frames of a sandbox. What a sandbox sends is not to be
// believed.
type frameReader struct {
	*bufio.Reader
	limits frameLimits
	// holder returns the share that large frames of calls are counted in, or nil.
	holder func() *share
}

// next reads the next frame. A supervisor passes frames of the worker on without
// reading them: one that is too large is skipped and has an err. Everything else that
// breaks the protocol is an error, which wraps errProtocol.
func (r *frameReader) next() (frame, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	length, f := int64(binary.BigEndian.Uint32(header[:4])), frame{kind: frameKind(header[4])}
	most, known := r.limits.most(f.kind)
	if !known {
		return frame{}, fmt.Errorf("%w: frame of kind %#02x", errProtocol, byte(f.kind))
	}
	if length > most {
		f.err = fmt.Errorf("%w: frame %q of %d bytes, at most %d allowed", errProtocol, byte(f.kind), length, most)
	}
	if f.err != nil && (length > maxFrame || f.kind != frameCalls && f.kind != frameDone) {
		return frame{}, f.err
	}
	var err error
	if f.err == nil {
		err = r.fill(&f, length)
	}
	if f.err != nil {
		f.release()
		_, err = io.CopyN(io.Discard, r, length-int64(len(f.payload)))
		f.payload = nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		f.release()
		return frame{}, fmt.Errorf("engine: frame cut short: %w", err)
	}
	return f, nil
}

// fill reads the payload. Memory is taken, and counted, for what has come, not for what
// a header claims.
func (r *frameReader) fill(f *frame, length int64) error {
	if f.kind == frameCalls && length > smallFrame && r.holder != nil {
		f.share = r.holder()
	}
	for read := int64(0); read < length; read = int64(len(f.payload)) {
		room := min(length, max(2*read, smallFrame))
		if !f.hold(room - read) {
			return nil
		}
		f.payload = slices.Grow(f.payload, int(room-read))
		n, err := io.ReadFull(r, f.payload[read:room])
		f.payload = f.payload[:read+int64(n)]
		if err != nil {
			return err
		}
	}
	return nil
}

// skipPast reads up to the end of the mark. What comes before it was meant for
// another server, and is no more than the rest of a frame or a few frames.
func skipPast(r io.ByteReader, mark []byte) error {
	var seen []byte
	for range 4 * maxFrame {
		if bytes.HasSuffix(seen, mark) {
			return nil
		}
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		if len(seen) == 2*len(mark) {
			seen = append(seen[:0], seen[len(mark):]...)
		}
		seen = append(seen, b)
	}
	return errors.New("engine: a sandbox does not answer")
}

// smallFrame is the size up to which copying a frame costs less than writing it in
// parts, which not every stream can do at once.
const smallFrame = 32 << 10

// writeFrame writes the parts as one frame, large ones without copying them.
func writeFrame(w io.Writer, kind frameKind, parts ...[]byte) error {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	header := append(binary.BigEndian.AppendUint32(make([]byte, 0, frameHeader), uint32(length)), byte(kind))
	if length <= smallFrame {
		_, err := w.Write(append(header, bytes.Join(parts, nil)...))
		return err
	}
	buffers := append(net.Buffers{header}, parts...)
	_, err := buffers.WriteTo(w)
	return err
}
