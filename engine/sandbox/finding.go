package sandbox

// A Finding is what a look at this machine has found about one thing that sandboxes need.
type Finding struct {
	// What was looked at, in two or three words.
	What string
	// State says whether sandboxes have what they need.
	State FindingState
	// Detail is what was found.
	Detail string
	// Remedy is how an operator can provide what is missing, or strengthen what is weak: one
	// sentence, or nothing where all is well.
	Remedy string
}

// A FindingState says how much of what sandboxes need is there.
type FindingState string

// What is Missing keeps a server from starting; what is Weaker does not.
const (
	OK      FindingState = "ok"
	Weaker  FindingState = "weaker"
	Missing FindingState = "missing"
)

// Found returns a finding that is OK if good, and otherwise has the given state and remedy.
func Found(what string, good bool, otherwise FindingState, detail, remedy string) Finding {
	if good {
		return Finding{What: what, State: OK, Detail: detail}
	}
	return Finding{What: what, State: otherwise, Detail: detail, Remedy: remedy}
}
