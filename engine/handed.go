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

	"fermata/continuation"
	"fermata/engine/artifact"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// The errors of calls whose results hand over files that cannot be kept.
const (
	textLostArtifact = "the result hands over the file %s, which cannot be kept: %s"
	textManyHanded   = "an execution may be handed at most %d files, and has %d already"
	textNoFiles      = "this server keeps no files"
	textFixedInput   = "it is an input file that may not be changed"
	textNotStored    = "the server cannot store it"
)

// A refusal is an error of Files whose text tells the author of a file why the file is refused.
type refusal interface {
	error
	Refusal() string
}

// receive keeps the files that the results of a client hand over, before the program gets the results. If
// the program comes to rest meanwhile, it reports true and returns how.
func (s *stretch) receive(d delivery) (core.Ending, bool) {
	if len(d.handed) == 0 {
		return core.Ending{}, false
	}
	known, err := handedOf(s.conversation.copy())
	if err != nil {
		return s.broken(sandbox.Broken{Err: err}), true
	}
	for _, h := range d.handed {
		if h.Noted && slices.ContainsFunc(known, func(f handedFile) bool { return f.Call == h.CallID }) {
			continue // The files are kept already.
		}
		failure, e, rested := s.keep(h.CallID, h.Files)
		if rested {
			return e, true
		}
		if failure != "" {
			h.Reply = h.WithoutFiles(failure)
			number := d.results[h.Index].Number
			d.results[h.Index] = h.ForSandbox()
			d.results[h.Index].Number = number
		}
		if !h.Noted {
			if err := s.conversation.noteReply(h); err != nil {
				return s.broken(sandbox.Broken{Err: err}), true
			}
		}
	}
	if err := s.conversation.writeReplies(); err != nil {
		return s.lostOwner(err)
	}
	return core.Ending{}, false
}

// noteReply notes a result of a client in the journal. Its files were kept after the round was claimed.
func (c *conversation) noteReply(h core.Handing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chronicle.Note(c.chronicle.outcomeOf(h.Reply, h.Started))
	pending := slices.Clone(c.record.Pending)
	for i := range pending {
		if pending[i].ID == h.CallID {
			if err := core.MoveCall(&pending[i], core.CallAnswered); err != nil {
				return err
			}
		}
	}
	c.note(func(r *continuation.Record) { r.Pending = pending })
	return nil
}

// writeReplies records the results of a client that have handed files over. If the store is not available,
// a later write will include them.
func (c *conversation) writeReplies() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing != core.StandsRunning {
		return ErrOwnerAway
	}
	err := c.amend(context.Background(), asItIs)
	if errors.Is(err, continuation.ErrUnavailable) {
		return nil
	}
	return err
}

// open takes the files out of the result of a call that the server has run. If the program comes to rest
// meanwhile, it reports true and returns how.
func (s *stretch) open(call *served) (core.Ending, bool) {
	if !call.envelope || call.message != "" || call.givenUp {
		return core.Ending{}, false
	}
	call.size = int64(len(call.output))
	if s.conversation.exceeds(call.size) {
		return core.Ending{}, false // The call will fail because of the limit.
	}
	files, rest, err := artifact.Of(call.output, artifact.PathIn(call.input))
	failure := ""
	if err != nil {
		failure = fmt.Sprintf(core.TextBadArtifact, err)
	} else if len(files) > 0 {
		var e core.Ending
		var rested bool
		if failure, e, rested = s.keep(call.call.ID, files); rested {
			return e, true
		}
	}
	if call.output = rest; failure != "" {
		// The tool has done its work, so the call keeps its cost.
		call.message, call.unknown, call.details, call.output = failure, true, core.ArtifactFailed(), nil
	}
	return core.Ending{}, false
}

