// Package sandboxtest has what tests need of sandboxes: a provider whose sandboxes follow a
// script, and the conformance suite of the providers.
package sandboxtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"fermata/engine/sandbox"
	"fermata/python"
)

// A Script is a provider whose sandboxes live in the test's process. Their programs are
// words: "end" ends it, "hang" runs until it is killed, "nap" runs for 100 ms and does nothing,
// "out:text" and "err:text" print a text, and any other word calls the tool of that name. After its
// last word a program ends, too. A Script is one server's view of the sandboxes.
type Script struct {
	server string
	stage  *stage
	// destroyed are the sandboxes that this server has destroyed. The stage's mu guards it.
	destroyed []string
}

var _ sandbox.Provider = (*Script)(nil)

// A stage is what the views of all servers share.
type stage struct {
	hanging chan struct{}

	mu             sync.Mutex
	settings       Settings
	made           []sandbox.Kind
	making, atOnce int
	actors         map[string]*actor
	heard          map[string]string
}

// Settings say how the sandboxes behave from now on.
type Settings struct {
	// Delay is how long it takes to make a sandbox, Fail why none can be made.
	Delay time.Duration
	Fail  error
	// Protocol and State are what a new sandbox says of itself.
	Protocol int
	State    sandbox.State
	// Replies, if set, are a supervisor's answers to all but attaches: to the first request
	// the first of them, whatever was asked.
	Replies [][]Reply
}

// New returns a provider of a server.
func New(server string) *Script {
	return &Script{server: server, stage: &stage{
		hanging:  make(chan struct{}, 100),
		settings: Settings{Protocol: python.Protocol, State: sandbox.Ready},
		actors:   map[string]*actor{}, heard: map[string]string{},
	}}
}

// View returns the same sandboxes as another server sees them.
func (s *Script) View(server string) *Script { return &Script{server: server, stage: s.stage} }

// Set changes how the sandboxes behave.
func (s *Script) Set(change func(*Settings)) {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	change(&s.stage.settings)
}

// Hanging gets a value whenever a program hangs.
func (s *Script) Hanging() <-chan struct{} { return s.stage.hanging }

// Made returns the kinds of the sandboxes that were made, in their order.
func (s *Script) Made() []sandbox.Kind {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	return slices.Clone(s.stage.made)
}

// AtOnce returns how many sandboxes were made at one time, at most.
func (s *Script) AtOnce() int {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	return s.stage.atOnce
}

// Alive returns how many sandboxes there are.
func (s *Script) Alive() int {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	return len(s.stage.actors)
}

// Destroyed returns the sandboxes that this server has destroyed.
func (s *Script) Destroyed() []string {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	return slices.Clone(s.destroyed)
}

// Heard returns what servers have told a sandbox, dead or alive, a letter each as in
// python/testdata/frames.json, without attaches and orders to stop.
func (s *Script) Heard(ref string) string {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	return s.stage.heard[ref]
}

// Die ends a sandbox as if by itself.
func (s *Script) Die(ref string) {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	if a := s.stage.actors[ref]; a != nil && a.stream != nil {
		_ = a.stream.Close() // a pipe's never fails
	}
	delete(s.stage.actors, ref)
}

// Print lets the program in a sandbox print a text on stdout. Only servers that attach after that
// are told of it.
func (s *Script) Print(ref, text string) {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	s.stage.actors[ref].printed[0] += text
}

