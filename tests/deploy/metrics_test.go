package tests

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

var metricsLine = regexp.MustCompile(`msg="metrics are served" addr=(\S+)`)

// metricsAddr is the address of the server's metrics.
func (s *server) metricsAddr(t testing.TB) string {
	t.Helper()
	addr := metricsLine.FindStringSubmatch(s.log.all())
	if addr == nil {
		t.Fatalf("no line of the log names an address for metrics:\n%s", s.log.tail())
	}
	return addr[1]
}

// scrape returns what the server's address for metrics answers.
func (s *server) scrape(t testing.TB) string {
	t.Helper()
	response, err := http.Get("http://" + s.metricsAddr(t) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics: got %d %s, want 200", response.StatusCode, text)
	}
	return string(text)
}

// metrics returns the value of each series.
func (s *server) metrics(t testing.TB) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(s.scrape(t)) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			values[line[:i]] = value
		}
	}
	return values
}

// compareMetrics reports series that have other values than they should, or none.
func compareMetrics(got, want map[string]float64) error {
	var errs []error
	for series, value := range want {
		if n, ok := got[series]; !ok || n != value {
			errs = append(errs, fmt.Errorf("%s = %v (%v), want %v", series, n, ok, value))
		}
	}
	return errors.Join(errs...)
}

// TestMetrics follows programs through the figures: a pause, a crash of the server, an
// end and a failure.
func TestMetrics(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, settings{"METRICS_ADDR": "127.0.0.1:0", "POOL_SIZE": "1", "MAX_SANDBOXES": "9"})
		alice := server.alice()
		check := func(when string, want map[string]float64) {
			t.Helper()
			if err := compareMetrics(server.metrics(t), want); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		check("at first", map[string]float64{
			`fermata_pool_size`: 1, `fermata_pool_ceiling`: 9, `fermata_pool_waiting`: 0,
			`fermata_pool_failures_total`: 0, `fermata_pool_wait_seconds_count`: 0,
			`fermata_executions{state="running"}`: 0, `fermata_executions{state="paused"}`: 0,
			`fermata_executions_total{state="expired"}`:               0,
			`fermata_execution_failures_total{reason="sandbox_lost"}`: 0,
		})
		first := server.metrics(t)
		idle, live, made := first["fermata_pool_idle"], first["fermata_pool_live"], first["fermata_pool_made_total"]
		if idle < 1 || live < idle || made < idle || first["fermata_pool_make_seconds_count"] < made {
			t.Errorf("at first %v are idle, %v live, %v made, want one or more, all of them made", idle, live, made)
		}
		paused := alice.pause(t, program{Code: "print('very-secret', await ask_secret(n=1))", Tools: tools("ask_secret")})
		// It is counted before it is answered.
		check("while it is paused", map[string]float64{
			`fermata_executions{state="paused"}`: 1, `fermata_executions{state="running"}`: 0, `fermata_pauses_total`: 1,
			`fermata_pool_starts_total{sandbox="warm"}`: 1, `fermata_pool_starts_total{sandbox="cold"}`: 0,
			`fermata_pool_starts_total{sandbox="refused"}`: 0, `fermata_pool_wait_seconds_count`: 1,
		})

		if err := errors.Join(server.kill(), server.start()); err != nil {
			t.Fatal(err)
		}
		alice = server.alice()
		check("after a crash", map[string]float64{
			`fermata_executions{state="paused"}`: 1, `fermata_takeovers_total`: 1, `fermata_pauses_total`: 0,
		})
		alice.post(t, paused.answers(value("2"))).completes(t, "very-secret 2\n")
		alice.post(t, program{Code: "1/0"}).fails(t, http.StatusOK, "ZeroDivisionError: division by zero")
		for _, path := range []string{"/very-secret", "/metrics"} {
			if a, err := alice.request(t.Context(), http.MethodGet, path, nil, nil); err != nil || a.code != http.StatusNotFound {
				t.Errorf("GET %s at the public address: got %v, %v, want 404", path, a, err)
			}
		}
		if a, err := alice.request(t.Context(), "SECRET", programmatic, nil, nil); err != nil || a.code != http.StatusMethodNotAllowed {
			t.Errorf("method SECRET: got %v, %v, want 405", a, err)
		}
		check("at the end", map[string]float64{
			`fermata_executions{state="paused"}`: 0, `fermata_executions{state="running"}`: 0,
			`fermata_executions_total{state="completed"}`: 1, `fermata_executions_total{state="failed"}`: 1,
			`fermata_execution_failures_total{reason="raised"}`: 1, `fermata_execution_failures_total{reason="exited"}`: 0,
		})
		requests := map[string]float64{
			`fermata_http_request_duration_seconds_count{method="POST",route="/exec/programmatic",status="2xx"}`:  2,
			`fermata_http_request_duration_seconds_count{method="GET",route="none",status="4xx"}`:                 2,
			`fermata_http_request_duration_seconds_count{method="other",route="/exec/programmatic",status="4xx"}`: 1,
		}
		// Their time is over when they are answered, so they are counted after it.
		if err := within(5*time.Second, func() error { return compareMetrics(server.metrics(t), requests) }); err != nil {
			t.Error(err)
		}

		text := server.scrape(t)
		for _, secret := range []string{"secret", "SECRET", "alice", paused.Session, paused.Token} {
			if strings.Contains(text, secret) {
				t.Errorf("the metrics tell %q", secret)
			}
		}
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "fermata_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	})
}
