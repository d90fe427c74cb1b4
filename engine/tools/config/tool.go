package config

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fermata/engine/tools/schema"
)

var (
	// httpToolName is the name of a tool that the operator chooses. It becomes a method.
	httpToolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	laneName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	// pointer is a JSON Pointer.
	pointer = regexp.MustCompile(`^(/([^~]|~[01])*)?$`)
	// pathText is what a path may have outside of its parameters.
	pathText = regexp.MustCompile(`^[A-Za-z0-9/_.,:;@!$&'()*+=~%-]*$`)
)

// methods are members of the class. A tool must not have one of these names, since it would hide the member.
var methods = []string{"aio", "mro"}

// ruleNames are the members of Rules that tools of all sources may have.
var ruleNames = []string{"cost", "idempotent", "approval", "callers", "lane"}

// httpTools reads the tools of an HTTP API.
func (v value) httpTools() []HTTPTool {
	var tools []HTTPTool
	lines := map[string]int{}
	elements := v.list(MaxTools)
	if v.kind() == "a list" && len(v.node.Content) == 0 {
		v.wrong("is empty; write at least one tool")
	}
	for _, element := range elements {
		tool := element.httpTool()
		if tool.Name != "" {
			// Both names would become the same method.
			method := strings.ReplaceAll(tool.Name, "-", "_")
			if line, twice := lines[method]; twice {
				element.wrong("the tool %s has the name of the one in line %d; give one of them another name", tool.Name, line)
			}
			lines[method] = element.line
		}
		tools = append(tools, tool)
	}
	return tools
}

// httpTool reads one tool of an HTTP API.
func (v value) httpTool() HTTPTool {
	m := v.members(append([]string{"name", "description", "method", "path", "parameters", "result", "envelope"}, ruleNames...)...)
	t := HTTPTool{Rules: m.rules()}
	if v, found := m.need("name", "write the name by which programs call the tool"); found {
		if name, ok := v.text(maxText); ok {
			switch {
			case !httpToolName.MatchString(name):
				v.wrong("must begin with a letter and have at most 64 letters, digits, underscores and hyphens")
			case slices.Contains(methods, name):
				v.wrong("%s is a name that every class has; take another one", name)
			default:
				t.Name = name
			}
		}
	}
	if v, found := m.get("description"); found {
		t.Description, _ = v.prose(MaxDescription)
	}
	if v, found := m.need("method", "write GET, HEAD, POST, PUT, PATCH or DELETE"); found {
		t.Method = v.oneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	}
	t.Parameters = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	var required []string
	parameters, described := m.get("parameters")
	if described {
		t.Parameters, required = parameters.parameters()
	}
	if v, found := m.need("path", "write the path of the endpoint, such as /v1/current/{city}"); found {
		t.Path = v.endpoint(required, !described || t.Parameters != nil)
	}
	if v, found := m.get("result"); found {
		if text, ok := v.text(maxText); ok {
			if !pointer.MatchString(text) {
				v.wrong("must be a JSON Pointer, such as /data/items")
			}
			t.Result = text
		}
	}
	return t
}

// parameters reads the JSON Schema of an input and returns the names of the required parameters.
func (v value) parameters() (raw json.RawMessage, required []string) {
	if v.kind() != "a map" {
		v.wrong("must be a JSON Schema, which is a map, not %s", v.kind())
		return nil, nil
	}
	if kind, found := find(v.node, "type"); !found || kind.Value != "object" {
		v.wrong("must have type: object, because the input of a tool is an object")
		return nil, nil
	}
	properties, found := find(v.node, "properties")
	if found && properties.Kind != yaml.MappingNode {
		v.child("properties", properties).wrong("must be a map from the names of parameters to their schemas")
		return nil, nil
	}
	if list, found := find(v.node, "required"); found {
		required = v.child("required", list).names(maxNames)
		for _, name := range required {
			if properties == nil {
				properties = &yaml.Node{}
			}
			if _, known := find(properties, name); !known {
				v.child("required", list).wrong("names %s, which is not among the properties", quote(name))
			}
		}
	}
	raw, ok := v.json()
	if !ok {
		return nil, nil
	}
	if len(raw) > MaxSchema {
		v.wrong("has %d bytes as JSON; at most %d are allowed", len(raw), MaxSchema)
		return nil, nil
	}
	if _, err := schema.Compile(raw); err != nil {
		v.wrong("%s", Printable(err.Error()))
		return nil, nil
	}
	return raw, required
}