// Create makes a sandbox.
func (s *Script) Create(ctx context.Context, kind sandbox.Kind) (string, error) {
	g := s.stage
	g.mu.Lock()
	g.making++
	g.atOnce = max(g.atOnce, g.making)
	delay := time.NewTimer(g.settings.Delay)
	g.mu.Unlock()
	defer delay.Stop()
	var err error
	select {
	case <-delay.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.making--
	if err := errors.Join(err, g.settings.Fail); err != nil {
		return "", err
	}
	g.made = append(g.made, kind)
	ref := fmt.Sprintf("s%d", len(g.made))
	g.actors[ref] = &actor{stage: g, ref: ref, server: s.server, state: g.settings.State}
	return ref, nil
}

// Attach opens the stream to a sandbox. The newest stream is the one that counts.
func (s *Script) Attach(_ context.Context, ref string) (sandbox.Stream, error) {
	g := s.stage
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.actors[ref]
	if a == nil {
		return nil, sandbox.ErrGone
	}
	if a.stream != nil {
		_ = a.stream.Close()
	}
	ours, theirs := net.Pipe()
	a.stream = theirs
	go a.act(theirs)
	return ours, nil
}

// Destroy ends a sandbox.
func (s *Script) Destroy(_ context.Context, ref string) error {
	s.Die(ref)
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	s.destroyed = append(s.destroyed, ref)
	return nil
}

// List returns the sandboxes of all servers.
func (s *Script) List(context.Context) ([]sandbox.Sandbox, error) {
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	var list []sandbox.Sandbox
	for ref, a := range s.stage.actors {
		list = append(list, sandbox.Sandbox{Ref: ref, Server: a.server})
	}
	return list, nil
}

// Close does nothing.
func (s *Script) Close() error { return nil }

// An actor plays the supervisor of a sandbox, and its program. The stage's mu guards it.
type actor struct {
	stage       *stage
	ref, server string
	stream      net.Conn
	state       sandbox.State
	round       int
	words       []string
	// printed is what the program has printed on stdout and stderr.
	printed [2]string
	asked   int
}

// act answers a server until the stream ends.
func (a *actor) act(stream net.Conn) {
	// A server may write before it reads: what is said must not wait for that.
	said := make(chan []byte, 1000)
	defer close(said)
	go func() {
		defer func() { _ = stream.Close() }()
		for b := range said {
			if b == nil {
				time.Sleep(napTime)
				continue
			}
			_, _ = stream.Write(b) // If this fails, reading does, too.
		}
	}()
	for r := bufio.NewReader(stream); ; {
		var header [5]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(header[:4]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		for _, reply := range a.answer(header[4], payload) {
			switch reply.kind {
			case end:
				return
			case silence:
				_, _ = io.Copy(io.Discard, r)
				return
			default:
				said <- reply.bytes()
			}
		}
	}
}

// answer returns what the supervisor and the program do about a frame.
func (a *actor) answer(kind byte, payload []byte) []Reply {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	settings := a.stage.settings
	if kind == 'A' {
		hello := Reply{'H', fmt.Sprintf(`{"protocol":%d,"state":%q,"round":%d}`, settings.Protocol, a.state, a.round)}
		replies := []Reply{{marker, string(payload)}, hello}
		for stream, text := range a.printed {
			if text != "" && a.state != sandbox.Ended {
				replies = append(replies, Printed(stream == 1, 0, text))
			}
		}
		if len(a.words) > 0 && a.state == sandbox.Paused {
			replies = append(replies, a.call()...)
		}
		return replies
	}
	if kind == 'S' {
		return []Reply{{'P', string(payload)}}
	}
	a.stage.heard[a.ref] += string(kind)
	if settings.Replies != nil {
		a.asked++
		if a.asked > len(settings.Replies) {
			return nil
		}
		return settings.Replies[a.asked-1]
	}
	switch kind {
	case 'G':
		var program struct{ Code string }
		_ = json.Unmarshal(payload, &program) // What is no program has no words.
		a.words = strings.Fields(program.Code)
	case 'R':
		a.words = a.words[min(1, len(a.words)):]
	case 'K':
		a.words = nil
	default:
		return nil
	}
	return a.goOn()
}

// goOn plays the next words, up to one that does not print.
func (a *actor) goOn() []Reply {
	replies := a.print()
	if len(a.words) == 0 || a.words[0] == "end" {
		a.state = sandbox.Ended
		exit := fmt.Sprintf(`{"code":0,"stdout":%d,"stderr":%d}`, len(a.printed[0]), len(a.printed[1]))
		head := string(binary.BigEndian.AppendUint32(nil, uint32(len(exit)))) + exit
		return append(replies, Reply{'X', head + a.printed[0] + a.printed[1]})
	}
	if a.words[0] == "hang" {
		a.state = sandbox.Running
		a.stage.hanging <- struct{}{}
		return replies
	}
	a.state = sandbox.Paused
	a.round++
	return append(replies, a.call()...)
}

// napTime is how long a program naps.
const napTime = 100 * time.Millisecond

// print plays the words that print, and the naps between them, up to another one.
func (a *actor) print() (replies []Reply) {
	for len(a.words) > 0 {
		if a.words[0] == "nap" {
			replies = append(replies, Reply{kind: nap})
			a.words = a.words[1:]
			continue
		}
		name, text, _ := strings.Cut(a.words[0], ":")
		stream := slices.Index([]string{"out", "err"}, name)
		if stream < 0 || text == "" {
			break
		}
		replies = append(replies, Printed(stream == 1, len(a.printed[stream]), text))
		a.printed[stream] += text
		a.words = a.words[1:]
	}
	return replies
}

// call calls the tool that the present word names.
func (a *actor) call() []Reply {
	return []Reply{{'C', fmt.Sprintf(`[{"n":1,"tool":%q,"input":{}}]`, a.words[0])}}
}

// A Reply is something that a supervisor says.
type Reply struct {
	kind    byte
	payload string
}

// What is said without a frame.
const (
	marker byte = iota
	end
	silence
	nap
)

// Other ways to reply.
var (
	// End ends the stream.
	End = Reply{kind: end}
	// Silence says nothing more, ever.
	Silence = Reply{kind: silence}
	// Unreadable says that a file cannot be read.
	Unreadable = Reply{kind: 'N'}
)

// Listing is the answer to a List, as JSON.
func Listing(found string) Reply { return Reply{'M', found} }

// Piece is a piece of a file, which an empty one ends.
func Piece(content string) Reply { return Reply{'B', content} }

// Printed is a piece of stdout, or of stderr, that has offset bytes before it.
func Printed(stderr bool, offset int, text string) Reply {
	head := []byte{1}
	if stderr {
		head[0] = 2
	}
	return Reply{'O', string(binary.BigEndian.AppendUint64(head, uint64(offset))) + text}
}

// bytes returns what is written, nil for a nap.
func (r Reply) bytes() []byte {
	switch r.kind {
	case marker:
		return []byte(r.payload)
	case nap:
		return nil
	}
	header := append(binary.BigEndian.AppendUint32(nil, uint32(len(r.payload))), r.kind)
	return append(header, r.payload...)
}
