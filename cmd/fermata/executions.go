package main

import (
	"fmt"
	"path/filepath"
	"time"

	"fermata/continuation"
)

// executionSettings are the settings of executions, and of what must outlive the server.
type executionSettings struct {
	StateDir      string        `type:"path" placeholder:"DIR" help:"Directory for everything that must outlive the server: records, the secret, session files and what belongs to process sandboxes. Default: fermata in $XDG_STATE_HOME or in ~/.local/state."`
	Secret        []secret      `placeholder:"SECRET" help:"Secrets that sign continuation tokens, each of at least 32 bytes. The first one signs, all of them verify. Default: a secret that the server makes once and keeps in the state directory."`
	PauseTTL      time.Duration `name:"pause-ttl" default:"300s" help:"Longest pause. An execution that waits longer for its client expires."`
	ApprovalTTL   time.Duration `name:"approval-ttl" default:"0s" help:"Longest pause in which a call waits for approval; 0 for FERMATA_PAUSE_TTL."`
	Keep          time.Duration `default:"5m" help:"How long to keep the last answer of an ended execution for a client that repeats its request."`
	TimeoutClock  string        `enum:"running,wall" default:"running" help:"What the timeout of a request counts. running: the time in which the program may run; wall: the time of pauses as well."`
	MaxTools      int           `default:"100" help:"Most tools in one request."`
	MaxCalls      int           `default:"10000" help:"Most tool calls of one execution."`
	MaxRounds     int           `default:"20" help:"Most rounds of one execution, 1 to 10000: how often its program may pause. One that pauses once more ends."`
	MaxRunning    int           `default:"0" help:"Most executions of one client that run or wait for a sandbox; 0 for no limit. Checked when another one is started. Each server counts its own."`
	MaxPaused     int           `default:"0" help:"Most paused executions of one client; 0 for no limit. Checked when another one is started. Each server counts its own."`
	MaxResult     byteSize      `default:"5MB" help:"Largest result of one tool call."`
	MaxResults    byteSize      `default:"40MB" help:"Largest sum of all results of one execution."`
	MaxExecutions share         `default:"auto" help:"Most executions of one client that run, wait for a sandbox or are paused; 0 for no limit. auto: a quarter of FERMATA_MAX_SANDBOXES if there can be several clients (API keys of several names, or LibreChat tokens), otherwise no limit. Checked when another one is started. Each server counts its own."`
	MaxStored     byteSize      `default:"64MiB" help:"Most bytes to store for one client: its pending tool calls with their records, and its kept answers. A program whose calls would exceed this ends; an answer that would exceed it is not kept. Each server counts its own."`
}

// longestPause is how long any pause may last.
func (s *executionSettings) longestPause() time.Duration { return max(s.PauseTTL, s.ApprovalTTL) }

// mostRounds bounds MaxRounds.
const mostRounds = 10_000

func (s *executionSettings) check(m *mistakes) {
	m.unless(s.PauseTTL > 0, "pause-ttl", "more than 0")
	m.unless(s.ApprovalTTL >= 0, "approval-ttl", "0 or more")
	m.unless(s.Keep > 0, "keep", "more than 0")
	m.unless(s.MaxTools > 0, "max-tools", "more than 0")
	m.unless(s.MaxCalls > 0, "max-calls", "more than 0")
	m.unless(s.MaxRounds >= 1 && s.MaxRounds <= mostRounds, "max-rounds", fmt.Sprintf("between 1 and %d", mostRounds))
	m.unless(s.MaxRunning >= 0, "max-running", "0 or more")
	m.unless(s.MaxPaused >= 0, "max-paused", "0 or more")
	m.unless(s.MaxResult > 0, "max-result", "more than 0")
	m.unless(s.MaxResults > 0, "max-results", "more than 0")
	m.unless(s.MaxStored > 0, "max-stored", "more than 0")
}

// secrets returns the secrets that sign continuation tokens. If the settings have none, it
// uses the one in the state directory, which is made once and kept, because tokens have to
// outlive the server.
func (s *executionSettings) secrets(dir string) ([][]byte, error) {
	if len(s.Secret) > 0 {
		return reveal(s.Secret), nil
	}
	made, err := continuation.LoadOrCreateSecret(filepath.Join(dir, "secret"))
	if err != nil {
		return nil, err
	}
	return [][]byte{made}, nil
}
