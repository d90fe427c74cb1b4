package config

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fermata/stubs"
)

// taken are the names that the package of programs uses itself.
var taken = []string{"ToolExecutionError"}

// readToolsets reads the toolsets of one file.
func (r *reader) readToolsets(v value) {
	for _, e := range v.entries(MaxToolsets) {
		if !stubs.IsToolsetKey(e.name) && !stubs.IsKeyword(e.name) {
			e.place.wrong("the key of a toolset must begin with a small letter and have at most 64 small letters, digits and underscores")
			continue
		}
		if stubs.IsKeyword(e.name) {
			e.place.wrong("%s is a keyword of Python, so that no program could import the toolset; take another key", e.name)
			continue
		}
		if first, twice := r.toolsets[e.name]; twice {
			e.place.wrong("the toolset is already in %s:%d; leave one of them out", Printable(first.file), first.line)
			continue
		}
		if len(r.toolsets) == MaxToolsets {
			e.place.wrong("is one toolset too many: at most %d are allowed in all files together", MaxToolsets)
			return
		}
		r.toolsets[e.name] = e.place
		r.file.Toolsets = append(r.file.Toolsets, r.readToolset(e.name, e.place))
	}
}

// readToolset reads one toolset.
func (r *reader) readToolset(key string, v value) Toolset {
	t := Toolset{Key: key, Title: key, Validate: true, Timeout: DefaultTimeout}
	m := v.members("title", "class", "description", "concurrency", "private", "proxy", "validate", "shared", "trusted", "unmasked", "http", "openapi", "mcp")
	var secrets vault
	flags := map[string]*bool{"private": &t.Private, "validate": &t.Validate, "shared": &t.Shared, "trusted": &t.Trusted, "unmasked": &secrets.unmasked}
	for name, flag := range flags {
		if v, found := m.get(name); found {
			*flag = v.flag()
		}
	}
	if v, found := m.get("title"); found {
		t.Title, _ = v.text(maxTitle)
	}
	t.Class = r.readClass(m, t)
	if v, found := m.get("description"); found {
		t.Description, _ = v.prose(MaxDescription)
	}
	if v, found := m.get("concurrency"); found {
		t.Concurrency = int(v.integer(1, MaxConcurrency))
	}
	if v, found := m.get("proxy"); found {
		t.Proxy = v.proxy()
	}
	r.readSource(m, &t, &secrets)
	t.Secrets = secrets.secrets
	return t
}

// readClass returns the name of a toolset's class and reports one that another toolset has.
func (r *reader) readClass(m members, t Toolset) string {
	class, place := stubs.ClassName(t.Title, t.Key), m.of
	if v, found := m.get("class"); found {
		place = v
		name, ok := v.text(maxTitle)
		if !ok {
			return ""
		}
		if !stubs.IsClassName(name) {
			v.wrong("must be the name of a class in Python: a letter, then at most 63 letters, digits and underscores, and no keyword")
			return ""
		}
		class = name
	}
	if class == "" {
		place.wrong("neither the title nor the key makes the name of a class; give it one by class")
		return class
	}
	if slices.Contains(taken, class) {
		place.wrong("the class %s is one that every program has; give the toolset another one by class", class)
		return class
	}
	if first, twice := r.classes[class]; twice {
		place.wrong("its class %s is that of the toolset in %s:%d; give one of them another one by class", class, Printable(first.file), first.line)
		return class
	}
	r.classes[class] = m.of
	return class
}

