// Package deploy tests what an operator meets: compose.yaml, the README's commands, fermata
// check, metrics and the state directory. It also checks that the tests named in the
// documents exist.
package deploy

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
