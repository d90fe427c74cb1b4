// Package config reads the file in which an operator describes toolsets, policies and principals.
// It checks everything that can be checked without a connection. It does not depend on how tools are called
// or on how policies are applied.
package config

import (
	"encoding/json"
	"log/slog"
	"time"

	"fermata/engine/tools/schema"
)

// A File is the content of a toolsets file, or of all files of a directory together.
type File struct {
	// Toolsets are in the order in which the files name them.
	Toolsets []Toolset
	// Policies are the policies by name.
	Policies map[string]Policy
	// Principals has the name of the policy of each principal that has one.
	Principals map[string]string
}

// Toolset returns the toolset with a key, or nil.
func (f *File) Toolset(key string) *Toolset {
	for i := range f.Toolsets {
		if f.Toolsets[i].Key == key {
			return &f.Toolsets[i]
		}
	}
	return nil
}

// A Toolset is a set of tools of one source. Exactly one of HTTP, OpenAPI and MCP is set.
type Toolset struct {
	// Key names the toolset: in requests, in policies, and as the module that programs import.
	Key string
	// Title is the toolset's name for people.
	Title string
	// Class is the name of the class that programs import.
	Class       string
	Description string
	// Concurrency is how many calls may run at the same time, over all executions of the server. 0
	// means that the toolset has no limit of its own.
	Concurrency int
	// Private allows addresses of private networks.
	Private bool
	// Proxy is the URL of the proxy through which all calls go, or empty.
	Proxy string
	// Validate tells whether inputs are checked against the schemas of the tools.
	Validate bool
	// Shared lets all principals use one connection to the MCP server, and one process of it.
	Shared bool
	// Trusted lets the MCP server run with the rights of this server.
	Trusted bool
	// Timeout is how long a call may take, including all of its retries.
	Timeout time.Duration

	HTTP    *HTTP
	OpenAPI *OpenAPI
	MCP     *MCP

	// Secrets are the texts that must never leave this server, except to the source of the toolset.
	// Each of them has at least MinSecret bytes.
	Secrets []string

	// source is a mistake without a text, at the place where the file describes the source.
	source Mistake
}

// Unusable returns the mistake that the source of the toolset cannot be used, for a reason that shows only
// when it is opened.
func (t Toolset) Unusable(reason string) *Mistake {
	mistake := t.source
	mistake.Text = Printable(reason)
	return &mistake
}

// String returns the key. The other members may contain secrets.
func (t Toolset) String() string { return t.Key }

// GoString returns the key, as String does.
func (t Toolset) GoString() string { return t.Key }

// LogValue returns the key, as String does.
func (t Toolset) LogValue() slog.Value { return slog.StringValue(t.Key) }

// MarshalText returns the key, as String does.
func (t Toolset) MarshalText() ([]byte, error) { return []byte(t.Key), nil }

// ConnectedAs returns a toolset that has the tools of t, and the address, the headers and the secrets of
// other. ok is false if both are not of the same source, or if they are MCP servers, since the tools of an
// MCP server belong to its connection.
func (t Toolset) ConnectedAs(other Toolset) (connected Toolset, ok bool) {
	switch {
	case t.HTTP != nil && other.HTTP != nil:
		h := *t.HTTP
		h.BaseURL, h.Headers = other.HTTP.BaseURL, other.HTTP.Headers
		t.HTTP = &h
	case t.OpenAPI != nil && other.OpenAPI != nil:
		o := *t.OpenAPI
		o.BaseURL, o.Headers = other.OpenAPI.BaseURL, other.OpenAPI.Headers
		t.OpenAPI = &o
	default:
		return Toolset{}, false
	}
	t.Private, t.Proxy, t.Timeout, t.Secrets = other.Private, other.Proxy, other.Timeout, other.Secrets
	return t, true
}

// Source tells where the tools come from: http, openapi or mcp.
func (t Toolset) Source() string {
	switch {
	case t.OpenAPI != nil:
		return "openapi"
	case t.MCP != nil:
		return "mcp"
	default:
		return "http"
	}
}

// HTTP is an HTTP API, the tools of which the file describes.
type HTTP struct {
	// BaseURL is where the paths of the tools begin. It may have a query, which is sent with every
	// call.
	BaseURL string
	// Headers are sent with every call.
	Headers map[string]string
	// Retries is how often a call may be repeated, if its tool is idempotent.
	Retries int
	Tools   []HTTPTool
}

