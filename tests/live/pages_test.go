package live

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestPagesThatNobodyReads asks for pages of a large journal over many connections and reads nothing. The server's
// memory stays small, and another client's list is answered at once.
func TestPagesThatNobodyReads(t *testing.T) {
	t.Parallel()
	const readers, mostGrowth, pageBytes = 60, 128, 1 << 20
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Quick(t))
	alice, bob := s.Alice(), s.Bob()
	a := alice.Post(t, harness.Program{
		Code: "for _ in range(4): await asyncio.gather(*[ask(x='x' * 60_000) for _ in range(30)])", Tools: harness.Tools("ask"),
	})
	execution := a.Execution()
	for a.Status == "tool_call_required" {
		a = alice.Post(t, a.Continue(harness.Value("null")))
	}
	a.Completes(t, "")
	for _, path := range []string{"/executions/" + execution + "/events?limit=1000", "/executions/" + execution + "/calls", "/calls?limit=200"} {
		page, err := alice.Request(t.Context(), http.MethodGet, path, nil, nil)
		if err != nil || page.HTTPStatus != http.StatusOK || len(page.Raw) > pageBytes+64<<10 || strings.Contains(page.Raw, `"next":null`) {
			t.Errorf("GET %s: a page of %d bytes with status %d (%v), want one of at most 1 MiB and a next one", path, len(page.Raw), page.HTTPStatus, err)
		}
		before := s.ResidentMiB(t)
		for range readers {
			conn := s.SendRaw(t, "")
			if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX-API-Key: key-a\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(7 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
			began := time.Now()
			list, err := bob.Request(t.Context(), http.MethodGet, "/executions", nil, nil)
			if took := time.Since(began); err != nil || list.HTTPStatus != http.StatusOK || took > 3*time.Second {
				t.Errorf("%s: the list of another client has status %d (%v) after %v", path, list.HTTPStatus, err, took)
			}
			if grown := s.ResidentMiB(t) - before; grown > mostGrowth {
				t.Errorf("%s: memory has grown by %d MiB, want at most %d", path, grown, mostGrowth)
			}
		}
	}
}
