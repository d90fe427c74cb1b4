package toolsets

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// A desk is a server with the standard toolsets, and the endpoint that they call.
type desk struct {
	harness.Client
	server   *harness.Server
	upstream *harness.Upstream
}

// standard returns a shared server with the standard toolsets and the changed settings.
func standard(t *testing.T, s harness.Setup, changes harness.Settings) desk {
	t.Helper()
	server := harness.Serve(t, s, harness.With(harness.Toolsets(t), changes))
	return desk{server.Alice(), server, harness.NewUpstream(t)}
}

// alone returns a server of the test's own.
func alone(t *testing.T, s harness.Setup, changes harness.Settings) desk {
	t.Helper()
	server := harness.ServeAlone(t, s, harness.With(harness.Toolsets(t), changes))
	return desk{server.Alice(), server, harness.NewUpstream(t)}
}

// restart kills the server and starts the next one.
func (d *desk) restart(t *testing.T) {
	t.Helper()
	if err := d.server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.server.Start(); err != nil {
		t.Fatal(err)
	}
	d.Client = d.server.Alice()
}

// imports is the beginning of programs of these tests.
const imports = `
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
from fermata_tools.weather import Weather
from fermata_tools.desk import HelpDesk
`

// program returns a program that may use the toolsets weather and desk. KEY in its text stands for key.
func program(key, code string) harness.Program {
	return harness.Program{Code: imports + strings.ReplaceAll(harness.Py(code), "KEY", fmt.Sprintf("%q", key)), Toolsets: []string{"weather", "desk"}}
}

// tells checks that the journal of an ended execution tells of its answer, and that all other views
// tell the same, and returns it.
func (d desk) tells(t *testing.T, a harness.Answer) *harness.Journal {
	t.Helper()
	j := &harness.Journal{ID: a.Execution()}
	if err := j.Tells(t.Context(), d.Client, a); err != nil {
		t.Fatal(err)
	}
	if j.Ended() {
		if err := j.Settled(t.Context(), d.Client); err != nil {
			t.Error(err)
		}
	}
	return j
}

// get returns the answer to a GET, which must be 200, as JSON.
func get(t *testing.T, c harness.Client, path string, into any) {
	t.Helper()
	a, err := c.Request(t.Context(), "GET", path, nil, nil)
	if a.HTTPStatus != 200 {
		t.Fatalf("GET %s: got %v, %v", path, a, err)
	}
	if err := json.Unmarshal([]byte(a.Raw), into); err != nil {
		t.Fatalf("GET %s: %v: %v", path, err, a)
	}
}

// refused checks that a start was refused with this status, and that the answer has these pieces.
func refused(t *testing.T, a harness.Answer, status int, pieces ...string) {
	t.Helper()
	if a.HTTPStatus != status || a.Status == "completed" {
		t.Errorf("got %v, want %d", a, status)
		return
	}
	harness.Contains(t, "the answer", a.Raw, pieces...)
}
