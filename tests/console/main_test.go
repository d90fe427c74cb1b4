// Package console tests the console in a real browser, which it drives as a person does: with the
// mouse and the keyboard, looking at what is on the screen.
package console

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
