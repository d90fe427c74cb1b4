// Package policy decides which tools a principal may use. Every decision is about one tool, by the
// key of its toolset and its name at its source, and is made from the settings of the server and the
// principal's policy together. It does not depend on requests, on approvals, or on how tools are called.
package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fermata/engine/tools/config"
)

// A Mode says who may use toolsets at all.
type Mode string

// The modes.
const (
	On      Mode = "on"      // all principals
	Off     Mode = "off"     // nobody
	Partial Mode = "partial" // the principals in Settings.Users
)

// UnmarshalText reads a mode. The empty text is On.
func (m *Mode) UnmarshalText(text []byte) error {
	switch mode := Mode(strings.TrimSpace(string(text))); mode {
	case "":
		*m = On
	case On, Off, Partial:
		*m = mode
	default:
		return fmt.Errorf("must be on, off or partial, not %q", mode)
	}
	return nil
}

// A Debug restricts toolsets to executions with certain titles.
type Debug string

// The restrictions.
const (
	NoDebug Debug = ""        // none
	OptIn   Debug = "opt-in"  // only executions whose title contains useptc
	OptOut  Debug = "opt-out" // all executions but those whose title contains nonptc
)

// UnmarshalText reads a restriction: opt-in or true, opt-out, or nothing.
func (d *Debug) UnmarshalText(text []byte) error {
	switch debug := Debug(strings.TrimSpace(string(text))); debug {
	case NoDebug, OptIn, OptOut:
		*d = debug
	case "true":
		*d = OptIn
	default:
		return fmt.Errorf("must be opt-in, opt-out or true, not %q", debug)
	}
	return nil
}

// The words that Debug looks for in a title, in lower case.
const (
	optInWord  = "useptc"
	optOutWord = "nonptc"
)

// Settings apply to all principals. A name is the key of a toolset, or the key, a dot and the tool's name at
// its source.
type Settings struct {
	Mode Mode
	// Users are the principals that may use toolsets if Mode is Partial.
	Users []string
	// Allow are the names that may be used. If it is empty, all may.
	Allow []string
	// Block are the names that may not be used, even if Allow has them.
	Block []string
	Debug Debug
	// Rollout is the percentage of principals that may use toolsets, 0 to 100, and nil for all of them. Which
	// ones depends on their IDs and on Salt alone.
	Rollout *int
	Salt    string
	// Sequential makes every execution sequential.
	Sequential bool
	// MaxDayCost is how much each principal may spend on one day of UTC, in credits. It is nil if there is no
	// limit.
	MaxDayCost *int64
}

// A Name is one tool: the key of its toolset and the tool's own name at its source.
type Name struct{ Toolset, Tool string }

// String returns the key, a dot and the tool's name.
func (n Name) String() string { return n.Toolset + "." + n.Tool }

// A Toolset is what is known about a toolset when a decision is made.
type Toolset struct {
	Key string
	// Tools are the names of its tools.
	Tools []string
	// Complete is false if the source may have other tools, because it has not listed them yet.
	Complete bool
}

// A Policy decides for all principals. It does not change, so that it is safe for concurrent use.
type Policy struct {
	settings   Settings
	users      map[string]bool
	allow      names // nil if all are allowed
	block      names
	principals map[string]*own
}

// own is the policy that a principal has for itself.
type own struct {
	name       string
	off        bool
	allow      names // nil if all are allowed
	block      names
	maxCost    *int64
	maxDayCost *int64
}

// names is a set of keys, and of keys with the names of tools.
type names map[string]bool

