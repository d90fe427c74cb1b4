// Package tools runs the tools of toolsets: it opens the toolsets of a file, lists their tools, and makes
// calls. It checks a call before it sends it, limits the size of the result, and masks the secrets in it. The
// package does not depend on programs, on who may call which tool, on approvals, or on the order of calls.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"

	"fermata/engine/tools/config"
	"fermata/engine/tools/httptool"
	"fermata/engine/tools/mcptool"
)

const (
	// DefaultMaxResult is how many bytes the result of a call may have.
	DefaultMaxResult = httptool.DefaultMaxResult
	// maxInFlight is how many bytes all answers may have that are being read at the same time.
	maxInFlight = 256 << 20
)

// Options say what to open.
type Options struct {
	// File has the toolsets.
	File *config.File
	// Log gets the causes of failures, without secrets. It may be nil.
	Log *slog.Logger
	// Forbidden are addresses to which no toolset may connect: the listeners of this server.
	Forbidden []netip.AddrPort
	// Version is the version of this server, which MCP servers are told.
	Version string
	// Commands is mcptool.Options.Dir.
	Commands string
	// MaxResult is how many bytes the result of a call may have. 0 means DefaultMaxResult.
	MaxResult int64
	// Gates limit what the toolsets use, together with other toolsets that have the same gates. They may be nil.
	Gates *Gates
}

// Tools are the toolsets of a file. It is safe for concurrent use.
type Tools struct {
	toolsets  []*toolset // in the order of the file
	log       *slog.Logger
	maxResult int64
}

// Open opens the toolsets. It opens no connections: an MCP server is connected when its tools are needed. A
// toolset that cannot be used is Unavailable, and has the reason.
func Open(ctx context.Context, o Options) *Tools {
	t := &Tools{log: o.Log, maxResult: o.MaxResult}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.maxResult <= 0 {
		t.maxResult = DefaultMaxResult
	}
	if o.Gates == nil {
		o.Gates = NewGates(mcptool.DefaultProcesses)
	}
	opener := opener{gates: o.Gates, forbidden: o.Forbidden, log: t.log, version: o.Version, commands: o.Commands}
	for _, described := range o.File.Toolsets {
		t.toolsets = append(t.toolsets, opener.open(ctx, described))
	}
	return t
}

// Close ends all connections and processes.
func (t *Tools) Close(ctx context.Context) error {
	var problems []error
	for _, s := range t.toolsets {
		if s.source != nil {
			problems = append(problems, s.source.Close(ctx))
		}
	}
	return errors.Join(problems...)
}

// find returns a toolset, or nil.
func (t *Tools) find(key string) *toolset {
	for _, s := range t.toolsets {
		if s.described.Key == key {
			return s
		}
	}
	return nil
}

// Toolsets returns all toolsets as they are known now, in the order of the file.
func (t *Tools) Toolsets() []Toolset {
	all := make([]Toolset, len(t.toolsets))
	for i, s := range t.toolsets {
		all[i] = s.now()
	}
	return all
}

// Toolset returns a toolset. If it is Starting, Toolset starts it and waits for no longer than the timeout of
// the toolset, and until ctx ends. The error means that there is no such toolset, or that ctx has ended.
func (t *Tools) Toolset(ctx context.Context, key string) (Toolset, error) {
	s := t.find(key)
	if s == nil {
		return Toolset{}, unknownToolset(key)
	}
	if err := s.start(ctx); err != nil {
		return Toolset{}, failure(err, "%s", textCancelled)
	}
	return s.now(), nil
}

// A State says whether the tools of a toolset can be called.
type State string

// The states.
const (
	Ready       State = "ready"
	Starting    State = "starting"    // nobody has connected to it yet
	Unavailable State = "unavailable" // it cannot be used, or cannot be used now
)

// A Toolset is what is known about a toolset. It contains no secrets.
type Toolset struct {
	Key, Title, Class, Description string
	// Source is http, openapi or mcp.
	Source string
	State  State
	// Reason says why the toolset is unavailable.
	Reason string
	// Tools are the tools that can be called, in an order that does not change. An unavailable
	// toolset has those that it had before.
	Tools []Tool
	// Notes are sentences for the operator that say what was left out, and why.
	Notes []string
}

// A Tool is a tool of a toolset.
type Tool struct {
	// Name is the name at the source.
	Name        string
	Description string
	// Input is the JSON Schema of the input, and Output that of the result, or nil.
	Input, Output json.RawMessage
	// Idempotent is true if a call may be repeated. The toolsets file decides, or else the source.
	Idempotent bool
	// Rules are what the toolsets file says about the tool.
	Rules config.Rules
}
