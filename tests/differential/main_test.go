// Package differential runs programs, as language models write them, with plain Python and with
// the server, and compares what they do. The programs are below programs, in folders by subject.
// differences_test.go names those that may differ.
package differential

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
