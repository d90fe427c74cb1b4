package engine

import "sync"

// largeBatch is the size in bytes above which batches of calls are checked one at a time: the
// search for duplicate names in an object takes several times the memory of the object.
const largeBatch = 1 << 20

// A checker checks the calls of all executions.
type checker struct {
	// maxRounds and maxCalls are Options.MaxRounds and MaxCalls.
	maxRounds, maxCalls int
	// large is held while a large batch is checked, which takes much memory: one batch at a time.
	large sync.Mutex
}

// gently checks calls of so many bytes: of large batches one at a time.
func (k *checker) gently(size int, check func() error) error {
	if size > largeBatch {
		k.large.Lock()
		defer k.large.Unlock()
	}
	return check()
}
