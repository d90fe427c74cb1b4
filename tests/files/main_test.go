// Package files tests the files of clients: the routes that upload and download them, how a
// program gets them and leaves new ones, who owns them, and their limits.
package files

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
