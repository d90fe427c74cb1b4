package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"fermata/engine/tools/config"
	"fermata/engine/tools/mask"
	"fermata/engine/tools/policy"
)

// toolsetList prints what is in a toolsets file, for people. It prints no secret, and no character
// that a terminal would obey.
type toolsetList struct {
	file *config.File
	// known are the tools of the toolsets, in the same order.
	known []policy.Toolset
	out   io.Writer
	// rights are those of the principal whom the list is about, or nil.
	rights *policy.Rights
}

// print prints toolsets, policies and principals.
func (l toolsetList) print() error {
	table := tabwriter.NewWriter(l.out, 0, 0, 2, ' ', 0)
	var err error
	line := func(cells ...string) {
		for i := range cells {
			cells[i] = config.Printable(cells[i])
		}
		if err == nil {
			// Empty cells at the end would become blanks.
			_, err = fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
		}
	}
	for i, t := range l.file.Toolsets {
		line(t.Key, t.Source(), originOf(t), traitsOf(t))
		for _, name := range l.known[i].Tools {
			right, rule := l.right(t, name)
			line("  "+name, right, endpointOf(t, name), joined(rule, rulesOf(t.Rules(name))))
		}
		if !l.known[i].Complete {
			right, rule := l.rest(t)
			line("  …", right, "other tools of its source", rule)
		}
	}
	if len(l.file.Policies) > 0 {
		line()
	}
	for _, name := range slices.Sorted(maps.Keys(l.file.Policies)) {
		line(name, "policy", policyText(l.file.Policies[name]), "for "+l.principalsOf(name))
	}
	if err != nil {
		return err
	}
	return table.Flush()
}

// originOf tells where a toolset's tools are, without queries, which may contain keys.
func originOf(t config.Toolset) string {
	switch {
	case t.HTTP != nil:
		return plainURL(t, t.HTTP.BaseURL)
	case t.OpenAPI != nil:
		return strings.TrimSuffix(t.OpenAPI.File+" at "+plainURL(t, t.OpenAPI.BaseURL), " at ")
	case t.MCP != nil && t.MCP.URL != "":
		return plainURL(t, t.MCP.URL)
	case t.MCP != nil:
		return strings.Join(t.MCP.Command, " ")
	}
	return ""
}

// plainURL returns a URL without its query, and with *** for secrets.
func plainURL(t config.Toolset, text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.RawQuery, u.ForceQuery = "", false
	return mask.New(t.Secrets).Text(u.String())
}

// traitsOf tells what is not usual about a toolset.
func traitsOf(t config.Toolset) string {
	traits := []string{"class " + t.Class}
	if t.Concurrency > 0 {
		traits = append(traits, fmt.Sprint("concurrency ", t.Concurrency))
	}
	for _, trait := range []struct {
		there bool
		name  string
	}{{t.Private, "private"}, {t.Shared, "shared"}, {t.Trusted, "trusted"}, {!t.Validate, "inputs not checked"}, {t.Proxy != "", "by a proxy"}} {
		if trait.there {
			traits = append(traits, trait.name)
		}
	}
	return strings.Join(traits, ", ")
}

// endpointOf returns method and path of a tool that the file describes.
func endpointOf(t config.Toolset, name string) string {
	if t.HTTP == nil {
		return ""
	}
	for _, tool := range t.HTTP.Tools {
		if tool.Name == name {
			return tool.Method + " " + tool.Path
		}
	}
	return ""
}

// rulesOf tells what the file says about a tool beyond what is usual.
func rulesOf(r config.Rules) string {
	var rules []string
	add := func(there bool, text string) {
		if there {
			rules = append(rules, text)
		}
	}
	add(r.Hide, "hidden")
	add(r.Cost > 0, fmt.Sprint("cost ", r.Cost))
	add(r.NeedsApproval(), "approval "+r.Approval)
	add(r.Idempotent != nil && *r.Idempotent, "idempotent")
	add(r.Idempotent != nil && !*r.Idempotent, "not idempotent")
	add(len(r.Callers) == 1, "only "+strings.Join(r.Callers, ""))
	add(r.Lane != "", "lane "+r.Lane)
	add(r.Envelope, "envelope")
	add(r.Text, "text")
	return strings.Join(rules, ", ")
}

// right reports whether the principal may use a tool, and if not, by which rule.
func (l toolsetList) right(t config.Toolset, tool string) (right, rule string) {
	if l.rights == nil {
		return "tool", ""
	}
	return rightText(l.rights.Tool(policy.Name{Toolset: t.Key, Tool: tool}))
}

// rest reports whether the principal may use tools that the file does not name.
func (l toolsetList) rest(t config.Toolset) (right, rule string) {
	if l.rights == nil {
		return "tools", ""
	}
	if err := l.rights.Toolset(t.Key); err != nil {
		return rightText(err)
	}
	// No tool has an empty name, so that only rules about the whole toolset decide.
	if right, rule = rightText(l.rights.Tool(policy.Name{Toolset: t.Key})); rule != "" {
		return "in part", "tools that are not named: " + rule
	}
	return right, rule
}

// rightText returns "allowed", or "refused" and the rule.
func rightText(err error) (right, rule string) {
	if refusal, refused := errors.AsType[*policy.Refusal](err); refused {
		return "refused", refusal.Rule
	}
	return "allowed", ""
}

// joined joins those of two texts that are not empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// policyText tells what a policy says.
func policyText(p config.Policy) string {
	var texts []string
	if p.Off {
		texts = append(texts, "off")
	}
	if p.Allow != nil {
		texts = append(texts, "allow "+cmp.Or(strings.Join(p.Allow, ", "), "nothing"))
	}
	if len(p.Block) > 0 {
		texts = append(texts, "block "+strings.Join(p.Block, ", "))
	}
	if p.MaxCost != nil {
		texts = append(texts, fmt.Sprint("max_cost ", *p.MaxCost))
	}
	if p.MaxDayCost != nil {
		texts = append(texts, fmt.Sprint("max_day_cost ", *p.MaxDayCost))
	}
	if len(texts) == 0 {
		return "allows all"
	}
	return strings.Join(texts, "; ")
}

// principalsOf returns the principals that have a policy.
func (l toolsetList) principalsOf(name string) string {
	var principals []string
	for principal, p := range l.file.Principals {
		if p == name {
			principals = append(principals, principal)
		}
	}
	slices.Sort(principals)
	return cmp.Or(strings.Join(principals, ", "), "nobody")
}
