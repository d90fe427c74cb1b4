// Package programs tests what a program can do and gets: its language, its tool calls and
// their values, its output, its time, and what happens to it in a pause.
package programs

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
