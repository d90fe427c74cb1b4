package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"fermata/api"
	"fermata/engine"
)

// scrapeTimeout bounds the answer to one scrape.
const scrapeTimeout = 10 * time.Second

// metrics are what Prometheus can read. The other packages do not know Prometheus: they
// offer hooks and snapshots. No label contains text that a client or a program wrote.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.HistogramVec
	waits, made prometheus.Histogram
	pushedOut   prometheus.Counter
	streams     prometheus.Gauge
	sent, bytes prometheus.Counter
	cutOff      prometheus.Counter
}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	// From one round to the longest run budget.
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	with := promauto.With(registry)
	return &metrics{
		registry: registry,
		requests: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fermata_http_request_duration_seconds", Buckets: buckets,
			Help: "Duration of requests, including the time that their programs ran.",
		}, []string{"route", "method", "status"}),
		waits: with.NewHistogram(prometheus.HistogramOpts{
			Name: "fermata_pool_wait_seconds", Buckets: buckets,
			Help: "Time that starts waited for a sandbox, whether they got one or not.",
		}),
		pushedOut: with.NewCounter(prometheus.CounterOpts{
			Name: "fermata_connections_pushed_out_total",
			Help: "Connections closed because there were too many: the ones that had waited longest, or new ones.",
		}),
		streams: with.NewGauge(prometheus.GaugeOpts{
			Name: "fermata_journal_readers", Help: "Streams of events that are open, live answers among them.",
		}),
		sent: with.NewCounter(prometheus.CounterOpts{
			Name: "fermata_journal_events_sent_total", Help: "Events sent to readers of streams.",
		}),
		bytes: with.NewCounter(prometheus.CounterOpts{
			Name: "fermata_journal_bytes_sent_total", Help: "Bytes of the events sent to readers of streams.",
		}),
		cutOff: with.NewCounter(prometheus.CounterOpts{
			Name: "fermata_journal_readers_cut_off_total", Help: "Readers of streams whose connection was closed because they were too slow.",
		}),
		made: with.NewHistogram(prometheus.HistogramOpts{
			Name: "fermata_pool_make_seconds", Buckets: buckets,
			Help: "Time that it took to make a sandbox.",
		}),
	}
}

// request observes the duration of a request.
func (m *metrics) request(route, method string, status int, took time.Duration) {
	class := strconv.Itoa(status/100) + "xx"
	m.requests.WithLabelValues(route, method, class).Observe(took.Seconds())
}

// readers returns the hooks that observe the readers of streams.
func (m *metrics) readers() api.ReaderObserver {
	return api.ReaderObserver{
		Open: func(n int) { m.streams.Add(float64(n)) },
		Sent: func(bytes int) {
			m.sent.Inc()
			m.bytes.Add(float64(bytes))
		},
		CutOff: m.cutOff.Inc,
	}
}

// seconds returns a hook that observes durations.
func seconds(o prometheus.Observer) func(time.Duration) {
	return func(d time.Duration) { o.Observe(d.Seconds()) }
}

// watch adds the metrics that are read from an engine's snapshot.
func (m *metrics) watch(stats func() engine.Stats) { m.registry.MustRegister(figures(stats)) }

// serve serves the metrics until the function that it returns is called, and returns the address as well.
func (m *metrics) serve(ctx context.Context, addr string, log *slog.Logger) (at net.Addr, stop func(context.Context) error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for metrics: %w", err)
	}
	errorLog := slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorLog: errorLog}))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout,
		WriteTimeout:      scrapeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog,
	}
	api.NewConnections(metricsConnections, m.pushedOut.Inc).Bound(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are no longer served", "err", err)
		}
	}()
	log.Info("metrics are served", "addr", listener.Addr().String())
	return listener.Addr(), func(context.Context) error {
		// Do not wait for a scrape in flight.
		err := server.Close()
		<-done
		return err
	}, nil
}

// figures turns an engine's snapshot into metrics.
type figures func() engine.Stats

// A figure is one such metric: a number for each value of its label. Without a label the
// only number is that of the empty value.
type figure struct {
	name, help string
	kind       prometheus.ValueType
	label      string
	values     map[string]float64
}

// Describe implements prometheus.Collector.
func (stats figures) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(stats, out)
}

// Collect implements prometheus.Collector.
func (stats figures) Collect(out chan<- prometheus.Metric) {
	for _, f := range figuresOf(stats()) {
		if f.label == "" {
			desc := prometheus.NewDesc(f.name, f.help, nil, nil)
			out <- prometheus.MustNewConstMetric(desc, f.kind, f.values[""])
			continue
		}
		desc := prometheus.NewDesc(f.name, f.help, []string{f.label}, nil)
		for label, value := range f.values {
			out <- prometheus.MustNewConstMetric(desc, f.kind, value, label)
		}
	}
}

func figuresOf(s engine.Stats) []figure {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return []figure{
		{"fermata_pool_idle", "Idle sandboxes, ready for a program.", gauge, "", one(s.Pool.Idle)},
		{"fermata_pool_making", "Sandboxes being made.", gauge, "", one(s.Pool.Making)},
		{"fermata_pool_waiting", "Starts waiting for a sandbox.", gauge, "", one(s.Pool.Waiting)},
		{"fermata_pool_live", "All sandboxes: idle, in use, being made or being destroyed.", gauge, "", one(s.Pool.Live)},
		{"fermata_pool_stuck", "Sandboxes that could not be destroyed. The server keeps trying.", gauge, "", one(s.Pool.Stuck)},
		{"fermata_pool_size", "FERMATA_POOL_SIZE.", gauge, "", one(s.Pool.Size)},
		{"fermata_pool_ceiling", "FERMATA_MAX_SANDBOXES.", gauge, "", one(s.Pool.Ceiling)},
		{
			"fermata_pool_starts_total", "Starts that found an idle sandbox (warm), waited for one (cold) or got none (refused).",
			counter, "sandbox",
			map[string]float64{
				"warm": float64(s.Pool.Warm), "cold": float64(s.Pool.Cold), "refused": float64(s.Pool.Refused),
			},
		},
		{"fermata_pool_made_total", "Sandboxes made.", counter, "", one(s.Pool.Made)},
		{"fermata_pool_failures_total", "Failed attempts to make a sandbox.", counter, "", one(s.Pool.Failed)},
		{"fermata_executions", "Executions on this server, by state: running, paused.", gauge, "state", each(s.Executions)},
		{"fermata_executions_total", "Executions that have ended, by final state.", counter, "state", each(s.Ended)},
		{"fermata_execution_failures_total", "Executions that failed, by reason.", counter, "reason", each(s.Failures)},
		{"fermata_pauses_total", "Pauses for tool calls.", counter, "", one(s.Pauses)},
		{"fermata_tool_calls_total", "Calls of tools that the server has run, by how they have ended.", counter, "outcome", each(s.Calls)},
		{"fermata_takeovers_total", "Executions taken over from other or earlier servers.", counter, "", one(s.Takeovers)},
	}
}

func one[N int | uint64](n N) map[string]float64 { return map[string]float64{"": float64(n)} }

func each[K ~string, N int | uint64](counts map[K]N) map[string]float64 {
	values := make(map[string]float64, len(counts))
	for key, n := range counts {
		values[string(key)] = float64(n)
	}
	return values
}
