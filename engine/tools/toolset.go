package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"fermata/engine/tools/config"
	"fermata/engine/tools/mask"
	"fermata/engine/tools/schema"
	"fermata/engine/tools/source"
)

const (
	maxName   = 128  // bytes of the name of a tool
	maxReason = 1000 // bytes of the reason why a toolset is unavailable, and of a note
)

// A toolset is an opened toolset.
type toolset struct {
	described config.Toolset
	source    source.Source // nil if it could not be opened
	masker    *mask.Masker
	gates     *Gates
	gate      *gate
	log       *slog.Logger

	// starting is held while the source is asked for its tools.
	starting chan struct{}

	mu     sync.Mutex
	state  State
	reason string
	tools  []tool
	notes  []string
}

// A tool is a tool with the schema for its inputs.
type tool struct {
	Tool
	// schema compiles the schema when it is first asked for. It is nil if inputs are not checked.
	schema func() (*schema.Schema, error)
}

// now returns what is known about the toolset, including the present state of its source.
func (t *toolset) now() Toolset {
	s := t.known()
	if m, ok := t.source.(mcpSource); ok {
		m.observe(&s)
		s.Reason = shorten(t.masker.Text(s.Reason), maxReason)
		for i, note := range s.Notes {
			s.Notes[i] = shorten(t.masker.Text(note), maxReason)
		}
	}
	return s
}

// known returns what is known about the toolset, without asking its source.
func (t *toolset) known() Toolset {
	d := &t.described
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Toolset{
		Key: d.Key, Title: d.Title, Class: d.Class, Description: t.masker.Text(d.Description), Source: d.Source(),
		State: t.state, Reason: t.reason, Notes: slices.Clone(t.notes),
	}
	for _, known := range t.tools {
		s.Tools = append(s.Tools, known.Tool)
	}
	return s
}

// find returns a tool.
func (t *toolset) find(name string) (tool, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.tools, func(known tool) bool { return known.Name == name })
	if i < 0 {
		return tool{}, false
	}
	return t.tools[i], true
}

