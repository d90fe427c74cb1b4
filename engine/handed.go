package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/artifact"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/tools/envelope"
)

// What programs are told of results whose files cannot be kept.
const (
	textBadArtifact  = "the result hands over a file and is wrong: %s"
	textLostArtifact = "the result hands over the file %s, which cannot be kept: %s"
	textManyHanded   = "an execution may be handed at most %d files, and has %d already"
	textNoFiles      = "this server keeps no files"
	textFixedInput   = "it is an input file that may not be changed"
	textNotStored    = "the server cannot store it"
)

// codeArtifact is the code of the failure of a call whose files cannot be kept.
const codeArtifact = "artifact_failed"

// artifactFailed are the details of the failure of a call whose files cannot be kept.
func artifactFailed() *envelope.Details { return &envelope.Details{Code: codeArtifact} }

// A refusal is an error of Files that says, in words for whoever has made a file, why it is refused.
type refusal interface {
	error
	Refusal() string
}

// A handedFile is a file that the result of a call has handed over, in the form of the record.
type handedFile struct {
	Call string `json:"call"`
	InputFile
}

// output returns the file as one that is in the workspace at the end, unchanged. input is the input file
// that it has replaced, if there was one.
func (f handedFile) output(input *InputFile) OutputFile {
	return OutputFile{Session: f.Session, ID: f.ID, Name: f.Name, Size: f.Size, Type: f.Type, Input: input}
}

// handedOf returns the files in the record of an execution that results of tools have handed over. Of those
// with one name the last one counts.
func handedOf(r continuation.Record) (list []handedFile, err error) {
	if len(r.Handed) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Handed, &list); err != nil {
		return nil, fmt.Errorf("read the files that execution %s was handed: %w", r.ID, err)
	}
	return list, nil
}

// A handing is a result of a client that hands files over.
type handing struct {
	reply
	// index is where the result stands among those for the sandbox.
	index   int
	started time.Time
	// noted is true if a server that has died has noted what came of the files.
	noted bool
}

// receive keeps the files that the results of a client hand over, before the program gets the results. It
// reports true if the program has come to rest meanwhile.
func (s *stretch) receive(d delivery) (ending, bool) {
	if len(d.handed) == 0 {
		return ending{}, false
	}
	known, err := handedOf(s.conversation.copy())
	if err != nil {
		return s.broken(sandbox.Broken{Err: err}), true
	}
	for _, h := range d.handed {
		if h.noted && slices.ContainsFunc(known, func(f handedFile) bool { return f.Call == h.CallID }) {
			continue // They are there.
		}
		failure, e, rested := s.keep(h.CallID, h.files)
		if rested {
			return e, true
		}
		if failure != "" {
			h.reply = h.failed(failure)
			number := d.results[h.index].Number
			d.results[h.index] = h.forSandbox()
			d.results[h.index].Number = number
		}
		if !h.noted {
			s.conversation.noteReply(h)
		}
	}
	if err := s.conversation.writeReplies(); err != nil {
		return s.lostOwner(err)
	}
	return ending{}, false
}

// noteReply notes the result of a client, whose files were kept after it was claimed.
func (c *conversation) noteReply(h handing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chronicle.Note(c.chronicle.outcomeOf(h.reply, h.started))
	c.record.Pending = slices.Clone(c.record.Pending)
	for i, call := range c.record.Pending {
		if call.ID == h.CallID {
			c.record.Pending[i].Stage = ""
		}
	}
}

// writeReplies records the results of a client that have handed files over. If the store is away a later
// write brings them along.
func (c *conversation) writeReplies() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing != running {
		return ErrOwnerAway
	}
	err := c.amend(context.Background(), func(*continuation.Record) {})
	if errors.Is(err, continuation.ErrUnavailable) {
		return nil
	}
	return err
}

// open takes the files out of the result of a call that the server has run. It reports true if the program
// has come to rest meanwhile.
func (s *stretch) open(call *served) (ending, bool) {
	if !call.envelope || call.message != "" {
		return ending{}, false
	}
	call.size = int64(len(call.output))
	if s.conversation.exceeds(call.size) {
		return ending{}, false // The call fails for that.
	}
	files, rest, err := artifact.Of(call.output, artifact.PathIn(call.input))
	failure := ""
	if err != nil {
		failure = fmt.Sprintf(textBadArtifact, err)
	} else if len(files) > 0 {
		var e ending
		var rested bool
		if failure, e, rested = s.keep(call.call.ID, files); rested {
			return e, true
		}
	}
	if call.output = rest; failure != "" {
		// The tool has done its work, so that the call costs what it costs.
		call.message, call.unknown, call.details, call.output = failure, true, artifactFailed(), nil
	}
	return ending{}, false
}