// endpoint reads the path of an endpoint. Its parameters are compared with those that are required,
// if these are known.
func (v value) endpoint(required []string, known bool) string {
	path, ok := v.text(maxText)
	if !ok {
		return ""
	}
	switch {
	case insecure(path):
		v.wrong("${} is only replaced in headers, env, url and base_url; a parameter is {name}")
		return ""
	case !strings.HasPrefix(path, "/"):
		v.wrong("must begin with /")
		return ""
	case strings.ContainsAny(path, "?#"):
		v.wrong("must not contain ? or #; parameters that are not in the path become the query or the body")
		return ""
	case strings.Contains(path, "//"):
		v.wrong("must not contain an empty segment (//)")
		return ""
	case slices.ContainsFunc(strings.Split(path, "/"), dotted):
		v.wrong("must not contain the segments . and ..")
		return ""
	}
	rest := path
	for rest != "" {
		before, after, found := strings.Cut(rest, "{")
		if !pathText.MatchString(before) {
			v.wrong("must be ASCII without blanks, and a parameter is {name}; write other characters as %%20 and the like")
			return ""
		}
		if !found {
			break
		}
		name, following, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.Contains(name, "{") {
			v.wrong("has a { without a name and }; a parameter is {name}")
			return ""
		}
		if known && !slices.Contains(required, name) {
			v.wrong("has the parameter %s, so parameters must have it in properties and in required", quote(name))
			return ""
		}
		rest = following
	}
	return path
}

// rules reads the members that all tools have, and those that m knows besides.
func (m members) rules() Rules {
	var rules Rules
	if v, found := m.get("cost"); found {
		rules.Cost = v.integer(0, MaxCost)
	}
	if v, found := m.get("idempotent"); found {
		idempotent := v.flag()
		rules.Idempotent = &idempotent
	}
	if v, found := m.get("approval"); found {
		rules.Approval = v.oneOf(ApprovalNever, ApprovalAlways, ApprovalOperator)
	}
	if v, found := m.get("callers"); found {
		rules.Callers = v.callers()
	}
	if v, found := m.get("lane"); found {
		if name, ok := v.text(maxText); ok {
			if !laneName.MatchString(name) {
				v.wrong("must have at most 64 letters, digits, underscores and hyphens")
			}
			rules.Lane = name
		}
	}
	for name, flag := range map[string]*bool{"envelope": &rules.Envelope, "hide": &rules.Hide, "text": &rules.Text} {
		if v, found := m.get(name); found {
			*flag = v.flag()
		}
	}
	return rules
}

// callers reads who may call a tool.
func (v value) callers() []string {
	var callers []string
	for _, element := range v.list(maxNames) {
		caller := element.oneOf(CallerCode, CallerDirect)
		if slices.Contains(callers, caller) && caller != "" {
			element.wrong("%s is in the list twice; leave one of them out", caller)
		}
		callers = append(callers, caller)
	}
	if v.kind() == "a list" && len(v.node.Content) == 0 {
		v.wrong("is empty, so that nobody could call the tool; use hide, or take the tool out")
	}
	return callers
}

// overrides reads rules for tools by name. If only is not nil, it has the names of all tools that may have
// rules.
func (v value) overrides(only []string, more ...string) map[string]Rules {
	if v.kind() == "a list" {
		v.wrong("must be a map from names to rules; operations is the list of those that become tools")
		return nil
	}
	overrides := map[string]Rules{}
	for _, e := range v.entries(MaxTools) {
		if only != nil && !slices.Contains(only, e.name) {
			e.place.wrong("is not among the operations; add it there, or leave it out%s", hint(e.name, only))
			continue
		}
		overrides[e.name] = e.place.members(slices.Concat(ruleNames, []string{"hide"}, more)...).rules()
	}
	return overrides
}
