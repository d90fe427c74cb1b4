// Package survival tests what outlives a fault: servers that are killed, stopped or stuck,
// take-over by another server, and a Redis, a bucket or a Docker daemon that fails.
package survival

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
