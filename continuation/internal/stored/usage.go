package stored

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"fermata/continuation"
)

// A Tally is the form in which stores keep what one principal has used on one day.
type Tally struct {
	Principal string         `json:"principal"`
	Toolsets  map[string]Sum `json:"toolsets"`
	// Writes are the marks of the last writes, the newest last. They are for a store that cannot find out in
	// another way whether a write has taken effect.
	Writes []string `json:"writes,omitempty"`
}

// A Sum is what was used of one toolset.
type Sum struct {
	Calls int64 `json:"calls"`
	Cost  int64 `json:"cost"`
}

// keptMarks is how many marks of writes a Tally keeps.
const keptMarks = 16

// DecodeTally decodes a Tally. If the form is empty, it returns that of a principal who has used nothing.
func DecodeTally(form []byte) (Tally, error) {
	var t Tally
	if len(form) == 0 {
		return t, nil
	}
	if err := json.Unmarshal(form, &t); err != nil {
		return t, fmt.Errorf("decode sums: %w", err)
	}
	return t, nil
}

// Encode returns the form of a Tally.
func (t *Tally) Encode() ([]byte, error) { return json.Marshal(t) }

// Has reports whether the write with this mark is among the last ones.
func (t *Tally) Has(mark string) bool { return slices.Contains(t.Writes, mark) }

// Mark adds the mark of a write.
func (t *Tally) Mark(mark string) {
	t.Writes = append(t.Writes, mark)
	t.Writes = t.Writes[max(0, len(t.Writes)-keptMarks):]
}

// Add adds usages to the sums. All of them must be of the Tally's principal and day.
func (t *Tally) Add(add []continuation.Usage) {
	if t.Toolsets == nil {
		t.Toolsets = make(map[string]Sum, len(add))
	}
	for _, u := range add {
		sum := t.Toolsets[u.Toolset]
		t.Principal, t.Toolsets[u.Toolset] = u.Principal, Sum{sum.Calls + u.Calls, sum.Cost + u.Cost}
	}
}

// Usages returns the sums of the toolsets whose keys come after the key after.
func (t *Tally) Usages(day continuation.Day, after string) []continuation.Usage {
	var list []continuation.Usage
	for _, toolset := range slices.Sorted(maps.Keys(t.Toolsets)) {
		if toolset > after {
			sum := t.Toolsets[toolset]
			list = append(list, continuation.Usage{Day: day, Principal: t.Principal, Toolset: toolset, Calls: sum.Calls, Cost: sum.Cost})
		}
	}
	return list
}

// GroupUsages groups sums by day and principal.
func GroupUsages(all []continuation.Usage) [][]continuation.Usage {
	order := func(a, b continuation.Usage) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Principal, b.Principal))
	}
	var groups [][]continuation.Usage
	for _, u := range slices.SortedFunc(slices.Values(all), order) {
		if last := len(groups) - 1; last >= 0 && order(groups[last][0], u) == 0 {
			groups[last] = append(groups[last], u)
			continue
		}
		groups = append(groups, []continuation.Usage{u})
	}
	return groups
}
