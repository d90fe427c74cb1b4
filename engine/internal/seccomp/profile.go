package seccomp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// A profile is what container engines call a seccomp profile. Without a list of
// architectures it holds for that of the machine that applies it.
type profile struct {
	DefaultAction string `json:"defaultAction"`
	Syscalls      []rule `json:"syscalls"`
}

type rule struct {
	Names  []string   `json:"names"`
	Action string     `json:"action"`
	Errno  uint       `json:"errnoRet,omitempty"`
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

	lowHalf = 0xffffffff
	masked  = "SCMP_CMP_MASKED_EQ"
)

// Profile returns the same as Filter as a seccomp profile for a container engine,
// in JSON. Calls that an engine does not know by name it leaves refused.
func Profile() ([]byte, error) {
	p := profile{
		DefaultAction: refuse,
		Syscalls: []rule{
			{Names: slices.Sorted(maps.Keys(calls())), Action: allow},
			{Names: []string{"clone3"}, Action: refuse, Errno: uint(unix.ENOSYS)},
			{Names: []string{"clone"}, Action: allow, Args: []argument{{Value: namespaceFlags, Op: masked}}},
		},
	}
	// Rules for the same call are alternatives.
	for _, family := range families() {
		p.Syscalls = append(p.Syscalls, onlyIf("socket", family))
	}
	for _, personality := range personalities() {
		p.Syscalls = append(p.Syscalls, onlyIf("personality", personality))
	}
	out, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode seccomp profile: %w", err)
	}
	return out, nil
}

// onlyIf allows a call if the low half of its first argument is value: the kernel
// does not look at the other half.
func onlyIf(name string, value uint32) rule {
	return rule{Names: []string{name}, Action: allow, Args: []argument{
		{Value: lowHalf, ValueTwo: uint64(value), Op: masked},
	}}
}
