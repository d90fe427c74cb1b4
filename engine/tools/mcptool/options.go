// Package mcptool runs the tools of an MCP server.
//
// The official SDK implements the protocol. Below it are transports of our own, because an MCP server may
// send anything: they limit what is read, answer each request of the server with "method not found", and
// drop its notifications. So the SDK gets nothing but answers to our own requests.
//
// Each principal has a session, and a process, of its own, unless the operator says that all may
// share one. The tools are pinned when the server is first asked for them: a tool that changes later is
// hidden until the toolsets file is read again.
package mcptool

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"fermata/engine/tools/outgoing"
)

// The limits of an MCP server.
const (
	MaxMessage       = 8 << 20 // bytes of one message
	MaxList          = 4 << 20 // bytes of the list of tools
	MaxTools         = 1000
	MaxPages         = 100 // of the list of tools
	MaxNotifications = 100 // notifications and requests that a server sends within a second
	MaxSessions      = 16  // sessions of one principal
	DefaultProcesses = 64  // processes of this server, for all principals, if there is no setting
	MaxStderr        = 64 << 10
	MaxDepth         = 200 // levels of a result
	MaxSchema        = 64 << 10
	MaxDescription   = 4 << 10

	maxWaiting  = 1000  // requests without an answer in a session
	maxSlots    = 10000 // principals that a source remembers
	maxReported = 100   // changes that a source remembers
	maxText     = 8 << 10
	maxStarting = 4   // processes that start at the same time
	maxName     = 256 // bytes of the name of a tool
)

// times are the waits of a source. Tests have shorter ones.
type times struct {
	start, idle, stop, write, fresh time.Duration
	room                            time.Duration // for the memory of a large message
	backOff, backOffMax             time.Duration
	probe                           time.Duration // for the answer to the first request of all
	steady                          time.Duration // how long a session must live for its start not to count as failed
}

var usual = times{
	start: 30 * time.Second, idle: 5 * time.Minute, stop: 5 * time.Second, write: 5 * time.Second,
	fresh: 5 * time.Minute, backOff: time.Second, backOffMax: 5 * time.Minute, steady: 10 * time.Second,
	probe: 3 * time.Second, room: 15 * time.Second,
}

// Options describe an MCP server. Either Command or URL is set.
type Options struct {
	// Toolset is the key of the toolset, for the log.
	Toolset string
	// Version is the version of this server, which MCP servers are told.
	Version string

	// Command is the program of a server that speaks over its standard input and output, and its
	// arguments.
	Command []string
	// Env is the environment of the command, to which only PATH is added.
	Env map[string]string
	// Dir is the directory in which commands have their folders, or "" for the temporary directory. It is this
	// server's alone: Clear removes what is in it.
	Dir string
	// Trusted lets the command run with the rights of this server. Without it there is no source for
	// a command.
	Trusted bool

	// URL is the endpoint of a server that speaks streamable HTTP.
	URL string
	// Headers are sent with each request to the URL.
	Headers map[string]string
	// Transport returns the transport for the requests of a principal. It must not repeat requests.
	Transport func(principal string) http.RoundTripper

	// StartTimeout is how long a server may take for its start, or 0 for 30 s.
	StartTimeout time.Duration
	// Shared lets all principals use one session.
	Shared bool
	// Only are the names of the tools that are offered, or nil if all are.
	Only []string
	// Named are tools for which the file has rules. If the server does not offer a tool of Named or Only, the
	// toolset is unavailable, since the tool for which the rules were meant may have another name now.
	Named []string
	// Text reports whether a text that a tool returns stays a string, even if the text is JSON. It may be nil.
	Text func(tool string) bool

	// Mask takes secrets out of what is logged. It may be nil.
	Mask func(string) string
	// Budget limits the bytes of the messages that are in memory. It may be nil.
	Budget *outgoing.Budget
	// Limits count sessions and processes together with other sources. It may be nil.
	Limits *Limits
	// Log gets what the command writes to its standard error, and changes of tools. It may be nil.
	Log *slog.Logger

	times *times
}

// check completes options, or says what is wrong with them.
func (o *Options) check() error {
	switch {
	case (len(o.Command) > 0) == (o.URL != ""):
		return errors.New("an MCP server has either a command or a URL")
	case len(o.Command) > 0 && !o.Trusted:
		return errors.New("the command of an MCP server runs with the rights of this server: set `trusted: true` if it may, or use a server with a URL")
	case o.URL != "" && o.Transport == nil:
		return errors.New("an MCP server with a URL needs a transport")
	}
	if o.URL != "" {
		if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("the URL of an MCP server must begin with http:// or https://, and have a host")
		}
	} else if c := o.Command[0]; strings.ContainsRune(c, filepath.Separator) && !filepath.IsAbs(c) {
		path, err := filepath.Abs(c) // the process has a working directory of its own
		if err != nil {
			return errors.New("the command of an MCP server cannot be found")
		}
		o.Command = append([]string{path}, o.Command[1:]...)
	}
	if o.Text == nil {
		o.Text = func(string) bool { return false }
	}
	if o.Mask == nil {
		o.Mask = func(s string) string { return s }
	}
	if o.Limits == nil {
		o.Limits = NewLimits(DefaultProcesses)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.times == nil {
		o.times = &usual
	}
	if o.StartTimeout > 0 {
		t := *o.times
		t.start = o.StartTimeout
		o.times = &t
	}
	return nil
}
