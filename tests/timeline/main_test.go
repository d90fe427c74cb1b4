// Package timeline tests what agent runtimes use: contracts of outputs and the report about them, and
// the timeline of blocks that they append to their histories.
package timeline

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
