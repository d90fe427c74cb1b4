package host

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// The time until a toolset that is unavailable is tried again. It grows after each failure.
const (
	firstBackOff = time.Second
	lastBackOff  = 5 * time.Minute
	// aMoment is added to it, so that the back-off of the source itself is over.
	aMoment = 10 * time.Millisecond
)

// A generation is what the toolsets file said when it was read. Executions keep the generation with which
// they have started. A generation is closed when there is a newer one and no execution keeps it.
type generation struct {
	file   *config.File
	tools  *tools.Tools
	policy *policy.Policy
	// uses counts the executions that keep the generation, and the host itself. The host's mutex guards it.
	uses int

	stop     context.CancelFunc
	starting sync.WaitGroup // the goroutines that start MCP servers

	mu sync.Mutex
	// connected are toolsets of this generation with the addresses and secrets of later ones.
	connected map[connection]*tools.Tools
	// described has the documents for searches, by the keys of the toolsets.
	described map[string][]document
}

// A connection names the generation and the toolset whose address and secrets are used.
type connection struct {
	generation *generation
	key        string
}

// make makes a generation from a file. It opens no connection. Mistakes that are found only when the
// toolsets are opened are errors, too.
func (h *generations) make(ctx context.Context, file *config.File) (*generation, error) {
	g := &generation{
		file: file, uses: 1, stop: func() {}, tools: h.opened(ctx, file),
		connected: map[connection]*tools.Tools{}, described: map[string][]document{},
	}
	var known []policy.Toolset
	var mistakes []error
	for i, t := range g.tools.Toolsets() {
		if t.State == tools.Unavailable {
			mistakes = append(mistakes, file.Toolsets[i].Unusable(t.Reason))
		}
		for _, note := range t.Notes {
			h.o.Log.Warn("the toolsets file has a part without effect", "toolset", t.Key, "reason", config.Printable(note))
		}
		known = append(known, Known(file.Toolsets[i], t))
	}
	err := errors.Join(mistakes...)
	if err == nil {
		var warnings []string
		g.policy, warnings, err = policy.New(h.o.Settings, file, known)
		for _, w := range warnings {
			h.o.Log.Warn("the toolsets file has a part without effect", "reason", w)
		}
		h.warnOfStrangers(file)
	}
	if err != nil {
		return nil, errors.Join(err, g.tools.Close(ctx))
	}
	return g, nil
}

// warnOfStrangers warns of principals in the file and in the settings that no client can be, such as misspelled
// ones.
func (h *generations) warnOfStrangers(file *config.File) {
	warn := func(place, name string) {
		if h.o.Known != nil && !h.o.Known(name) {
			h.o.Log.Warn("the toolsets file has a part without effect",
				"reason", place+config.Printable(name)+": no client can be this principal; is it the name of a key in FERMATA_API_KEYS?")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Principals)) {
		warn("principals.", name)
	}
	for _, name := range h.o.Settings.Users {
		warn("FERMATA_TOOLSETS_USERS: ", name)
	}
}

// opened opens the toolsets of a file. It opens no connection.
func (h *generations) opened(ctx context.Context, file *config.File) *tools.Tools {
	return tools.Open(ctx, tools.Options{
		File: file, Log: h.o.Log, Forbidden: h.o.Forbidden, Version: h.o.Version, Commands: h.o.Commands, MaxResult: h.o.MaxResult, Gates: h.gates,
	})
}

// start starts the MCP servers of the generation. Until close, it tries again those that are unavailable.
func (g *generation) start() {
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	for _, t := range g.file.Toolsets {
		if t.MCP != nil {
			g.starting.Go(func() { g.bring(ctx, t.Key) })
		}
	}
}

// bring asks an MCP server for its tools until they are known, or ctx ends.
func (g *generation) bring(ctx context.Context, key string) {
	for wait := firstBackOff; ; wait = min(2*wait, lastBackOff) {
		t, err := g.tools.Toolset(ctx, key)
		if err != nil || t.State == tools.Ready || len(t.Tools) > 0 {
			return
		}
		select {
		case <-time.After(wait + aMoment):
		case <-ctx.Done():
			return
		}
	}
}

// close closes all toolsets of the generation.
func (g *generation) close(ctx context.Context) error {
	g.stop()
	g.starting.Wait()
	problems := []error{g.tools.Close(ctx)}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.connected {
		problems = append(problems, t.Close(ctx))
	}
	return errors.Join(problems...)
}

// toolset returns what is known about a toolset. It is empty if there is no such toolset.
func (g *generation) toolset(key string) tools.Toolset {
	for _, t := range g.tools.Toolsets() {
		if t.Key == key {
			return t
		}
	}
	return tools.Toolset{}
}

// rules returns what the file says about a tool, and whether there is such a toolset.
func (g *generation) rules(n policy.Name) (config.Rules, bool) {
	t := g.file.Toolset(n.Toolset)
	if t == nil {
		return config.Rules{}, false
	}
	return t.Rules(n.Tool), true
}

// await waits for the toolsets of names that may be used and are being loaded. It waits for each of them no
// longer than the timeout of the toolset, and until ctx ends.
func (g *generation) await(ctx context.Context, rights policy.Rights, names []string) {
	keys := map[string]bool{}
	for _, name := range names {
		key, _, _ := strings.Cut(name, ".")
		keys[key] = true
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for _, t := range g.tools.Toolsets() {
		if t.State != tools.Starting || !keys[t.Key] || rights.Toolset(t.Key) != nil {
			continue
		}
		timeout := g.file.Toolset(t.Key).Timeout
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			_, _ = g.tools.Toolset(ctx, t.Key) // The caller asks for the result afterwards.
		})
	}
}

// known returns the tools that a caller may call, in the form that policies need. caller is one of the
// constants of config.
func (g *generation) known(caller string) []policy.Toolset {
	var known []policy.Toolset
	for _, t := range g.tools.Toolsets() {
		k := policy.Toolset{Key: t.Key, Complete: t.State == tools.Ready}
		for _, tool := range t.Tools {
			if calls(caller, tool) {
				k.Tools = append(k.Tools, tool.Name)
			}
		}
		known = append(known, k)
	}
	return known
}

// Known returns the tools of a toolset that are known without a connection, including hidden ones.
func Known(described config.Toolset, opened tools.Toolset) policy.Toolset {
	names, complete := described.Names()
	if described.OpenAPI == nil || opened.State != tools.Ready {
		return policy.Toolset{Key: described.Key, Tools: names, Complete: complete}
	}
	names = nil
	for _, tool := range opened.Tools {
		names = append(names, tool.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(described.OpenAPI.Tools)) {
		if described.OpenAPI.Tools[name].Hide {
			names = append(names, name)
		}
	}
	return policy.Toolset{Key: described.Key, Tools: names, Complete: true}
}
