package deploy

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"fermata/tests/harness"
)

// TestMetrics checks the metrics while programs pause, complete and fail, and after the server has
// crashed.
func TestMetrics(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"METRICS_ADDR": "127.0.0.1:0", "POOL_SIZE": "1", "MAX_SANDBOXES": "9"})
		alice := server.Alice()
		check := func(when string, want map[string]float64) {
			t.Helper()
			if err := harness.CompareMetrics(server.Metrics(t), want); err != nil {
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
		first := server.Metrics(t)
		idle, live, made := first["fermata_pool_idle"], first["fermata_pool_live"], first["fermata_pool_made_total"]
		if idle < 1 || live < idle || made < idle || first["fermata_pool_make_seconds_count"] < made {
			t.Errorf("at first %v are idle, %v live, %v made, want one or more, all of them made", idle, live, made)
		}
		paused := alice.Pause(t, harness.Program{Code: "print('very-secret', await ask_secret(n=1))", Tools: harness.Tools("ask_secret")})
		// The server counts a pause before it answers.
		check("while it is paused", map[string]float64{
			`fermata_executions{state="paused"}`: 1, `fermata_executions{state="running"}`: 0, `fermata_pauses_total`: 1,
			`fermata_pool_starts_total{sandbox="warm"}`: 1, `fermata_pool_starts_total{sandbox="cold"}`: 0,
			`fermata_pool_starts_total{sandbox="refused"}`: 0, `fermata_pool_wait_seconds_count`: 1,
		})

		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		alice = server.Alice()
		check("after a crash", map[string]float64{
			`fermata_executions{state="paused"}`: 1, `fermata_takeovers_total`: 1, `fermata_pauses_total`: 0,
		})
		alice.Post(t, paused.Continue(harness.Value("2"))).Completes(t, "very-secret 2\n")
		alice.Post(t, harness.Program{Code: "1/0"}).Fails(t, http.StatusOK, "ZeroDivisionError: division by zero")
		for _, path := range []string{"/very-secret", "/metrics"} {
			if a, err := alice.Request(t.Context(), http.MethodGet, path, nil, nil); err != nil || a.HTTPStatus != http.StatusNotFound {
				t.Errorf("GET %s at the public address: got %v, %v, want 404", path, a, err)
			}
		}
		if a, err := alice.Request(t.Context(), "SECRET", harness.Programmatic, nil, nil); err != nil || a.HTTPStatus != http.StatusMethodNotAllowed {
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
		// The server measures the time until a request is answered, so it counts the request only
		// after that.
		if err := harness.Within(5*time.Second, func() error { return harness.CompareMetrics(server.Metrics(t), requests) }); err != nil {
			t.Error(err)
		}

		text := server.Scrape(t)
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
