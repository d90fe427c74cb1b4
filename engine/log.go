package engine

import (
	"context"
	"log/slog"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// The log has one line for each request, which the HTTP contracts write. The lines here tell what
// happens to executions without a request, and what a request cannot know.

// longWait is from when on a wait for a sandbox is worth a line.
const longWait = time.Second

// of returns what each line about an execution tells. principal may hold text that clients chose;
// the handlers of the log quote it.
func of(r continuation.Record, more ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{
		slog.String("execution", r.ID),
		slog.String("session", r.Session),
		slog.String("principal", r.Principal),
		slog.Int("round", r.Round),
		slog.Int("calls", r.Issued),
		slog.Int64("ran_ms", r.Spent.Milliseconds()),
	}, more...)
}

func (o *Options) log(level slog.Level, message string, attrs []slog.Attr) {
	o.Log.LogAttrs(context.Background(), level, message, attrs...) //nolint:sloglint // the messages are constants
}

// logPauseEnd tells that an execution has ended in its pause, which began at since.
func (o *Options) logPauseEnd(r continuation.Record, why string, since time.Time, outcome core.Outcome) {
	level := slog.LevelInfo
	if why == core.PauseLost || why == core.PauseUnclaimed {
		level = slog.LevelWarn
	}
	o.log(level, why, of(r, slog.String("outcome", outcome.Ending()), slog.Int64("waited_ms", time.Since(since).Milliseconds())))
}

// logUnheard tells how a stretch has come to rest for whose answer no request waits: the client has
// gone, or the server before this one has died.
func (o *Options) logUnheard(r continuation.Record, outcome core.Outcome) {
	o.log(slog.LevelInfo, "a program came to rest and no request waits for its answer", of(r, slog.String("outcome", outcome.Ending())))
}

// logKept tells that a paused execution is left to the next server.
func (o *Options) logKept(r continuation.Record) {
	o.log(slog.LevelInfo, "a paused execution is kept for the next server", of(r))
}

// logTakenOver tells that this server goes on with an execution of another one, former. r is its
// record as that one left it.
func (o *Options) logTakenOver(r continuation.Record, at core.Standing) {
	o.log(slog.LevelInfo, "took an execution over from a server that has died",
		of(r, slog.String("state", string(at)), slog.String("from", journal.ServerName(r.Owner))))
}

// logBuried tells that an execution of a dead server was ended, since its program cannot go on. err
// tells more, if it is not nil.
func (o *Options) logBuried(r continuation.Record, outcome core.Outcome, from string, err error) {
	attrs := of(r, slog.String("outcome", outcome.Ending()), slog.String("from", from))
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	o.log(slog.LevelWarn, "an execution is lost: its server has died, and its program cannot go on", attrs)
}

// logLostCall tells that a call without a program was ended, since its server, from, has died.
func (o *Options) logLostCall(r continuation.Record, from string) {
	o.log(slog.LevelWarn, "a call without a program is lost: its server has died, and whether it took effect is unknown",
		of(r, slog.String("from", from)))
}

// logSandboxLost tells why the sandbox of a running program has gone.
func logSandboxLost(log *slog.Logger, r continuation.Record, err error) {
	attrs := of(r)
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	log.LogAttrs(context.Background(), slog.LevelWarn, "a running program lost its sandbox", attrs...)
}

// logForgotten tells that a journal was ended whose execution no server was there to end.
func (o *Options) logForgotten(r continuation.Record) {
	o.log(slog.LevelInfo, "ended the journal of an execution that ran out while no server had it", of(r))
}

// logWaited tells that a start has waited long for a sandbox. err tells why it got none.
func (o *Options) logWaited(s Start, waited time.Duration, err error) {
	if waited < longWait {
		return
	}
	attrs := []slog.Attr{
		slog.String("session", s.Session),
		slog.String("principal", s.Principal),
		slog.String("kind", string(s.kind())),
		slog.Int64("waited_ms", waited.Milliseconds()),
	}
	if s.RequestID != "" {
		attrs = append(attrs, slog.String("client_request_id", s.RequestID))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	o.log(slog.LevelWarn, "a start waited long for a sandbox", attrs)
}
