package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// observed returns metrics that all have values.
func observed() *metrics {
	m := newMetrics()
	m.watch(func() engine.Stats {
		return engine.Stats{
			Pool: sandbox.PoolStats{
				KindStats: sandbox.KindStats{Idle: 1, Making: 2, Waiting: 4, Size: 5, Warm: 7, Cold: 8, Refused: 9, Made: 10, Failed: 11},
				Live:      3, Stuck: 12, Ceiling: 6,
			},
			Executions: map[core.State]int{core.Running: 12, core.Paused: 13},
			Ended:      map[core.State]uint64{core.Completed: 14, core.TimedOut: 15},
			Failures:   map[core.Reason]uint64{core.OutOfMemory: 16},
			Pauses:     17,
			Takeovers:  18,
			Calls:      map[string]uint64{"completed": 19, "failed": 20},
		}
	})
	m.request("/health", http.MethodGet, http.StatusServiceUnavailable, 2*time.Millisecond)
	seconds(m.waits)(20 * time.Millisecond)
	seconds(m.made)(2 * time.Second)
	r := m.readers()
	r.Open(3)
	r.Open(-1)
	r.Sent(100)
	r.Sent(200)
	r.CutOff()
	return m
}

func TestMetrics(t *testing.T) {
	got := strings.Join(scrape(t, observed()), "\n")
	want := strings.TrimSpace(`
fermata_connections_pushed_out_total 0
fermata_execution_failures_total{reason="out_of_memory"} 16
fermata_executions_total{state="completed"} 14
fermata_executions_total{state="timed_out"} 15
fermata_executions{state="paused"} 13
fermata_executions{state="running"} 12
fermata_http_request_duration_seconds_count{method="GET",route="/health",status="5xx"} 1
fermata_http_request_duration_seconds_sum{method="GET",route="/health",status="5xx"} 0.002
fermata_journal_bytes_sent_total 300
fermata_journal_events_sent_total 2
fermata_journal_readers 2
fermata_journal_readers_cut_off_total 1
fermata_pauses_total 17
fermata_pool_ceiling 6
fermata_pool_failures_total 11
fermata_pool_idle 1
fermata_pool_live 3
fermata_pool_made_total 10
fermata_pool_make_seconds_count 1
fermata_pool_make_seconds_sum 2
fermata_pool_making 2
fermata_pool_size 5
fermata_pool_starts_total{sandbox="cold"} 8
fermata_pool_starts_total{sandbox="refused"} 9
fermata_pool_starts_total{sandbox="warm"} 7
fermata_pool_stuck 12
fermata_pool_wait_seconds_count 1
fermata_pool_wait_seconds_sum 0.02
fermata_pool_waiting 4
fermata_takeovers_total 18
fermata_tool_calls_total{outcome="completed"} 19
fermata_tool_calls_total{outcome="failed"} 20`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the metrics are wrong (-want +got):\n%s", diff)
	}
}

// scrape serves metrics, reads them over HTTP and returns Fermata's own lines, sorted and
// without those of buckets. It also checks that the address serves nothing else, and that
// serving ends.
func scrape(t *testing.T, m *metrics) []string {
	t.Helper()
	var logged bytes.Buffer
	_, stop, err := m.serve(t.Context(), "127.0.0.1:0", slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`addr=(\S+)`).FindStringSubmatch(logged.String())
	if address == nil {
		t.Fatalf("logged %q, want the address", &logged)
	}
	url := "http://" + address[1]
	ask := func(method, path string, status int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != status {
			t.Errorf("%s %s: got %d, want %d", method, path, response.StatusCode, status)
		}
		return string(body)
	}
	ask(http.MethodGet, "/", http.StatusNotFound)
	ask(http.MethodPost, "/metrics", http.StatusMethodNotAllowed)
	text := ask(http.MethodGet, "/metrics", http.StatusOK)
	for _, part := range []string{"go_goroutines ", "go_build_info{", "process_open_fds "} {
		if !strings.Contains(text, "\n"+part) {
			t.Errorf("the metrics have no line that begins with %q", part)
		}
	}
	if err := stop(t.Context()); err != nil {
		t.Errorf("stop = %v, want nil", err)
	}
	if response, err := http.Get(url + "/metrics"); err == nil {
		_ = response.Body.Close()
		t.Errorf("got %s after the end, want no connection", response.Status)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "fermata_") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestMetricsNeedAnAddress(t *testing.T) {
	m := newMetrics()
	if _, stop, err := m.serve(t.Context(), "127.0.0.1:bad", slog.New(slog.DiscardHandler)); err == nil {
		t.Errorf("serve = nil, want an error (stop = %v)", stop(t.Context()))
	}
}

func TestMetricsAreNamedByConvention(t *testing.T) {
	m := observed()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "fermata_") {
			own = append(own, f.GetName())
		}
	}
	problems, err := testutil.GatherAndLint(m.registry, own...)
	if err != nil {
		t.Fatal(err)
	}
	if len(own) == 0 || len(problems) > 0 {
		t.Errorf("%v: got the problems %v, want metrics and none", own, problems)
	}
}

// TestMetricsPage compares the table in docs/metrics.md with the metrics: names, labels and types.
func TestMetricsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| *`(fermata_[a-z_]+(?:{[a-z,]+})?)` *\\| *([a-z]+) *\\| *([^|]*?) *\\|$")
	var documented []string
	for _, cells := range row.FindAllStringSubmatch(string(page), -1) {
		if cells[3] == "" {
			t.Errorf("%s has no meaning in the table", cells[1])
		}
		documented = append(documented, cells[1]+" "+cells[2])
	}
	families, err := observed().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "fermata_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		name := f.GetName()
		if len(labels) > 0 {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		served = append(served, name+" "+strings.ToLower(f.GetType().String()))
	}
	slices.Sort(documented)
	slices.Sort(served)
	if diff := cmp.Diff(served, documented); diff != "" {
		t.Errorf("docs/metrics.md differs from the metrics (-metrics +page):\n%s", diff)
	}
}
