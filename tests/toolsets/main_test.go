// Package toolsets tests tools that the server runs: programs that call them, sequence, lanes, costs,
// policies and approvals, endpoints that misbehave, and calls that are begun when a server is killed.
package toolsets

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
