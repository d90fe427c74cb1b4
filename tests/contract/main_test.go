// Package contract tests the wire contract that clients program against: which requests the
// server takes and refuses, who may send them, what the answers contain, and how a request
// continues, repeats or cancels an execution.
package contract

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
