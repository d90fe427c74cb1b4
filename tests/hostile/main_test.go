//go:build linux

// Package hostile attacks a server with the programs in the folders beside this file, and with
// random system calls, frames and connections. After each attack the server must answer,
// another client's program must go on, and nothing may be left behind. README.md tells how
// to write another attack.
package hostile

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
