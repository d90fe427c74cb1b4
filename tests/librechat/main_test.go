// Package librechat tests the server with LibreChat's own client, which Node runs (the
// *.test.js files here), and with the requests of LibreChat's app; it also tests the guide in
// docs/librechat.md.
package librechat

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