func newNames(list []string) names {
	set := make(names, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// has reports whether the toolset as a whole or the tool is in the set.
func (s names) has(n Name) bool { return s[n.Toolset] || s[n.String()] }

// touches reports whether the toolset or any tool of it is in the set.
func (s names) touches(key string) bool {
	if s[key] {
		return true
	}
	for name := range s {
		if strings.HasPrefix(name, key+".") {
			return true
		}
	}
	return false
}

// New makes a policy from the settings and the toolsets file, which config.Read has checked as far as it can.
// A name that does not exist is an error in Settings.Block and in the policies of the file, since something
// that was to be forbidden would be allowed. Elsewhere in the settings it is a warning, which is a full
// sentence.
func New(s Settings, file *config.File, toolsets []Toolset) (p *Policy, warnings []string, err error) {
	p = &Policy{settings: s, users: map[string]bool{}, block: newNames(s.Block), principals: map[string]*own{}}
	if p.settings.Mode == "" {
		p.settings.Mode = On
	}
	for _, user := range s.Users {
		p.users[user] = true
	}
	switch {
	case s.Mode == Partial && len(s.Users) == 0:
		warnings = append(warnings, "FERMATA_TOOLSETS_MODE is partial and FERMATA_TOOLSETS_USERS names nobody, so that nobody may use toolsets.")
	case p.settings.Mode == On && len(s.Users) > 0:
		warnings = append(warnings, "FERMATA_TOOLSETS_USERS restricts nobody, because FERMATA_TOOLSETS_MODE is on: set it to partial, so that only these principals may use toolsets.")
	}
	if len(s.Allow) > 0 {
		p.allow = newNames(s.Allow)
	}
	var problems []error
	for _, name := range s.Block {
		switch problem, certain := unknown(name, toolsets); {
		case problem != "" && certain:
			problems = append(problems, fmt.Errorf("FERMATA_TOOLSETS_BLOCK: %s: correct the name, or take it out", problem))
		case problem != "":
			warnings = append(warnings, "FERMATA_TOOLSETS_BLOCK: "+problem+".")
		}
	}
	for _, name := range s.Allow {
		if problem, _ := unknown(name, toolsets); problem != "" {
			warnings = append(warnings, "FERMATA_TOOLSETS_ALLOW: "+problem+".")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Policies)) {
		failed, warned := unknownIn(name, file.Policies[name], toolsets)
		problems, warnings = append(problems, failed...), append(warnings, warned...)
	}
	for principal, name := range file.Principals {
		rules := file.Policies[name]
		mine := &own{name: name, off: rules.Off, block: newNames(rules.Block), maxCost: rules.MaxCost, maxDayCost: rules.MaxDayCost}
		if rules.Allow != nil {
			mine.allow = newNames(rules.Allow)
		}
		p.principals[principal] = mine
	}
	if len(problems) > 0 {
		return nil, warnings, errors.Join(problems...)
	}
	return p, warnings, nil
}

// unknownIn reports the names in a policy of the file that do not exist, such as an operation that the OpenAPI
// document does not have. If an MCP server may have the tool, its name is a warning if it is to be blocked.
func unknownIn(name string, p config.Policy, toolsets []Toolset) (problems []error, warnings []string) {
	place := "the policy " + config.Printable(name)
	for _, listed := range slices.Concat(p.Allow, p.Block) {
		if problem, certain := unknown(listed, toolsets); problem != "" && certain {
			problems = append(problems, fmt.Errorf("%s: %s: correct the name, or take it out", place, problem))
		}
	}
	for _, blocked := range p.Block {
		if problem, certain := unknown(blocked, toolsets); problem != "" && !certain {
			warnings = append(warnings, place+": "+problem+".")
		}
	}
	return problems, warnings
}

// unknown says why a name does not exist, or returns "" if it exists. certain is false if the toolset may turn
// out to have a tool of this name.
func unknown(name string, toolsets []Toolset) (problem string, certain bool) {
	key, tool, one := strings.Cut(name, ".")
	i := slices.IndexFunc(toolsets, func(t Toolset) bool { return t.Key == key })
	switch {
	case name == "":
		return "there is an empty name", true
	case i < 0:
		return fmt.Sprintf("there is no toolset %+q", key), true
	case one && strings.TrimSpace(tool) == "":
		return fmt.Sprintf("%+q names no tool", name), true
	case !one || slices.Contains(toolsets[i].Tools, tool):
		return "", true
	case toolsets[i].Complete:
		return fmt.Sprintf("the toolset %s has no tool %+q", key, tool), true
	}
	return fmt.Sprintf("the tools of the toolset %s are not known yet, and %+q may not be one of them", key, tool), false
}
