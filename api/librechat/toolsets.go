package librechat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine/core"
	"fermata/stubs"
)

const (
	// maxToolsets is how many names of toolsets and of their tools a start may have.
	maxToolsets = 100
	// maxCost is the largest bound of costs, in credits.
	maxCost = 1_000_000_000
	// maxReason bounds the reason of an approval, in characters.
	maxReason = 1_000
)

// Starts and results that are refused for what they say of toolsets and approvals.
var (
	errToolsets      = api.BadRequest(`toolsets must be an array of names, each a toolset ("weather") or one of its tools ("weather.current")`)
	errManyToolsets  = api.BadRequestf("Too many toolsets provided. Maximum is %d.", maxToolsets)
	errSequential    = api.BadRequest("sequential must be a boolean")
	errMaxCost       = api.BadRequestf("max_cost must be a whole number from 0 to %d", maxCost)
	errApprovals     = api.BadRequest("approvals must be a boolean")
	errExecApprovals = api.BadRequest("approvals is not available on /exec, whose programs never pause: post to /exec/programmatic")
)

// A grantRequest is what a start says of the tools that the server runs.
type grantRequest struct {
	toolsets              []string
	sequential, approvals bool
	maxCost               *int64
}

// grantOf reads what a start says of the tools that the server runs.
func grantOf(r request) (g grantRequest, err error) {
	if g.toolsets, err = toolsetsOf(r.Toolsets); err != nil {
		return g, err
	}
	if g.sequential, err = boolean(r.Sequential, errSequential); err != nil {
		return g, err
	}
	if g.approvals, err = boolean(r.Approvals, errApprovals); err != nil {
		return g, err
	}
	if !isNull(r.MaxCost) {
		n, err := strconv.ParseInt(string(r.MaxCost), 10, 64)
		if err != nil || n < 0 || n > maxCost {
			return g, errMaxCost
		}
		g.maxCost = &n
	}
	return g, nil
}

// toolsetsOf reads the names of toolsets.
func toolsetsOf(value jsontext.Value) (names []string, err error) {
	if isNull(value) {
		return nil, nil
	}
	var list []jsontext.Value
	if value.Kind() != jsontext.KindBeginArray || unmarshal(value, &list) != nil {
		return nil, errToolsets
	}
	if len(list) > maxToolsets {
		return nil, errManyToolsets
	}
	for _, v := range list {
		name, ok := unquote(v)
		if !ok || name == "" {
			return nil, errToolsets
		}
		names = append(names, name)
	}
	return names, nil
}

// boolean reads a member that may be missing.
func boolean(value jsontext.Value, wrong *api.Error) (bool, error) {
	switch {
	case isNull(value):
		return false, nil
	case value.Kind() == jsontext.KindTrue:
		return true, nil
	case value.Kind() == jsontext.KindFalse:
		return false, nil
	}
	return false, wrong
}

// traitsOf reads what the tools of a start say beyond their definitions. keys are the toolsets of the
// server, whose names they must not have.
func traitsOf(entries []toolMembers, tools []stubs.Tool, keys []string) (map[string]core.Traits, error) {
	var all map[string]core.Traits
	first := make(map[string]int, len(tools))
	for i, m := range entries {
		place := fmt.Sprintf("tools[%d]", i)
		traits, err := traitsIn(place, m, keys)
		if err != nil {
			return nil, err
		}
		name := tools[i].Name
		if j, again := first[name]; again && traits != all[name] {
			return nil, differ(j, i, name)
		} else if !again {
			first[name] = i
		}
		if traits == (core.Traits{}) {
			continue
		}
		if all == nil {
			all = map[string]core.Traits{}
		}
		all[name] = traits
	}
	return all, nil
}

// traitsIn reads what one tool says beyond its definition.
func traitsIn(place string, m toolMembers, keys []string) (t core.Traits, err error) {
	var ok bool
	if t.Toolset, ok = unquote(m.Toolset); !isNull(m.Toolset) && (!ok || !stubs.IsToolsetKey(t.Toolset)) {
		return t, api.BadRequestf("%s.toolset must be a small letter, then at most 63 small letters, digits and underscores, and no keyword of Python", place)
	}
	if slices.Contains(keys, t.Toolset) {
		return t, api.BadRequestf("%s.toolset: the server has a toolset with the key %s; give the client's another one", place, t.Toolset)
	}
	if t.Class, ok = unquote(m.Class); !isNull(m.Class) && (!ok || !stubs.IsClassName(t.Class)) {
		return t, api.BadRequestf("%s.class must be a letter, then at most 63 letters, digits and underscores, and no keyword of Python", place)
	}
	if t.Class != "" && t.Toolset == "" {
		return t, api.BadRequestf("%s.class needs toolset beside it", place)
	}
	approval, ok := unquote(m.Approval)
	if !isNull(m.Approval) && (!ok || approval != "always" && approval != "never") {
		return t, api.BadRequestf(`%s.approval must be "always" or "never"`, place)
	}
	t.Approval = approval == "always"
	t.Envelope = m.Envelope.Kind() == jsontext.KindTrue
	if !isNull(m.Envelope) && !t.Envelope && m.Envelope.Kind() != jsontext.KindFalse {
		return t, api.BadRequestf("%s.envelope must be a boolean", place)
	}
	return t, nil
}

// approvalIn reads what a result says of an approval.
func approvalIn(entry resultMembers, id string, result *core.Result) error {
	result.Given = entry.Result != nil
	switch {
	case entry.Approve == nil:
	case entry.Approve.Kind() == jsontext.KindTrue:
		result.Approve = new(true)
	case entry.Approve.Kind() == jsontext.KindFalse:
		result.Approve = new(false)
	default:
		return api.BadRequestf("tool_results[%s].approve must be a boolean if present", id)
	}
	if result.Approve != nil && !*result.Approve {
		if !isNull(entry.Result) || result.Failed {
			return api.BadRequestf("tool_results[%s] has approve false: a refused call has no result, and may have a reason", id)
		}
		result.Given = false
	}
	reason, ok := unquote(entry.Reason)
	if !isNull(entry.Reason) && (!ok || len([]rune(reason)) > maxReason) {
		return api.BadRequestf("tool_results[%s].reason must be a string of at most %d characters", id, maxReason)
	}
	result.Reason = strings.TrimSpace(reason)
	if result.Reason != "" && result.Approve == nil {
		return api.BadRequestf("tool_results[%s].reason needs approve beside it", id)
	}
	return nil
}
