// Package live tests what there is to see of executions from outside: lists, details, streams of
// events, records of calls, live answers; who sees what; and what slow, many and hostile readers
// and programs can do about it.
package live

import (
	"testing"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
