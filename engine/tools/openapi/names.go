package openapi

import (
	"regexp"
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
