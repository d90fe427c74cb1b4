package sandbox

// A State is a state of a sandbox's supervisor. The runner has the same states, and the moves
// between them; python/testdata/states.json is what both are tested with.
type State string

// The states.
const (
	// Starting: the worker is not ready yet. No server is told of this state.
	Starting State = "starting"
	// Ready: the sandbox waits for input files and for its program.
	Ready State = "ready"
	// Running: the program runs.
	Running State = "running"
	// Paused: the program waits for the results of its calls.
	Paused State = "paused"
	// Ended: the program has ended, and the files that it has left can be taken.
	Ended State = "ended"
)
