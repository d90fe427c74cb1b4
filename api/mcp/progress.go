package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api/runs"
	"fermata/engine/journal"
)

const (
	// progressEvery is the longest time, and progressAfter the shortest time, between two notifications
	// about a program.
	progressEvery = 15 * time.Second
	progressAfter = 250 * time.Millisecond
	// maxMessage is the maximum length of the message of a notification, in bytes.
	maxMessage = 300
)

// progress notifies a client of what its program does, if the client has asked for progress, until the
// program comes to rest or ctx ends.
func (f *face) progress(ctx context.Context, t *teller, run *runs.Run) {
	if t.token == nil {
		return
	}
	for waiting := true; waiting; {
		select {
		case <-run.Began():
			waiting = false
		case <-time.After(progressEvery):
			t.tell("waits for a sandbox")
		case <-run.Done():
			return
		case <-ctx.Done():
			return
		}
	}
	execution, events := run.Execution()
	x, err := f.o.History.Await(ctx, journal.Viewer{Principal: f.who.ID}, execution)
	if err != nil {
		return // The client gets the result nevertheless.
	}
	f.follow(ctx, x, events, func(e journal.Entry) bool {
		t.hear(e)
		return !rests(e)
	}, t.tick)
	// If there are no events, notifications are sent at regular intervals.
	for {
		select {
		case <-run.Done():
			return
		case <-ctx.Done():
			return
		case <-time.After(progressEvery):
			t.tick()
		}
	}
}

// follow calls visit for the events of an execution until visit returns false or ctx ends. The idle
// functions are called when nothing has happened for a while.
func (f *face) follow(ctx context.Context, x *journal.Execution, after int64, visit func(journal.Entry) bool, idle ...func()) {
	follower, err := x.Follow(ctx, after)
	if err != nil {
		return
	}
	defer follower.Close()
	for {
		entries, err := follower.Next(ctx, progressEvery)
		for _, e := range entries {
			if !visit(e) {
				return
			}
		}
		if errors.Is(err, io.EOF) || err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return
		}
		if len(entries) == 0 {
			for _, f := range idle {
				f()
			}
		}
	}
}

// A teller sends notifications about the progress of one program. It is for one goroutine at a time.
type teller struct {
	ctx     context.Context //nolint:containedctx // it is that of the request for which it tells
	session *sdk.ServerSession
	// token is nil if the client has not asked for progress.
	token any
	began time.Time
	told  time.Time
}

// newTeller returns a teller for a request.
func newTeller(ctx context.Context, r *sdk.CallToolRequest) *teller {
	return &teller{ctx: ctx, session: r.Session, token: r.Params.GetProgressToken(), began: time.Now()}
}

// hear sends a notification about an event, unless one was sent just before.
func (t *teller) hear(e journal.Entry) {
	if t.token == nil || time.Since(t.told) < progressAfter {
		return
	}
	if message := messageOf(e); message != "" {
		t.tell(message)
	}
}

// tick sends a notification that the program still runs.
func (t *teller) tick() { t.tell("runs") }

// tell sends a notification. Its progress is the time in seconds, which only grows.
func (t *teller) tell(message string) {
	if t.token == nil {
		return
	}
	t.told = time.Now()
	// An error means that the client has left.
	_ = t.session.NotifyProgress(t.ctx, &sdk.ProgressNotificationParams{
		ProgressToken: t.token, Progress: time.Since(t.began).Seconds(), Message: printable(shorten(message, maxMessage)),
	})
}

// messageOf returns the message of the notification about an event, or "" if there is none for it.
func messageOf(e journal.Entry) string {
	switch e.Type {
	case journal.TypeOutput:
		var output journal.Output
		if json.Unmarshal(e.Content, &output) == nil {
			return "printed: " + strings.TrimRight(output.Text, "\n")
		}
	case journal.TypeCallStarted:
		var started journal.CallStarted
		if json.Unmarshal(e.Content, &started) == nil {
			return "calls " + toolName(started.Toolset, started.Tool)
		}
	case journal.TypeCallCompleted, journal.TypeCallFailed:
		return callOf(e) + " has " + strings.TrimPrefix(e.Type, "call.")
	case journal.TypeApprovalRequested:
		return "a call waits for approval"
	}
	return ""
}

// callOf returns the call that an event is about, or "".
func callOf(e journal.Entry) string {
	var about struct {
		Call string `json:"call"`
	}
	_ = json.Unmarshal(e.Content, &about) // Events are ours.
	return about.Call
}

// toolName returns the name of a tool with that of its toolset.
func toolName(toolset, tool string) string {
	if toolset == "" {
		return tool
	}
	return toolset + "." + tool
}
