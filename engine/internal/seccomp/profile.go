package seccomp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A profile is what container engines call a seccomp profile. Without a list of
// architectures it holds for that of the machine that applies it.
type profile struct {
	DefaultAction string  `json:"defaultAction"`
	Syscalls      []group `json:"syscalls"`
}

// A group are calls that are answered alike.
type group struct {
	Names  []string   `json:"names"`
	Action string     `json:"action"`
	Errno  *uint      `json:"errnoRet,omitempty"`
	Args   []argument `json:"args,omitempty"`
}

// An argument is a condition: for the operation masked-equal, Value is the mask and
// ValueTwo what must be left.
type argument struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

const (
	allow  = "SCMP_ACT_ALLOW"
	refuse = "SCMP_ACT_ERRNO" // with EPERM unless said otherwise
	masked = "SCMP_CMP_MASKED_EQ"
)

// Profile returns the same as Filter as a seccomp profile for a container engine,
// in JSON. Calls that an engine does not know by name it leaves refused.
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
		// Groups for the same call are alternatives.
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
