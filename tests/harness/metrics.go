package harness

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// metricsLine matches the line of the log that tells the address of the metrics.
var metricsLine = regexp.MustCompile(`metrics are served",?\s*"?addr"?[=:]"?([^\s"]+)`)

// MetricsAddr returns the address of the server's metrics.
func (s *Server) MetricsAddr(t testing.TB) string {
	t.Helper()
	addr := metricsLine.FindStringSubmatch(s.Log.All())
	if addr == nil {
		t.Fatalf("no line of the log names an address for metrics:\n%s", s.Log.Tail())
	}
	return addr[1]
}

// Scrape returns the page of the server's metrics.
func (s *Server) Scrape(t testing.TB) string {
	t.Helper()
	response, err := http.Get("http://" + s.MetricsAddr(t) + "/metrics")
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

// Metrics returns the value of each series of the server's metrics.
func (s *Server) Metrics(t testing.TB) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for line := range strings.Lines(s.Scrape(t)) {
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

// CompareMetrics returns an error that names each wanted series whose value differs or is missing.
func CompareMetrics(got, want map[string]float64) error {
	var errs []error
	for series, value := range want {
		if n, ok := got[series]; !ok || n != value {
			errs = append(errs, fmt.Errorf("%s = %v (%v), want %v", series, n, ok, value))
		}
	}
	return errors.Join(errs...)
}