// readSource reads where the tools come from.
func (r *reader) readSource(m members, t *Toolset, secrets *vault) {
	var found []string
	for _, name := range []string{"http", "openapi", "mcp"} {
		if _, ok := m.get(name); ok {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 0 && m.of.node.Kind == yaml.MappingNode:
		m.of.wrong("has no source; write one of http, openapi and mcp")
	case len(found) > 1:
		m.of.wrong("has the sources %s; a toolset has one, so make several toolsets of it", strings.Join(found, " and "))
	case len(found) == 1:
		v := m.found[found[0]]
		t.source = Mistake{File: v.file, Line: v.line, Path: v.path}
		switch found[0] {
		case "http":
			t.HTTP = r.readHTTP(v, t, secrets)
		case "openapi":
			t.OpenAPI = r.readOpenAPI(v, t, secrets)
		case "mcp":
			t.MCP = r.readMCP(v, t, secrets)
			checkPrograms(m, *t)
		}
	}
	if len(found) == 1 && t.MCP == nil {
		for _, name := range []string{"shared", "trusted"} {
			if v, ok := m.get(name); ok {
				v.wrong("is for MCP servers only; leave it out")
			}
		}
	}
}

// checkPrograms reports members that are not allowed for an MCP server that is a program on this machine.
func checkPrograms(m members, t Toolset) {
	if _, isCommand := find(m.found["mcp"].node, "command"); !isCommand {
		if v, found := m.get("trusted"); found {
			v.wrong("is for MCP servers with a command only; leave it out")
		}
		return
	}
	if v := m.found["mcp"]; !t.Trusted {
		v.wrong("the command runs with the rights of the server and may read what it may read; set trusted: true on the toolset if you trust it")
	}
	for _, name := range []string{"private", "proxy"} {
		if v, found := m.get(name); found {
			v.wrong("does not bind an MCP server with a command, which opens its own connections; leave it out")
		}
	}
}

// readLimits reads the timeout and the retries of a source.
func readLimits(m members, t *Toolset) (retries int) {
	if v, found := m.get("timeout"); found {
		t.Timeout = v.duration(time.Millisecond, MaxTimeout)
	}
	retries = DefaultRetries
	if v, found := m.get("retries"); found {
		retries = int(v.integer(0, MaxRetries))
	}
	return retries
}

func (r *reader) readHTTP(v value, t *Toolset, secrets *vault) *HTTP {
	m := v.members("base_url", "headers", "timeout", "retries", "tools")
	h := &HTTP{Retries: readLimits(m, t)}
	if v, found := m.need("base_url", "write the URL where the paths of the tools begin"); found {
		h.BaseURL = v.url(secrets)
	}
	if v, found := m.get("headers"); found {
		h.Headers = v.headers(secrets)
	}
	if v, found := m.need("tools", "write a list with at least one tool"); found {
		h.Tools = v.httpTools()
	}
	return h
}

func (r *reader) readOpenAPI(v value, t *Toolset, secrets *vault) *OpenAPI {
	m := v.members("file", "base_url", "headers", "timeout", "retries", "operations", "tags", "tools")
	o := &OpenAPI{Retries: readLimits(m, t)}
	if v, found := m.need("file", "write the name of an OpenAPI document"); found {
		var text []byte
		o.File, text = v.document()
		o.Document = NewDocument(text)
	}
	if v, found := m.get("base_url"); found {
		o.BaseURL = v.url(secrets)
	}
	if v, found := m.get("headers"); found {
		o.Headers = v.headers(secrets)
	}
	if v, found := m.get("operations"); found {
		if o.Only = v.names(MaxTools); len(o.Only) == 0 {
			v.wrong("names no operation; name at least one, or leave it out to have all")
		}
	}
	if v, found := m.get("tags"); found {
		if o.Tags = v.names(MaxTools); len(o.Tags) == 0 {
			v.wrong("names no tag; name at least one, or leave it out to have all operations")
		}
	}
	if v, found := m.get("tools"); found {
		o.Tools = v.overrides(o.named(), "envelope")
	}
	return o
}

// named returns the names of the only operations that become tools, or nil if these are not known from the file.
func (o *OpenAPI) named() []string {
	if o.Tags != nil || slices.ContainsFunc(o.Only, func(name string) bool { return strings.Contains(name, "*") }) {
		return nil
	}
	return o.Only
}

func (r *reader) readMCP(v value, t *Toolset, secrets *vault) *MCP {
	m := v.members("url", "headers", "command", "env", "timeout", "start_timeout", "tools")
	mcp := &MCP{}
	readLimits(m, t)
	if v, found := m.get("start_timeout"); found {
		mcp.StartTimeout = v.duration(time.Second, MaxTimeout)
	}
	remote, isRemote := m.get("url")
	command, isCommand := m.get("command")
	switch {
	case isRemote && isCommand:
		v.wrong("has a url and a command; leave one of them out")
	case isRemote:
		mcp.URL = remote.url(secrets)
	case isCommand:
		mcp.Command = command.command()
	case v.node.Kind == yaml.MappingNode:
		v.wrong("has no server; write url or command")
	}
	if v, found := m.get("headers"); found {
		if isCommand {
			v.wrong("is for servers with a url only; leave it out, or write env")
		}
		mcp.Headers = v.headers(secrets)
	}
	if v, found := m.get("env"); found {
		if isRemote {
			v.wrong("is for servers with a command only; leave it out, or write headers")
		}
		mcp.Env = v.environment(secrets)
	}
	if v, found := m.get("tools"); found {
		if v.kind() == "a list" {
			if mcp.Only = v.names(MaxTools); len(mcp.Only) == 0 {
				v.wrong("names no tool; name at least one, or leave it out to have all")
			}
		} else {
			mcp.Tools = v.overrides(nil, "envelope", "text")
		}
	}
	return mcp
}

// document reads the file that the value names.
func (v value) document() (string, []byte) {
	name, ok := v.text(maxText)
	if !ok {
		return "", nil
	}
	if strings.Contains(name, "://") {
		v.wrong("must be a file on this machine, not a URL; download the document first")
		return "", nil
	}
	if insecure(name) {
		v.wrong("${} is only replaced in headers, env, url and base_url")
		return "", nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(v.file), name)
	}
	document, problem := v.r.open(name, MaxDocument)
	if problem != "" {
		v.wrong("the document %s: %s", quote(name), problem)
	}
	return name, document
}

// command reads a program and its arguments.
func (v value) command() []string {
	if v.kind() == "a text" {
		v.wrong("must be a list, such as [npx, -y, some-server], not a text")
		return nil
	}
	var words []string
	for i, element := range v.list(maxNames) {
		if i > 0 && element.kind() == "a number" {
			words = append(words, element.node.Value)
			continue
		}
		if i > 0 && element.kind() == "a text" && element.node.Value == "" {
			words = append(words, "")
			continue
		}
		word, ok := element.prose(maxText)
		if ok && insecure(word) {
			element.wrong("${} is only replaced in headers, env, url and base_url, because everybody on the machine can see arguments; use env")
		}
		words = append(words, word)
	}
	if v.kind() == "a list" && len(words) == 0 {
		v.wrong("is empty; write the program first, then its arguments")
	}
	return words
}
