package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An endpoint is a bare HTTP server whose answers a tool of the measured server passes on.
type endpoint struct {
	url      string
	toolsets string
	server   *http.Server
	served   chan error
}

// startEndpoint starts an endpoint, and writes a toolsets file into dir that has it as its only tool.
func startEndpoint(dir string) (*endpoint, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{url: "http://" + listener.Addr().String(), toolsets: filepath.Join(dir, "toolsets.yaml"), served: make(chan error, 1)}
	e.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"n":%s}`, r.URL.Query().Get("n")) // If this fails, the client fails.
		}),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { e.served <- e.server.Serve(listener) }()
	text := fmt.Sprintf(`
toolsets:
  bench:
    private: true
    http:
      base_url: %s
      tools:
        - {name: echo, method: GET, path: /echo, parameters: {type: object, properties: {n: {type: integer}}, required: [n]}}
`, e.url)
	if err := os.WriteFile(e.toolsets, []byte(text), 0o600); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// stop ends the endpoint.
func (e *endpoint) stop() error {
	err := e.server.Close()
	if stopped := <-e.served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}

// bare makes n requests without anything between, over one connection, and returns how long each took.
func (e *endpoint) bare(ctx context.Context, n int) ([]float64, error) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var samples []float64
	for i := range n + warmUp {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/echo?n=%d", e.url, i), nil)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		_, err = io.ReadAll(response.Body)
		took := time.Since(begin)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		samples = append(samples, inMilliseconds(took))
	}
	return samples[warmUp:], nil
}

// serverCalls is how many calls of the server's tool a program makes.
const serverCalls = 100

// serverCallsProgram measures each of its calls and prints how many milliseconds they took. The first
// ones do not count.
var serverCallsProgram = fmt.Sprintf(`
import json, time
from fermata_tools.bench import Bench
took = []
for n in range(%d):
    begin = time.perf_counter()
    assert Bench.echo(n=n)["n"] == n
    took.append(1000 * (time.perf_counter() - begin))
print(json.dumps(took[%d:]))
`, serverCalls+warmUp, warmUp)

// serverToolScenarios are the rows of tools that the server runs. Only servers that are started here
// have such a tool, and no old ones.
var serverToolScenarios = []scenario{{
	figures: []figure{
		{name: "plain: call of the server's tool, above the bare request", unit: milliseconds, goals: goals{"process": atMost(0.8), "docker": atMost(1.2)}},
		{name: "plain: call of the server's tool", unit: milliseconds},
		{name: "plain: bare request to the endpoint", unit: milliseconds},
	},
	share: 10,
	measure: func(ctx context.Context, s subject) ([][]float64, error) {
		// Each program is compared with requests of the same moment.
		bare, err := s.endpoint.bare(ctx, serverCalls)
		if err != nil {
			return nil, err
		}
		took, err := s.serverCalls(ctx)
		if err != nil {
			return nil, err
		}
		floor := quantile(slices.Sorted(slices.Values(bare)), 0.5)
		above := make([]float64, len(took))
		for i := range took {
			above[i] = took[i] - floor
		}
		return [][]float64{above, took, bare}, nil
	},
}}

// serverCalls runs serverCallsProgram, which takes no round, and returns how long its calls took.
func (s subject) serverCalls(ctx context.Context) (took []float64, err error) {
	body, err := json.Marshal(program{Lang: python, Code: serverCallsProgram, Toolsets: []string{"bench"}})
	if err != nil {
		return nil, err
	}
	a, err := s.client.post(ctx, body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(a.Stdout)), &took); err != nil || len(took) != serverCalls {
		return nil, fmt.Errorf("a program with calls of the server's tool: got %+v, want the times of %d calls", a, serverCalls)
	}
	return took, nil
}
