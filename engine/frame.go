package engine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
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
	frameGo      frameKind = 'O'
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

// maxFrame bounds what a sandbox may send in one frame, in bytes. It is checked
// before memory is taken for it.
const maxFrame = 32 << 20

// A frame is one message between the engine and a supervisor.
type frame struct {
	kind    frameKind
	payload []byte
}

// readFrame reads the next frame. What the sandbox sends is not to be believed:
// an unknown kind or a claim beyond maxFrame is an error.
func readFrame(r *bufio.Reader) (frame, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	length, kind := binary.BigEndian.Uint32(header[:4]), frameKind(header[4])
	switch kind {
	case frameHello, frameCalls, frameDone, frameExit, frameListing, frameContent, frameLost, frameStopped, frameRan:
	default:
		return frame{}, fmt.Errorf("engine: frame of kind %#02x from a sandbox", byte(kind))
	}
	if length > maxFrame {
		return frame{}, fmt.Errorf("engine: frame of %d bytes from a sandbox, at most %d allowed", length, maxFrame)
	}
	// Memory is taken for what has come, not for what a header claims.
	var payload bytes.Buffer
	payload.Grow(int(min(length, smallFrame)))
	if _, err := io.CopyN(&payload, r, int64(length)); errors.Is(err, io.EOF) {
		return frame{}, fmt.Errorf("engine: frame cut short: %w", io.ErrUnexpectedEOF)
	} else if err != nil {
		return frame{}, fmt.Errorf("engine: frame cut short: %w", err)
	}
	return frame{kind, payload.Bytes()}, nil
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