// An HTTPTool is a tool that is one HTTP request.
type HTTPTool struct {
	Name        string
	Description string
	// Method is GET, HEAD, POST, PUT, PATCH or DELETE.
	Method string
	// Path begins with a slash. Each {name} in it is a required parameter.
	Path string
	// Parameters is the JSON Schema of the input, an object.
	Parameters json.RawMessage
	// Result is the JSON Pointer of the result within the answer. It is empty for the whole answer.
	Result string
	Rules
}

// OpenAPI is an HTTP API, the tools of which an OpenAPI document describes.
type OpenAPI struct {
	// File is the document's name, and Document what it contains.
	File     string
	Document *Document
	// BaseURL replaces the servers of the document. If it is empty, the URL in the document is used.
	BaseURL string
	// Headers are sent with every call.
	Headers map[string]string
	// Retries is how often a call is repeated that may be.
	Retries int
	// Only are the ids of the operations that become tools, and names with * for several of them. Tags are the
	// tags of such operations. If both are nil all operations become tools.
	Only []string
	Tags []string
	// Tools are rules for tools by name.
	Tools map[string]Rules
}

// MCP is an MCP server: either URL or Command is set.
type MCP struct {
	URL string
	// Headers are sent with every request to the URL.
	Headers map[string]string
	// Command is the program of the server and its arguments.
	Command []string
	// Env is the whole environment of the command.
	Env map[string]string
	// StartTimeout is how long the server may take for its start, or 0 if the file does not say it.
	StartTimeout time.Duration
	// Only are the names of the tools that are offered, or nil if all are.
	Only []string
	// Tools are rules for tools by name.
	Tools map[string]Rules
}

// The principals that approve calls of a tool.
const (
	ApprovalNever    = "never"    // nobody: they need no approval
	ApprovalAlways   = "always"   // the client, its owner, or an operator
	ApprovalOperator = "operator" // an operator
)

// The callers of a tool.
const (
	CallerCode   = "code"   // programs
	CallerDirect = "direct" // requests for one call without a program
)

// Rules are what the operator says about one tool.
type Rules struct {
	// Cost is what a successful call costs, in credits.
	Cost int64
	// Idempotent tells whether a call may be repeated. If it is nil, the source tells.
	Idempotent *bool
	// Approval is one of the constants above, or empty, which means ApprovalNever.
	Approval string
	// Callers are the callers that may call the tool. It is nil if all may call it.
	Callers []string
	// Lane is the name of a lane, or empty. Calls of tools with the same lane never overlap.
	Lane string
	// Envelope says that answers are envelopes {ok, error, ret}.
	Envelope bool
	// Hide removes the tool from the toolset.
	Hide bool
	// Text keeps a result that is a text as a string, even if the text is JSON.
	Text bool
}

// NeedsApproval reports whether somebody has to approve each call of the tool.
func (r Rules) NeedsApproval() bool { return r.Approval != "" && r.Approval != ApprovalNever }

// A Policy says what the principals that have it may use. A name in it is the key of a toolset, or
// the key, a dot and the tool's own name.
type Policy struct {
	// Off refuses all toolsets.
	Off bool
	// Allow are the names that may be used, or nil for all.
	Allow []string
	// Block are the names that may not be used, even if Allow has them.
	Block []string
	// MaxCost is how much one execution may cost. It is nil if there is no limit.
	MaxCost *int64
	// MaxDayCost is how much each principal may spend on one day of UTC. It is nil if there is no limit.
	MaxDayCost *int64
}

// The limits of a toolsets file.
const (
	MaxFile        = 1 << 20 // bytes of all files of a directory together
	MaxFiles       = 100     // files in a directory
	MaxDocument    = 16 << 20
	MaxToolsets    = 100
	MaxTools       = 500 // tools, operations or rules of one toolset
	MaxDescription = 4 << 10
	MaxSchema      = schema.MaxSchema // bytes of the schema of a tool's input
	MaxCost        = 1_000_000_000
	MaxConcurrency = 256
	MaxTimeout     = 300 * time.Second
	MaxRetries     = 5
	MaxSecrets     = 100     // secrets of one toolset
	MaxSecret      = 8 << 10 // bytes of a secret
	// MinSecret is the minimum number of bytes of a secret. A program could guess a shorter one by watching
	// what is masked.
	MinSecret = 16

	// DefaultTimeout is the timeout of toolsets that have none, and DefaultRetries the number of
	// retries.
	DefaultTimeout = 30 * time.Second
	DefaultRetries = 2

	maxDepth     = 40 // levels of a file, in which a schema begins at the seventh level
	maxTitle     = 200
	maxNames     = 1000 // entries of lists and maps that have no limit of their own
	maxText      = 8 << 10
	maxMistakes  = 100
	maxPrincipal = 256
)