// start asks the source for its tools, unless they are known. It is an error if ctx ends before.
func (t *toolset) start(ctx context.Context) error {
	if t.source == nil || isReady(t) {
		return nil
	}
	select {
	case t.starting <- struct{}{}:
		defer func() { <-t.starting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if isReady(t) {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, t.described.Timeout)
	defer cancel()
	offered, err := t.source.Tools(bounded)
	switch {
	case err != nil && ctx.Err() != nil: // This does not mean that the toolset is unavailable.
		return ctx.Err()
	case err != nil:
		t.fail(err)
	default:
		t.take(offered)
	}
	return nil
}

func isReady(t *toolset) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state == Ready
}

// fail makes the toolset unavailable. Texts that do not come from this server are only logged.
func (t *toolset) fail(err error) {
	reason := textNoTools
	if failure, ok := errors.AsType[*source.CallError](err); ok {
		reason = failure.Message
	} else if own, ok := errors.AsType[*unusableError](err); ok {
		reason = own.Error()
	}
	t.mu.Lock()
	t.state, t.reason = Unavailable, shorten(t.masker.Text(reason), maxReason)
	t.mu.Unlock()
	t.log.Warn("a toolset is unavailable", "toolset", t.described.Key, "err", t.masker.Text(causes(err)))
}

// take makes the toolset ready with the tools that its source offers.
func (t *toolset) take(offered []source.Tool) {
	tools, err := t.choose(offered)
	if err != nil {
		t.fail(err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.reason, t.tools = Ready, "", tools
}

// An unusableError tells the operator why a toolset cannot be used.
type unusableError struct{ text string }

// Error returns the text.
func (e *unusableError) Error() string { return e.text }

func unusable(format string, args ...any) error {
	return &unusableError{text: fmt.Sprintf(format, args...)}
}

// choose applies what the file says to the tools that the source offers.
func (t *toolset) choose(offered []source.Tool) ([]tool, error) {
	only, rules := rulesOf(t)
	if missing := missing(offered, only, rules); len(missing) > 0 {
		return nil, unusable(textMissing, strings.Join(missing, ", "))
	}
	var tools []tool
	seen := map[string]bool{}
	for _, o := range offered {
		if only != nil && !slices.Contains(only, o.Name) || t.described.Rules(o.Name).Hide {
			continue
		}
		switch {
		case seen[o.Name]:
			return nil, unusable(textTwice, quoted(o.Name))
		case !isName(o.Name) || t.masker.Text(o.Name) != o.Name:
			warnOf(t, fmt.Sprintf(textBadName, quoted(o.Name)))
			continue
		case len(tools) == config.MaxTools:
			return nil, unusable(textTooMany, len(offered), config.MaxTools)
		}
		seen[o.Name] = true
		tools = append(tools, t.make(o))
	}
	if len(tools) == 0 {
		return nil, unusable(textEmpty)
	}
	return t.withMethods(tools)
}

// rulesOf returns the tools to which the file restricts the toolset, or nil if it has all, and the rules for
// tools by their names.
func rulesOf(t *toolset) (only []string, rules map[string]config.Rules) {
	switch d := &t.described; {
	case d.OpenAPI != nil: // its operations have been chosen already
		return nil, d.OpenAPI.Tools
	case d.MCP != nil:
		return d.MCP.Only, d.MCP.Tools
	default:
		return nil, nil
	}
}

// missing returns the tools that the file names and the source does not have.
func missing(offered []source.Tool, only []string, rules map[string]config.Rules) []string {
	var names []string
	look := func(name string) {
		if !slices.ContainsFunc(offered, func(o source.Tool) bool { return o.Name == name }) && !slices.Contains(names, quoted(name)) {
			names = append(names, quoted(name))
		}
	}
	for _, name := range only {
		look(name)
	}
	for name := range rules {
		look(name)
	}
	slices.Sort(names)
	return names
}

// make prepares one tool. What the source says about the tool is not trusted.
func (t *toolset) make(o source.Tool) tool {
	rules := t.described.Rules(o.Name)
	made := tool{Tool: Tool{
		Name: o.Name, Description: shorten(t.masker.Text(o.Description), config.MaxDescription),
		Input: t.masker.JSON(o.Input), Idempotent: o.Idempotent, Rules: rules,
	}}
	if rules.Idempotent != nil {
		made.Idempotent = *rules.Idempotent
	}
	if len(o.Output) > 0 {
		made.Output = t.masker.JSON(o.Output)
	}
	if t.described.MCP != nil {
		t.compileForeign(&made)
	} else if t.described.Validate { // These schemas were checked when the file and its documents were read.
		made.schema = sync.OnceValues(func() (*schema.Schema, error) {
			compiled, err := schema.Compile(made.Input)
			if s, ok := t.source.(interface{ Texts(tool string) []string }); ok && err == nil {
				compiled = compiled.WithTexts(s.Texts(o.Name)...)
			}
			return compiled, err
		})
	}
	return made
}

// compileForeign compiles the schemas of a tool of an MCP server. Nobody here can correct them, and the server
// checks inputs itself, so what cannot be checked is left out and noted.
func (t *toolset) compileForeign(made *tool) {
	if t.described.Validate {
		compiled, left, err := schema.CompileLenient(made.Input)
		if err != nil {
			warnOf(t, fmt.Sprintf("inputs of %s are not checked: %v", quoted(made.Name), err))
		} else {
			made.schema = func() (*schema.Schema, error) { return compiled, nil }
		}
		if len(left) > 0 {
			warnOf(t, fmt.Sprintf("inputs of %s are not checked against %s", quoted(made.Name), strings.Join(left, "; ")))
		}
	}
	if len(made.Output) > 0 {
		if _, _, err := schema.CompileLenient(made.Output); err != nil {
			made.Output = nil // The schema of the result is only a help for readers.
			warnOf(t, fmt.Sprintf("the schema of the result of %s is left out: %v", quoted(made.Name), err))
		}
	}
}

// warnOf adds a note for the operator, and logs it, since it is about something that was found after the start.
func warnOf(t *toolset, text string) {
	noteOf(t, text)
	t.log.Warn("a tool cannot be offered as it is", "toolset", t.described.Key, "note", t.masker.Text(text))
}

// noteOf adds a note for the operator.
func noteOf(t *toolset, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, shorten(t.masker.Text(text), maxReason))
}

// isName reports whether a tool can have this name.
func isName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && config.Printable(name) == name
}

// shorten truncates a text that has more than the given number of bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const dots = "…"
	end := most - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