// keep stores the files of a result, and places them in the workspace. If it cannot keep all of them,
// failure says why the call fails. If the program comes to rest meanwhile, rested is true and e says how.
func (s *stretch) keep(call string, files []artifact.File) (failure string, e core.Ending, rested bool) {
	record := s.conversation.copy()
	inputs, err := core.InputsOf(record)
	known, knownErr := handedOf(record)
	switch {
	case err != nil || knownErr != nil:
		return "", s.broken(sandbox.Broken{Err: errors.Join(err, knownErr)}), true
	case s.files == nil:
		return textNoFiles, core.Ending{}, false
	case len(known)+len(files) > artifact.MaxFiles:
		return fmt.Sprintf(textManyHanded, artifact.MaxFiles, len(known)), core.Ending{}, false
	}
	ctx, stop := s.patience()
	defer stop()
	for _, f := range files {
		event := &journal.ArtifactStored{Call: call, Path: f.Path, Asked: f.Asked, MIME: f.Type}
		why := textFixedInput
		var kept handedFile
		if !slices.ContainsFunc(inputs, func(i core.InputFile) bool { return i.ReadOnly && i.Name == f.Path }) {
			kept, why, err = s.keepOne(ctx, record, f)
		}
		if err != nil {
			e, rested = s.interrupted(err)
			return "", e, rested
		}
		if why != "" {
			event.Error = s.conversation.chronicle.Text(why)
			s.conversation.noteHanded(event, nil)
			return fmt.Sprintf(textLostArtifact, f.Path, why), core.Ending{}, false
		}
		kept.Call = call
		event.ID, event.Size = kept.ID, kept.Size
		if event.MIME == "" {
			event.MIME = kept.Type
		}
		s.conversation.noteHanded(event, &kept)
	}
	return "", core.Ending{}, false
}

// keepOne stores one file and places it in the workspace. If the file cannot be kept, why says the reason.
// An error means that the program has come to rest, or has to be stopped.
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
	kept.InputFile = core.InputFile{
		Session: saved.Session, ID: saved.ID, Name: f.Path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Type: saved.Type,
	}
	err = s.sandbox.Place(ctx, f.Path, content, s.meanwhile)
	if err == nil {
		return kept, "", nil
	}
	if err := s.files.Discard(ctx, record.Scope, kept.InputFile); err != nil {
		s.log.Warn("cannot delete a file that the workspace has not got", "execution", record.ID, "err", err)
	}
	refused, ok := errors.AsType[*sandbox.PlaceError](err)
	if !ok {
		return kept, "", err
	}
	return kept, "the workspace has no place for it: " + journal.Decode([]byte(refused.Reason)), nil
}

// noteHanded notes what has become of a file that a result has handed over. The next write of the record
// will include it.
func (c *conversation) noteHanded(event *journal.ArtifactStored, kept *handedFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chronicle.Note(event)
	if kept == nil {
		return
	}
	list, err := handedOf(c.record)
	if err == nil {
		var handed []byte
		handed, err = json.Marshal(append(list, *kept))
		c.note(func(r *continuation.Record) { r.Handed = handed })
	}
	if err != nil {
		panic(err) // It does not happen: what was decoded from the record can be encoded.
	}
}

// exceeds reports whether a result of this size exceeds what the execution may receive in all.
func (c *conversation) exceeds(size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.MaxResults > 0 && c.record.Received+size > c.o.MaxResults
}

// patience returns a context that ends when the program must stop: its time is over, somebody has cancelled
// it, or another server has taken it over.
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

// meanwhile handles an event that arrives while a file is placed. It reports false if the program has ended.
func (s *stretch) meanwhile(event sandbox.Event) bool {
	switch event := event.(type) {
	case sandbox.Output:
		s.conversation.chronicle.noteOutput(event)
	case sandbox.Ran:
		s.conversation.spend(event.Time)
	case sandbox.Stopped: // The program waits.
	case *sandbox.Calls:
		s.later = append(s.later, event) // The program has run on, and waits for other calls now.
	default:
		s.later = append(s.later, event)
		return false
	}
	return true
}

// interrupted returns how a program came to rest while a file was kept. It reports false if that is not
// known yet because the event about it has not arrived.
func (s *stretch) interrupted(err error) (core.Ending, bool) {
	select {
	case <-s.conversation.cancelled:
		return s.kill(core.Ending{State: core.Cancelled}), true
	case <-s.conversation.left:
		return core.Ending{State: core.Cancelled}, true
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
			return s.hear(event) // The program has ended, so the calls that came before are not made.
		}
	}
	return s.timedOut(), true
}
