package harness

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"
)

// A Mark is a name that processes of a program take when they come to a line of it. A test can
// wait for that: while a program runs, its client hears nothing of it. The kernel of gVisor keeps the
// names of its processes to itself.
type Mark string

// NewMark returns a mark that no other program has.
func NewMark() Mark { return Mark("at-" + rand.Text()[:12]) } // The kernel keeps 15 bytes.

// Line is the line of Python at which a process takes the name.
func (m Mark) Line() string { return fmt.Sprintf("open('/proc/self/comm', 'w').write('%s')\n", m) }

// Await waits until n processes have the name.
func (m Mark) Await(t testing.TB, n int) {
	t.Helper()
	err := Within(StartTimeout, func() error {
		if found := m.count(); found < n {
			return fmt.Errorf("%d processes of the program have come to its mark, want %d", found, n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Gone checks that soon no process has the name any more.
func (m Mark) Gone(t testing.TB, soon time.Duration) {
	t.Helper()
	if err := Within(soon, func() error { return AtMost("processes of the program", m.count(), 0) }); err != nil {
		t.Error(err)
	}
}

// count returns how many processes have the name.
func (m Mark) count() (n int) {
	for _, p := range AllProcesses() {
		if p.Command == string(m) && !p.Dead {
			n++
		}
	}
	return n
}
