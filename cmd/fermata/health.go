package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// health is the command fermata health: it asks a server whether it lives, or whether it is ready.
// The image of the server has no other program that could.
type health struct {
	Addr  string `default:"127.0.0.1:8000" help:"Address on which the server listens, as it is set for serve."`
	URL   string `name:"url" env:"-" placeholder:"URL" help:"URL to ask instead, for example http://10.0.0.5:8000/ready."`
	Ready bool   `env:"-" help:"Ask whether the server can start executions now, and not only whether it lives."`
}

const (
	// healthTimeout bounds the command. A check of readiness takes the server up to 2 s.
	healthTimeout = 5 * time.Second
	// maxHealth bounds the answer that is read.
	maxHealth = 64 << 10
)

// run prints the status that the server tells. It returns an error if the server does not answer,
// or not with 200.
func (h *health) run(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, fmt.Errorf("no answer within %s", healthTimeout))
	defer cancel()
	target, err := h.target()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("--url must be a URL such as http://127.0.0.1:8000/health: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxHealth))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", target, err)
	}
	var answer struct{ Status, Message string }
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", target, response.Status, text)
	}
	_, err = fmt.Fprintln(stdout, answer.Status)
	return err
}

// target returns the URL to ask.
func (h *health) target() (string, error) {
	if h.URL != "" {
		return h.URL, nil
	}
	host, port, err := net.SplitHostPort(h.Addr)
	if err != nil {
		return "", errors.New("--addr must be " + addrForm(h.Addr))
	}
	// A server that listens on every address is reached by this machine's own.
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	path := "/health"
	if h.Ready {
		path = "/ready"
	}
	return (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: path}).String(), nil
}
