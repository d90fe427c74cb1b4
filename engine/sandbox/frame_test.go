package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	gocmp "github.com/google/go-cmp/cmp"
)

// frameCases are the frames that both ends are tested against.
type frameCases struct {
	Kinds map[string]map[string]string
	Good  []struct {
		Name, From string
		Bytes      latin1
		Frames     []struct {
			Kind    string
			Payload latin1
		}
	}
	Bad []struct {
		Name, Error string
		Bytes       latin1
		After       int
	}
}

// latin1 is bytes written as a text of as many characters.
type latin1 []byte

func (b *latin1) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*b = latin1{}
	for _, r := range s {
		if r > 0xff {
			return errors.New("a character that is no byte")
		}
		*b = append(*b, byte(r))
	}
	return nil
}

// readFrame reads a frame that a supervisor sends.
func readFrame(r *bufio.Reader) (frame, error) {
	f, err := (&frameReader{Reader: r, limits: Limits{}}).next()
	return f, cmp.Or(err, f.err)
}

func readFrameCases(t testing.TB) frameCases {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "python", "testdata", "frames.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases frameCases
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases.Good) == 0 || len(cases.Bad) == 0 {
		t.Fatal("frames.json has no cases")
	}
	return cases
}

// The kinds of frames are those of the runner, and no sandbox may send those of a server.
func TestFrameKinds(t *testing.T) {
	kinds := readFrameCases(t).Kinds
	for from, want := range map[string]map[string]frameKind{
		"server": {
			"attach": frameAttach, "program": frameProgram, "results": frameResults, "kill": frameKill,
			"file": frameFile, "list": frameList, "take": frameTake, "stop": frameStop,
		},
		"sandbox": {
			"hello": frameHello, "calls": frameCalls, "done": frameDone, "exit": frameExit, "listing": frameListing,
			"content": frameContent, "lost": frameLost, "stopped": frameStopped, "ran": frameRan,
			"output": frameOutput, "placed": framePlaced,
		},
	} {
		got := map[string]frameKind{}
		for name, letter := range kinds[from] {
			got[name] = frameKind(letter[0])
			if _, known := (Limits{}).largest(got[name]); known != (from == "sandbox") {
				t.Errorf("%s of the %s may come from a sandbox: %v", name, from, known)
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("kinds of the %s (-here +table):\n%s", from, diff)
		}
	}
}

func TestGoodFrames(t *testing.T) {
	for _, c := range readFrameCases(t).Good {
		t.Run(c.Name, func(t *testing.T) {
			var written bytes.Buffer
			for _, f := range c.Frames {
				half := len(f.Payload) / 2
				if err := writeFrame(&written, frameKind(f.Kind[0]), f.Payload[:half], f.Payload[half:]); err != nil {
					t.Fatalf("writeFrame = %v", err)
				}
			}
			if !bytes.Equal(written.Bytes(), c.Bytes) {
				t.Errorf("writeFrame wrote %q, want %q", written.Bytes(), c.Bytes)
			}
			if c.From != "sandbox" {
				return
			}
			// One byte at a time, and as the reader likes.
			for _, source := range []io.Reader{iotest.OneByteReader(bytes.NewReader(c.Bytes)), bytes.NewReader(c.Bytes)} {
				r := bufio.NewReader(source)
				for _, want := range c.Frames {
					got, err := readFrame(r)
					if err != nil || string(got.kind) != want.Kind || !bytes.Equal(got.payload, want.Payload) {
						t.Fatalf("readFrame = %q %q, %v, want %s %q", got.kind, got.payload, err, want.Kind, want.Payload)
					}
				}
				if _, err := readFrame(r); !errors.Is(err, io.EOF) {
					t.Errorf("readFrame at the end = %v, want EOF", err)
				}
			}
		})
	}
}

func TestBadFrames(t *testing.T) {
	for _, c := range readFrameCases(t).Bad {
		t.Run(c.Name, func(t *testing.T) {
			r := bufio.NewReader(bytes.NewReader(c.Bytes))
			for range c.After {
				if _, err := readFrame(r); err != nil {
					t.Fatalf("readFrame of the good frame before = %v", err)
				}
			}
			got, err := readFrame(r)
			if err == nil {
				t.Fatalf("readFrame = %q %q, want an error", got.kind, got.payload)
			}
			if short := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF); short != (c.Error == "short") {
				t.Errorf("readFrame = %v, want an error of sort %q", err, c.Error)
			}
		})
	}
}

// A claim is refused by the header alone: nothing is read or allocated for it.
func TestReadFrameRefusesAtTheHeader(t *testing.T) {
	r := bufio.NewReader(io.MultiReader(strings.NewReader("\x02\x00\x00\x01C"), iotest.ErrReader(errors.New("read on"))))
	if _, err := readFrame(r); err == nil || err.Error() == "read on" {
		t.Errorf("readFrame = %v, want it refused at the header", err)
	}
}

