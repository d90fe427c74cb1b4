// Package isolation tests the walls of the sandbox: what a program can see of the machine, of
// the server and of other programs, what it can take from them, and what it can forge.
package isolation

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