// keep stores the files of a result, and places them in the workspace. failure is why the call fails, if
// not all of them are kept. keep reports true if the program has come to rest meanwhile.
func (s *stretch) keep(call string, files []artifact.File) (failure string, e ending, rested bool) {
	record := s.conversation.copy()
	inputs, err := inputsOf(record)
	known, knownErr := handedOf(record)
	switch {
	case err != nil || knownErr != nil:
		return "", s.broken(sandbox.Broken{Err: errors.Join(err, knownErr)}), true
	case s.files == nil:
		return textNoFiles, ending{}, false
	case len(known)+len(files) > artifact.MaxFiles:
		return fmt.Sprintf(textManyHanded, artifact.MaxFiles, len(known)), ending{}, false
	}
	ctx, stop := s.patience()
	defer stop()
	for _, f := range files {
		event := &journal.ArtifactStored{Call: call, Path: f.Path, Asked: f.Asked, MIME: f.Type}
		why := textFixedInput
		var kept handedFile
		if !slices.ContainsFunc(inputs, func(i InputFile) bool { return i.ReadOnly && i.Name == f.Path }) {
			kept, why, err = s.keepOne(ctx, record, f)
		}
		if err != nil {
			e, rested = s.interrupted(err)
			return "", e, rested
		}
		if why != "" {
			event.Error = s.conversation.chronicle.Text(why)
			s.conversation.noteHanded(event, nil)
			return fmt.Sprintf(textLostArtifact, f.Path, why), ending{}, false
		}
		kept.Call = call
		event.ID, event.Size = kept.ID, kept.Size
		if event.MIME == "" {
			event.MIME = kept.Type
		}
		s.conversation.noteHanded(event, &kept)
	}
	return "", ending{}, false
}

// keepOne stores one file and places it in the workspace. why tells why it is not kept. An error means that
// the program has come, or must come, to rest.
func (s *stretch) keepOne(ctx context.Context, record continuation.Record, f artifact.File) (kept handedFile, why string, err error) {
	content, err := f.Content()
	if err != nil {
		return kept, err.Error(), nil //nolint:nilerr // only the call fails
	}
	saved, err := s.files.Save(ctx, record.Scope, record.Session, f.Path, bytes.NewReader(content))
	if refused, ok := errors.AsType[refusal](err); ok {
		return kept, refused.Refusal(), nil
	}
	switch {
	case ctx.Err() != nil:
		return kept, "", sandbox.ErrInterrupted
	case err != nil:
		s.log.Warn("cannot keep a file that a tool has handed over", "execution", record.ID, "err", err)
		return kept, textNotStored, nil
	}
	sum := sha256.Sum256(content)
	kept.InputFile = InputFile{
		Session: saved.Session, ID: saved.ID, Name: f.Path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Type: saved.Type,
	}
	err = s.sandbox.Place(ctx, f.Path, content, s.meanwhile)
	refused, ok := errors.AsType[*sandbox.PlaceError](err)
	if !ok {
		return kept, "", err
	}
	if err := s.files.Drop(context.WithoutCancel(ctx), record.Scope, kept.InputFile); err != nil {
		s.log.Warn("cannot note that a program has deleted a file", "execution", record.ID, "err", err)
	}
	return kept, "the workspace has no place for it: " + journal.Decode([]byte(refused.Reason)), nil
}

// noteHanded notes what has become of a file that a result has handed over. The next write of the record
// has it.
func (c *conversation) noteHanded(event *journal.ArtifactStored, kept *handedFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chronicle.Note(event)
	if kept == nil {
		return
	}
	list, err := handedOf(c.record)
	if err == nil {
		c.record.Handed, err = json.Marshal(append(list, *kept))
	}
	if err != nil {
		panic(err) // The record was read before, and what is in it can be encoded.
	}
}

// exceeds reports whether the execution would have received too much with a result of so many bytes.
func (c *conversation) exceeds(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.MaxResults > 0 && c.record.Received+size > c.o.MaxResults
}

// patience returns a context that ends when the program has to: its time is over, somebody has cancelled
// it, or it is another server's.
func (s *stretch) patience() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(context.Background(), s.until)
	go func() {
		defer cancel()
		select {
		case <-s.conversation.cancelled:
		case <-s.conversation.left:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// meanwhile takes an event that comes while a file is placed. It reports false if the program has ended.
func (s *stretch) meanwhile(event sandbox.Event) bool {
	switch event := event.(type) {
	case sandbox.Output:
		s.conversation.chronicle.noteOutput(event)
	case sandbox.Ran:
		s.conversation.spend(event.Time)
	case sandbox.Stopped: // It waits.
	case *sandbox.Calls:
		s.later = append(s.later, event) // It ran, and waits for other calls now.
	default:
		s.later = append(s.later, event)
		return false
	}
	return true
}

// interrupted returns how a program came to rest while a file was kept. It reports false if the event that
// tells it is to be heard yet.
func (s *stretch) interrupted(err error) (ending, bool) {
	select {
	case <-s.conversation.cancelled:
		return s.kill(ending{state: Cancelled}), true
	case <-s.conversation.left:
		return ending{state: Cancelled}, true
	default:
	}
	switch {
	case !errors.Is(err, sandbox.ErrInterrupted):
		return s.sandboxLost(s.sandbox.Err()), true
	case len(s.later) == 0:
		return s.timedOut(), true
	}
	for _, event := range s.later {
		if _, waits := event.(*sandbox.Calls); !waits {
			return s.hear(event) // The calls before it are not made any more.
		}
	}
	return s.timedOut(), true
}
