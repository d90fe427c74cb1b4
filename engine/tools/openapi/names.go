package openapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const maxName = 64

var (
	goodName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	others   = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
)

// toolName returns the name of an operation's tool: its id, or its method and path. Characters that are not
// allowed in a name are replaced by underscores.
func toolName(id, method, path string) string {
	name := id
	if id == "" {
		name = strings.ToLower(method) + "_" + strings.TrimLeft(path, "/{")
	}
	if goodName.MatchString(name) {
		return name
	}
	name = strings.Trim(others.ReplaceAllString(name, "_"), "_")
	if name == "" || name[0] == '-' || name[0] >= '0' && name[0] <= '9' {
		name = "op_" + name
	}
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], "_-")
	}
	return name
}

// methodName returns the name of a tool's method in its class. Two tools of a toolset must differ in it.
func methodName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// rename gives operations whose tools would have the same method names that differ. What is added to a name
// depends only on the operation, so that no other operation of the document can change it.
func rename(all []endpoint) []endpoint {
	count := map[string]int{}
	for _, e := range all {
		count[methodName(e.name)]++
	}
	renamed := slices.Clone(all)
	for i, e := range all {
		if count[methodName(e.name)] > 1 {
			sum := sha256.Sum256([]byte(e.id + " " + e.method + " " + e.path))
			suffix := fmt.Sprintf("_%x", sum[:4])
			renamed[i].name = strings.TrimRight(e.name[:min(len(e.name), maxName-len(suffix))], "_-") + suffix
		}
	}
	return renamed
}

// choose returns the chosen operations, and a function that tells whether the choice names an operation.
func choose(all []endpoint, choice Choice) ([]endpoint, func(endpoint) bool, error) {
	named := func(e endpoint) bool {
		return slices.Contains(choice.Operations, e.id) || slices.Contains(choice.Operations, e.name)
	}
	if len(choice.Operations)+len(choice.Tags) == 0 {
		return all, named, nil
	}
	chosen := make([]bool, len(all))
	mark := func(fits func(endpoint) bool) bool {
		found := false
		for i, e := range all {
			if fits(e) {
				chosen[i], found = true, true
			}
		}
		return found
	}
	var failures []error
	for _, name := range choice.Operations {
		fits := func(e endpoint) bool { return e.id == name || e.name == name }
		if strings.Contains(name, "*") {
			fits = pattern(name)
		}
		if !mark(fits) {
			failures = append(failures, fmt.Errorf("the document has no operation %.100q", name))
		}
	}
	for _, tag := range choice.Tags {
		if !mark(func(e endpoint) bool {
			tags, _ := e.operation.member("tags").value.([]any)
			return slices.Contains(tags, any(tag))
		}) {
			failures = append(failures, fmt.Errorf("the document has no operation with the tag %.100q", tag))
		}
	}
	var some []endpoint
	for i, e := range all {
		if chosen[i] {
			some = append(some, e)
		}
	}
	return some, named, errors.Join(failures...)
}

// pattern returns whether an operation fits a name with *: by its path, or else by its id or the name of its tool.
func pattern(name string) func(endpoint) bool {
	expression := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$")
	if strings.HasPrefix(name, "/") {
		return func(e endpoint) bool { return expression.MatchString(e.path) }
	}
	return func(e endpoint) bool { return expression.MatchString(e.id) || expression.MatchString(e.name) }
}

// sortedNames returns the names of an object's members in order.
func sortedNames(o *object) []string {
	if o == nil {
		return nil
	}
	names := make([]string, len(o.members))
	for i, m := range o.members {
		names[i] = m.name
	}
	return slices.Sorted(slices.Values(names))
}
