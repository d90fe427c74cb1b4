// Package load tests many executions at once: that they do not get mixed up, that clients
// share the server fairly, and that thousands of executions leave nothing behind.
package load

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
