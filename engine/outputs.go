package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/outputs"
	"fermata/engine/sandbox"
)

// unreadable is the reason why a file is skipped that cannot be read, or is no regular file.
const unreadable = "unreadable"

// SkipReasons are the reasons why a file is skipped.
var SkipReasons = []string{"max_files", "depth", "size", "path", unreadable}

const (
	// collectTimeout bounds the time that it takes to collect all files of a program.
	collectTimeout = time.Minute
	// maxSkippedNames bounds how many skipped files an answer names.
	maxSkippedNames = 20
	// maxSkippedName bounds each of these names, in bytes.
	maxSkippedName = 1 << 10
)

// A collection collects the files that a program has left.
type collection struct {
	sandbox *sandbox.Conn
	store   Files
	log     *slog.Logger
	record  continuation.Record
	inputs  map[string]*core.InputFile // the writable input files, by name
	handed  map[string]handedFile      // what results of tools have handed over, by name
	wanted  []string                   // the files that the program had to produce
	// found tells what became of wanted files, by name. Those that it does not have are missing.
	found map[string]outputs.Found
	files []core.OutputFile
	core.Skipped
	deleted     []string
	undelivered int
}

// collect stores the files, and adds them to e.
func (c *collection) collect(e *core.Ending) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	inputs, err := core.InputsOf(c.record)
	if err == nil {
		err = c.all(ctx, inputs)
	}
	if err != nil {
		c.log.Warn("cannot collect all that a program has left", "execution", c.record.ID, "err", err)
	}
	slices.SortFunc(c.files, func(a, b core.OutputFile) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(c.deleted)
	e.Files, e.Deleted, e.Undelivered, e.Found = c.files, c.deleted, c.undelivered, c.found
	if c.Count() > 0 {
		e.Skipped = c.Skipped
	}
}

// all collects as many of the files as it can. An error says why the rest is missing.
func (c *collection) all(ctx context.Context, inputs []core.InputFile) error {
	fixed := []string{}
	sizes := map[string]int64{}
	for i, f := range inputs {
		if f.ReadOnly {
			fixed = append(fixed, f.Name)
			c.inherit(&inputs[i])
			continue
		}
		c.inputs[f.Name], sizes[f.Name] = &inputs[i], f.Size
	}
	handed, err := handedOf(c.record)
	if err != nil {
		return err
	}
	c.handed = map[string]handedFile{}
	for _, f := range handed {
		c.handed[f.Name], sizes[f.Name] = f, f.Size
	}
	found, err := c.sandbox.List(ctx, sandbox.Question{Sizes: sizes, Fixed: fixed, Wanted: c.wanted})
	if err != nil {
		return err
	}
	c.skip(found)
	c.look(found.Wanted)
	for _, name := range found.Missing {
		if file, ok := c.handed[name]; ok {
			delete(c.handed, name)
			c.forget(ctx, file.InputFile)
		}
		if input := c.inputs[name]; input != nil {
			delete(c.inputs, name)
			c.drop(ctx, input)
		}
	}
	changed := c.changed(found)
	for i, name := range changed {
		err := c.keep(ctx, name, c.inputs[name])
		if errors.Is(err, sandbox.ErrContent) {
			c.undelivered += len(changed) - i
			for _, rest := range changed[i:] {
				c.judge(rest, outputs.Found{State: outputs.Undelivered})
			}
			return err
		}
		switch {
		case errors.Is(err, sandbox.ErrUnreadable):
			c.Reasons[unreadable]++
			c.Names = append(c.Names, skippedName(name))[:min(len(c.Names)+1, maxSkippedNames)]
			c.judge(name, outputs.Found{State: outputs.Unreadable})
		case err != nil:
			c.log.Warn("cannot keep a file that a program has left", "execution", c.record.ID, "err", err)
			c.undelivered++
			c.judge(name, outputs.Found{State: outputs.Undelivered})
		}
	}
	return nil
}