// Each kind of frame has a limit of its own, and what may come depends on the channel.
func TestFrameLimits(t *testing.T) {
	limits := Limits{Output: 1000, OutputFiles: 2}
	for _, c := range []struct {
		kind frameKind
		most int
		// skipped says that a frame that is too large is passed over.
		skipped bool
	}{
		{frameCalls, 17 << 20, true},
		{frameDone, 64 << 10, true},
		{frameHello, 64 << 10, false},
		{frameExit, 2000 + 64<<10, false},
		{frameListing, (512 + 2) * 4096, false},
		{frameContent, 1 << 20, false},
		{frameOutput, 16<<10 + 9, false},
		{frameLost, 0, false},
	} {
		for _, size := range []int{c.most, c.most + 1} {
			var stream bytes.Buffer
			if err := errors.Join(writeFrame(&stream, c.kind, make([]byte, size)), writeFrame(&stream, frameHello)); err != nil {
				t.Fatal(err)
			}
			r := &frameReader{Reader: bufio.NewReader(bytes.NewReader(stream.Bytes())), limits: limits}
			got, err := r.next()
			switch {
			case size == c.most:
				if err != nil || got.err != nil || len(got.payload) != size {
					t.Errorf("%q of %d bytes: got %d, %v, %v, want it", c.kind, size, len(got.payload), err, got.err)
				}
			case c.skipped:
				if err != nil || !errors.Is(got.err, errProtocol) || got.payload != nil {
					t.Errorf("%q of %d bytes: got %d, %v, %v, want it skipped", c.kind, size, len(got.payload), err, got.err)
				}
				if next, err := r.next(); err != nil || next.kind != frameHello {
					t.Errorf("after it: got %q, %v, want a hello", next.kind, err)
				}
			case !errors.Is(err, errProtocol):
				t.Errorf("%q of %d bytes: got %v, want an error of the protocol", c.kind, size, err)
			}
		}
	}
}

// errFull is what a counter says that counts no more.
var errFull = errors.New("full")

// A counter counts up to a limit.
type counter struct {
	mu   sync.Mutex
	most int64
	n    int64
}

func (c *counter) Hold(n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n+n > c.most {
		return errFull
	}
	c.n += n
	return nil
}

func (c *counter) Release(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n -= n
}

func (c *counter) held() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// What a program sends is counted for its principal while it comes.
func TestFramesAreCounted(t *testing.T) {
	ada := &counter{most: 3 << 20}
	var stream bytes.Buffer
	for _, size := range []int{2 << 20, 2 << 20, 100, 1 << 20} {
		if err := writeFrame(&stream, frameCalls, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	r := &frameReader{Reader: bufio.NewReader(&stream), holder: func() Holder { return ada }}
	first, err := r.next()
	if err != nil || first.err != nil || ada.held() != 2<<20 {
		t.Fatalf("the first frame: %v, %v, and ada has %d bytes", err, first.err, ada.held())
	}
	second, err := r.next()
	if err != nil || !errors.Is(second.err, errFull) || ada.held() != 2<<20 {
		t.Fatalf("the second frame: %v, %v, and ada has %d bytes, want it skipped", err, second.err, ada.held())
	}
	if small, err := r.next(); err != nil || small.err != nil || len(small.payload) != 100 {
		t.Errorf("a small frame: %d bytes, %v, %v", len(small.payload), err, small.err)
	}
	first.release()
	third, err := r.next()
	if err != nil || third.err != nil || ada.held() != 1<<20 {
		t.Errorf("after the first is released: %v, %v, and ada has %d bytes, want the frame", err, third.err, ada.held())
	}
	third.release()
	third.release()
	if ada.held() != 0 {
		t.Errorf("%d bytes are held after the end, want none", ada.held())
	}
}

func TestWriteLargeFrame(t *testing.T) {
	parts := [][]byte{bytes.Repeat([]byte("a"), smallFrame), []byte("b"), nil, []byte("c")}
	var written bytes.Buffer
	if err := writeFrame(&written, frameResults, parts...); err != nil {
		t.Fatalf("writeFrame = %v", err)
	}
	want := append([]byte("\x00\x00\x80\x02R"), slices.Concat(parts...)...)
	if !bytes.Equal(written.Bytes(), want) {
		t.Errorf("writeFrame wrote %d bytes beginning with %q, want %d with %q", written.Len(), written.Bytes()[:5], len(want), want[:5])
	}
	if len(parts[0]) != smallFrame {
		t.Errorf("writeFrame changed the caller's parts")
	}
}

func TestSkipPast(t *testing.T) {
	for _, c := range []struct{ name, stream, mark, rest string }{
		{"nothing before", "markrest", "mark", "rest"},
		{"a frame before", "\x00\x00\x00\x02C[]markrest", "mark", "rest"},
		{"begun twice", "mamarkrest", "mark", "rest"},
		{"overlapping itself", "aabaabaacrest", "aabaac", "rest"},
		{"far away", strings.Repeat("mar", 1000) + "markmark", "mark", "mark"},
		{"no mark", "rest", "", "rest"},
	} {
		r := bufio.NewReader(strings.NewReader(c.stream))
		err := skipPast(r, []byte(c.mark))
		rest, _ := io.ReadAll(r)
		if err != nil || string(rest) != c.rest {
			t.Errorf("%s: skipPast left %q, %v, want %q", c.name, rest, err, c.rest)
		}
	}
	if err := skipPast(bufio.NewReader(strings.NewReader("mar")), []byte("mark")); !errors.Is(err, io.EOF) {
		t.Errorf("skipPast of a stream without the mark = %v, want EOF", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	cases := readFrameCases(f)
	for _, c := range cases.Good {
		f.Add([]byte(c.Bytes))
	}
	for _, c := range cases.Bad {
		f.Add([]byte(c.Bytes))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReader(bytes.NewReader(stream))
		var again bytes.Buffer
		for {
			got, err := readFrame(r)
			if err != nil {
				break
			}
			if !strings.ContainsRune("HCDXMBNPEOW", rune(got.kind)) {
				t.Fatalf("readFrame let kind %q pass", got.kind)
			}
			if err := writeFrame(&again, got.kind, got.payload); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(stream, again.Bytes()) {
			t.Errorf("the frames read are %q when written again, not how %q begins", again.Bytes(), stream)
		}
	})
}
