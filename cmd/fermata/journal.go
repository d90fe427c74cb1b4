package main

import (
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
)

// journalSettings are the settings of the journals of executions.
type journalSettings struct {
	Mode     journal.Mode  `name:"journal" enum:"full,calls,off" default:"full" help:"What the journals of executions keep. full: everything; calls: no values, output or code; off: no events, so that only summaries can be seen. The journal of an execution stays as it was at its start."`
	Value    byteSize      `name:"journal-value" default:"64KiB" help:"Largest input or result of a tool call that a journal keeps whole, as compact JSON. Of a larger one it keeps the beginning."`
	Life     time.Duration `name:"journal-life" default:"24h" help:"How long to keep a journal after the end of its execution."`
	Quota    byteSize      `name:"journal-quota" default:"256MiB" help:"Most bytes of journals of one client. Beyond that, the oldest ones of ended executions go. A journal counts as at least 4 KiB."`
	CallMark string        `name:"call-mark" enum:"colon,underscore" default:"colon" help:"What stands in the names of records of calls between their type and the UUID. colon: as in ptc:9a0c…; underscore: as in ptc_9a0c…, for systems whose ids have no colons. The records of an execution stay as they were at its start."`
	Timeline string        `name:"timeline-namespace" placeholder:"WORD" help:"What the paths of blocks in timelines begin with. conv: with conv:, as in conv:fi:turn_1.files/a.csv; empty: with nothing. A request may choose by ?namespace=."`
	Space    byteSize      `name:"journal-space" default:"4GiB" help:"Most bytes of journals of all clients. Beyond that, the oldest ones of ended executions go."`
}

func (s *journalSettings) check(m *mistakes) {
	m.unless(s.Value > 0 && s.Value <= maxJournalValue, "journal-value", "more than 0 and at most 1 MiB")
	m.unless(s.Life > 0, "journal-life", "more than 0")
	m.unless(s.Quota > 0, "journal-quota", "more than 0")
	m.unless(s.Space > 0, "journal-space", "more than 0")
	m.unless(s.Timeline == "" || s.Timeline == "conv", "timeline-namespace", "conv or empty")
}

// maxJournalValue bounds what a journal keeps of one value: an event is read and sent at once.
const maxJournalValue byteSize = 1 << 20

// options returns the settings that the engine has to know.
func (s *journalSettings) options() journal.Options {
	return journal.Options{Mode: s.Mode, Value: int(s.Value), Life: s.Life, Mark: map[string]string{"underscore": "_"}[s.CallMark]}
}

// limits returns the settings that the store has to know.
func (s *journalSettings) limits() continuation.JournalLimits {
	return continuation.JournalLimits{Principal: int64(s.Quota), All: int64(s.Space)}
}