// changed returns the files that are new or changed, those first that the program had to produce: what
// room there is should be theirs. It adds the files that are unchanged. A file that a tool has handed over
// is one that the program has produced; an input file that it has only left alone is not.
func (c *collection) changed(found sandbox.Listing) []string {
	var first, rest []string
	for _, f := range found.Files {
		input := c.inputs[f.Name]
		handed, ok := c.handed[f.Name]
		switch {
		case ok && f.SHA256 == handed.SHA256:
			c.add(handed.output(input))
		case input != nil && f.SHA256 == input.SHA256:
			c.inherit(input)
		case slices.Contains(c.wanted, f.Name):
			first = append(first, f.Name)
		default:
			rest = append(rest, f.Name)
		}
	}
	return append(first, rest...)
}

// obstructed are the states that a sandbox can tell of a file.
var obstructed = []outputs.State{outputs.TooLarge, outputs.NotRegular, outputs.Unreadable}

// look notes why files are not listed that the program had to produce. A sandbox can tell nothing else
// of them.
func (c *collection) look(obstacles map[string]sandbox.Obstacle) {
	for _, name := range c.wanted {
		o := obstacles[name]
		state := outputs.State(o.State)
		if slices.Contains(obstructed, state) {
			c.judge(name, outputs.Found{State: state, Size: max(0, o.Size)})
		}
	}
}

// judge notes what has become of a file, if the program had to produce it.
func (c *collection) judge(name string, f outputs.Found) {
	if slices.Contains(c.wanted, name) {
		c.found[name] = f
	}
}

// add adds a file that the program has produced, and that is stored.
func (c *collection) add(f core.OutputFile) {
	c.files = append(c.files, f)
	c.judge(f.Name, outputs.Found{State: outputs.Produced, ID: f.ID, Size: f.Size, Type: f.Type})
}

// inherit adds an input file that the program has not changed.
func (c *collection) inherit(input *core.InputFile) {
	c.files = append(c.files, core.OutputFile{
		Session: input.Session, ID: input.ID, Name: input.Name, Size: input.Size, Type: input.Type, Input: input, Inherited: true,
	})
}

// drop notes that the program has deleted an input file.
func (c *collection) drop(ctx context.Context, input *core.InputFile) {
	c.deleted = append(c.deleted, input.Name)
	c.forget(ctx, *input)
}

// forget notes that the program has deleted a file, if that is one of its session.
func (c *collection) forget(ctx context.Context, f core.InputFile) {
	if f.Session != c.record.Session {
		return
	}
	if err := c.store.Drop(ctx, c.record.Scope, f); err != nil {
		c.log.Warn("cannot note that a program has deleted a file", "execution", c.record.ID, "err", err)
	}
}

// skip counts and names the files that the supervisor has left out of its listing.
func (c *collection) skip(found sandbox.Listing) {
	c.Reasons = map[string]int{}
	for _, reason := range SkipReasons {
		if n := found.Reasons[reason]; n > 0 {
			c.Reasons[reason] = n
		}
	}
	for _, name := range found.Skipped[:min(len(found.Skipped), maxSkippedNames)] {
		c.Names = append(c.Names, skippedName(name))
	}
}

// keep takes one file out of the sandbox and stores it. input is the input file that it replaces,
// if there is one.
func (c *collection) keep(ctx context.Context, name string, input *core.InputFile) error {
	content, err := c.sandbox.Take(ctx, name)
	if err != nil {
		return err
	}
	saved, err := c.store.Save(ctx, c.record.Scope, c.record.Session, name, content)
	// The rest of this file must not be taken for the beginning of the next one.
	if _, drained := io.Copy(io.Discard, content); drained != nil {
		return drained
	}
	if err != nil {
		return err
	}
	saved.Input = input
	c.add(saved)
	return nil
}

// skippedName returns what an answer tells of the name of a skipped file.
func skippedName(name string) string {
	return journal.Decode([]byte(name[:min(len(name), maxSkippedName)]))
}
