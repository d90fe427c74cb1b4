package seccomp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A profile is a seccomp profile of container engines. Since it does not list any
// architectures, it applies to the one of the machine that uses it.
type profile struct {
	DefaultAction string  `json:"defaultAction"`
	Syscalls      []group `json:"syscalls"`
}

// A group is a set of calls with the same answer.
type group struct {
	Names  []string   `json:"names"`
	Action string     `json:"action"`
	Errno  *uint      `json:"errnoRet,omitempty"`
	Args   []argument `json:"args,omitempty"`
}

// An argument is a condition on an argument. Its only operation here is masked: Value is
// the mask, and ValueTwo is what the masked argument must be.
type argument struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

const (
	allow  = "SCMP_ACT_ALLOW"
	refuse = "SCMP_ACT_ERRNO" // with EPERM, unless the group has an errno
	masked = "SCMP_CMP_MASKED_EQ"
)

// Profile returns the rules of Filter as a seccomp profile for container engines, in JSON.
// An engine refuses the calls whose names it does not know.
func Profile() ([]byte, error) {
	p := profile{
		DefaultAction: refuse,
		Syscalls:      []group{{Names: slices.Sorted(maps.Keys(calls())), Action: allow}},
	}
	for _, r := range rules() {
		if len(r.allowed) == 0 {
			number := uint(r.otherwise)
			p.Syscalls = append(p.Syscalls, group{Names: []string{r.name}, Action: refuse, Errno: &number})
		}
		// Several groups for the same call are alternatives.
		for _, tests := range r.allowed {
			g := group{Names: []string{r.name}, Action: allow}
			for _, t := range tests {
				g.Args = append(g.Args, argument{Index: uint(t.argument), Value: t.mask, ValueTwo: t.value, Op: masked})
			}
			p.Syscalls = append(p.Syscalls, g)
		}
	}
	out, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode seccomp profile: %w", err)
	}
	return out, nil
}
