package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// A keeper keeps the files that results hand over, while the program waits for the results.
type keeper struct{ *stretch }

// receive keeps the files that the results of a client hand over, before the program gets the results. If
// the program comes to rest meanwhile, it reports true and returns how.
func (s keeper) receive(d delivery) (core.Ending, bool) {
	if len(d.handed) == 0 {
		return core.Ending{}, false
	}
	known, err := handedOf(s.c.record)
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
			if err := noteReply(s.c.ledger, h); err != nil {
				return s.broken(sandbox.Broken{Err: err}), true
			}
		}
	}
	if err := writeReplies(s.c.ledger); err != nil {
		return s.lostOwner(err)
	}
	return core.Ending{}, false
}

// noteReply notes a result of a client in the journal. Its files were kept after the round was claimed.
func noteReply(c *ledger, h core.Handing) error {
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
func writeReplies(c *ledger) error {
	if c.standing != core.StandsRunning {
		return ErrOwnerAway
	}
	err := c.amend(asItIs)
	if errors.Is(err, continuation.ErrUnavailable) {
		return nil
	}
	return err
}

// open takes the files out of the result of a call that the server has run. If the program comes to rest
// meanwhile, it reports true and returns how.
func (s keeper) open(call *served) (core.Ending, bool) {
	if !call.envelope || call.message != "" || call.givenUp {
		return core.Ending{}, false
	}
	call.size = int64(len(call.output))
	if exceeds(s.c.ledger, call.size) {
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
func (s keeper) keep(call string, files []artifact.File) (failure string, e core.Ending, rested bool) {
	record := s.c.record
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
	for _, f := range files {
		event := &journal.ArtifactStored{Call: call, Path: f.Path, Asked: f.Asked, MIME: f.Type}
		why := textFixedInput
		var kept handedFile
		if !slices.ContainsFunc(inputs, func(i core.InputFile) bool { return i.ReadOnly && i.Name == f.Path }) {
			kept, why, err = s.keepOne(record, f)
		}
		if err != nil {
			return "", s.interrupted(err), true
		}
		if why != "" {
			event.Error = s.c.chronicle.Text(why)
			noteHanded(s.c.ledger, event, nil)
			return fmt.Sprintf(textLostArtifact, f.Path, why), core.Ending{}, false
		}
		kept.Call = call
		event.ID, event.Size = kept.ID, kept.Size
		if event.MIME == "" {
			event.MIME = kept.Type
		}
		noteHanded(s.c.ledger, event, &kept)
	}
	return "", core.Ending{}, false
}

// keepOne stores one file and places it in the workspace. If the file cannot be kept, why says the reason.
// An error means that the program has come to rest, or has to be stopped.
func (s keeper) keepOne(record continuation.Record, f artifact.File) (kept handedFile, why string, err error) {
	p := placing{sandbox: s.sandbox, files: s.files, log: s.log, record: record}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s.quiet()
	s.send(&errand{stop: stop, then: func(e error) { err = e }}, func() error {
		kept, why, err = p.keep(ctx, f)
		return err
	})
	s.quiet()
	s.later = append(s.later, p.later...)
	return kept, why, err
}

// A placing keeps one file that a result has handed over. It is the work of an errand.
type placing struct {
	sandbox *sandbox.Conn
	files   Files
	log     *slog.Logger
	record  continuation.Record
	// later are the events that came meanwhile.
	later []sandbox.Event
}

// keep stores the file and places it in the workspace, until ctx ends.
func (p *placing) keep(ctx context.Context, f artifact.File) (kept handedFile, why string, err error) {
	content, err := f.Content()
	if err != nil {
		return kept, err.Error(), nil //nolint:nilerr // only the call fails
	}
	saved, err := p.files.Save(ctx, p.record.Scope, p.record.Session, f.Path, bytes.NewReader(content))
	if refused, ok := errors.AsType[refusal](err); ok {
		return kept, refused.Refusal(), nil
	}
	switch {
	case ctx.Err() != nil:
		return kept, "", sandbox.ErrInterrupted
	case err != nil:
		p.log.Warn("cannot keep a file that a tool has handed over", "execution", p.record.ID, "err", err)
		return kept, textNotStored, nil
	}
	sum := sha256.Sum256(content)
	kept.InputFile = core.InputFile{
		Session: saved.Session, ID: saved.ID, Name: f.Path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Type: saved.Type,
	}
	err = p.sandbox.Place(ctx, f.Path, content, p.meanwhile)
	if err == nil {
		return kept, "", nil
	}
	if err := p.files.Discard(ctx, p.record.Scope, kept.InputFile); err != nil {
		p.log.Warn("cannot delete a file that the workspace has not got", "execution", p.record.ID, "err", err)
	}
	refused, ok := errors.AsType[*sandbox.PlaceError](err)
	if !ok {
		return kept, "", err
	}
	return kept, "the workspace has no place for it: " + journal.Decode([]byte(refused.Reason)), nil
}

// meanwhile takes an event that arrives while a file is placed. It reports false if the program has ended.
func (p *placing) meanwhile(event sandbox.Event) bool {
	if _, waits := event.(sandbox.Stopped); waits {
		return true
	}
	p.later = append(p.later, event)
	switch event.(type) {
	case sandbox.Output, sandbox.Ran, *sandbox.Calls: // It may have run on, and wait for other calls now.
		return true
	default:
		return false
	}
}

// noteHanded notes what has become of a file that a result has handed over. The next write of the record
// will include it.
func noteHanded(c *ledger, event *journal.ArtifactStored, kept *handedFile) {
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
func exceeds(c *ledger, size int64) bool {
	return c.o.MaxResults > 0 && c.record.Received+size > c.o.MaxResults
}

// interrupted returns how a program came to rest while a file was kept.
func (s keeper) interrupted(err error) core.Ending {
	switch {
	case s.doomed != nil:
		return s.die(*s.doomed)
	case !errors.Is(err, sandbox.ErrInterrupted):
		return s.sandboxLost(s.sandbox.Err())
	}
	for _, event := range s.later {
		switch event := event.(type) {
		case *sandbox.Calls:
			event.Release() // The program has ended, so the calls that came before are not made.
		default:
			if e, rested := s.hear(event); rested {
				return e
			}
		}
	}
	return s.sandboxLost(nil)
}
