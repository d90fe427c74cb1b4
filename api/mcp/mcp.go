// Package mcp makes Fermata a server of the Model Context Protocol. It offers five tools with which agents
// run programs, search the tools that programs may call, and read files. It speaks the protocol over HTTP,
// with the same middleware as all routes, and over any other transport of the SDK. It does not depend on how
// programs run, or on where toolsets come from.
package mcp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/api/auth"
	"fermata/api/runs"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/files"
	"fermata/engine/journal"
)

// Executions run programs; *engine.Engine implements it.
type Executions interface {
	// Start runs a program until it pauses or ends.
	Start(ctx context.Context, s engine.Start) (core.Outcome, error)
	// Resume continues a paused execution until it pauses again or ends.
	Resume(ctx context.Context, r engine.Resume) (core.Outcome, error)
	// Cancel ends an execution. If it names a request that has not arrived yet, that request is refused when
	// it arrives.
	Cancel(ctx context.Context, c engine.Cancel) (engine.Cancelling, error)
	// Approve decides on a call that waits for approval.
	Approve(ctx context.Context, a engine.Approval) error
	// Latest returns the present state of an execution of a principal.
	Latest(ctx context.Context, principal, execution string) (engine.Latest, error)
}

// Files keep the files of sessions; *files.Store implements it.
type Files interface {
	// SessionInputs returns the files of a session as inputs of a program.
	SessionInputs(ctx context.Context, owner files.Owner, session string) ([]core.InputFile, error)
	List(ctx context.Context, owner files.Owner, session string) ([]files.File, error)
	// Content opens a part of the contents of a file that List has described.
	Content(ctx context.Context, f files.File, from, to int64) (io.ReadCloser, error)
}

// Options are the settings of the contract.
type Options struct {
	Executions Executions
	Files      Files
	History    *journal.History
	// Toolsets tells which tools programs may call. It is nil if there are none.
	Toolsets Toolsets
	// Package is the name of the package from which programs import toolsets.
	Package string
	// Readers limit how many requests wait for programs at once.
	Readers *api.Readers
	// Key signs the ids of sessions over HTTP.
	Key     Key
	Version string
	Log     *slog.Logger
}

// A Server answers requests of the protocol. It must be closed.
type Server struct {
	o    Options
	runs *runs.Group
}

// New returns a Server.
func New(o Options) *Server { return &Server{o: o, runs: runs.NewGroup(maxLeft)} }

// Close ends the programs that run for this server, and waits for that until ctx ends.
func (s *Server) Close(ctx context.Context) error { return s.runs.Close(ctx) }

// A caller describes the client that speaks with the server, and its connection.
type caller struct {
	who auth.Principal
	// admit counts the start of a program against the rate limit, or refuses it. It may be nil.
	admit func() error
	// request is the name by which the request can be cancelled, or empty.
	request string
	// depth is the number of toolsets through which the request has come.
	depth int
	// ended, if it is set, ends when nobody waits for the answer any more.
	ended context.Context //nolint:containedctx // it is the end of a request, which the SDK does not pass on
	// lossy is true if the connection may be lost although the client still wants the answer.
	lossy bool
	// stream is the answer to a request over HTTP, on which older clients can be asked for input.
	stream *stream
}

// Serve speaks with one principal over a transport until the transport is closed.
func (s *Server) Serve(ctx context.Context, who auth.Principal, t sdk.Transport) error {
	return s.face(caller{who: who}).Run(ctx, t)
}

// A face is the server for one caller.
type face struct {
	*Server
	caller
}

// schemas are shared by all faces.
var schemas = sync.OnceValue(sdk.NewSchemaCache) //nolint:gochecknoglobals // it is a cache of constants

// face returns the server of the SDK that answers a caller.
func (s *Server) face(c caller) *sdk.Server {
	f := &face{s, c}
	server := sdk.NewServer(&sdk.Implementation{Name: "fermata", Title: "Fermata", Version: s.o.Version}, &sdk.ServerOptions{
		Instructions: fmt.Sprintf(instructions, s.o.Package),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
		SchemaCache:  schemas(),
		// What there is depends on the caller.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
		Logger:       slog.New(slog.DiscardHandler),
	})
	f.add(server, runTool(s.o.Package, f.catalog()), f.runProgram)
	f.add(server, waitTool, f.waitForProgram)
	f.add(server, searchTool, f.searchTools)
	f.add(server, listTool, f.listFiles)
	f.add(server, readTool, f.readFile)
	f.addResources(server)
	return server
}

// add adds a tool. An error of its handler becomes a result with the text of the error, so that the model
// sees it.
func (f *face) add(server *sdk.Server, t *sdk.Tool, h func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	server.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if f.ended != nil {
			var stop context.CancelFunc
			ctx, stop = context.WithCancel(ctx)
			defer stop()
			defer context.AfterFunc(f.ended, stop)() //nolint:contextcheck // it ends with the request
		}
		result, err := h(ctx, r)
		if err != nil {
			return f.refusal(ctx, t.Name, err), nil
		}
		return result, nil
	})
}

// refusal returns the result of a call that was refused or went wrong.
func (f *face) refusal(ctx context.Context, tool string, err error) *sdk.CallToolResult {
	told := api.ErrorOf(ctx, err)
	if told.Status >= 500 && ctx.Err() == nil {
		f.o.Log.Error("a call over MCP has failed", "principal", api.Bounded(f.who.ID), "tool", tool, "err", err)
	}
	text := []string{told.Text}
	for _, more := range []string{told.Message, told.Detail} {
		if more != "" {
			text = append(text, more)
		}
	}
	return failed(strings.Join(text, ": "))
}

// failed returns a result that reports an error.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: true,
		StructuredContent: map[string]string{"status": "error", "error": text},
	}
}
