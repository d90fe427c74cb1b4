package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

// A frameKind says what a frame means. The runner's frames.py has the same list;
// python/testdata/frames.json has examples that both are tested with.
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
	frameOutput  frameKind = 'O'
	framePlaced  frameKind = 'W'
)

const frameHeader = 5

// errProtocol means that a sandbox has sent what it may not send.
var errProtocol = errors.New("sandbox: it broke the protocol")

// A Holder counts the memory that is taken for large frames of calls, for the principal
// whose program has sent them.
type Holder interface {
	// Hold counts n bytes more. An error means that they may not be taken.
	Hold(n int64) error
	// Release ends the counting of n bytes.
	Release(n int64)
}

// A frame is one message between a server and a supervisor.
type frame struct {
	kind    frameKind
	payload []byte
	// err says why a frame of the worker was refused. It has no payload then.
	err error
	// holder, if there is one, counts held bytes for the payload.
	holder Holder
	held   int64
}

// hold counts n bytes more for the payload. It reports false, and sets err, if they may
// not be taken.
func (f *frame) hold(n int64) bool {
	if f.holder == nil {
		return true
	}
	if f.err = f.holder.Hold(n); f.err == nil {
		f.held += n
	}
	return f.err == nil
}

// release ends the counting of the payload.
func (f *frame) release() {
	if f.holder != nil {
		f.holder.Release(f.held)
		f.held = 0
	}
}

// A frameReader reads the frames of a sandbox. The limits are applied before memory is
// taken: nothing that a sandbox claims is believed.
type frameReader struct {
	*bufio.Reader
	limits Limits
	// holder, if set, returns what large frames of calls count against, or nil.
	holder func() Holder
}

// next reads the next frame. A supervisor passes frames of the worker on without reading
// them: where one of these is too large, next skips its payload and sets its err. Everything
// else that breaks the protocol is an error of next, which wraps errProtocol.
func (r *frameReader) next() (frame, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	length, f := int64(binary.BigEndian.Uint32(header[:4])), frame{kind: frameKind(header[4])}
	most, known := r.limits.largest(f.kind)
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
		return frame{}, fmt.Errorf("sandbox: frame cut short: %w", err)
	}
	return f, nil
}

// fill reads the payload. Memory is taken, and counted, for what has come, not for what
// a header claims.
func (r *frameReader) fill(f *frame, length int64) error {
	if f.kind == frameCalls && length > smallFrame && r.holder != nil {
		f.holder = r.holder()
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

// skipPast reads up to the end of the mark. What comes before the mark was meant for another
// server: the rest of a frame, or a few frames.
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
	return errors.New("sandbox: a sandbox does not answer")
}

// smallFrame is the size up to which copying a frame costs less than writing it in parts,
// for which some streams need a write each.
const smallFrame = 32 << 10

// writeFrame writes the parts as one frame, without copying them if they are large.
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
