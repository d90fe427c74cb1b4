package mcp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fermata/api/mcp"
)

// A relay that is stopped returns, also while it passes a message on and more of them wait.
func TestRelayStops(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then the server notices that the relay leaves.
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	const waiting = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	messages := `{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n" + strings.Repeat(waiting, 3)
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() {
			stopped <- mcp.Relay(ctx, strings.NewReader(messages), io.Discard, mcp.Remote{URL: server.URL, Log: slog.New(slog.DiscardHandler)})
		}()
		<-asked
		cancel()
		select {
		case err := <-stopped:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the relay does not return")
		}
	}
}

// However many requests wait for their answers, the client can cancel one of them.
func TestRelayCancels(t *testing.T) {
	cancelled := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "notifications/cancelled") {
			cancelled <- struct{}{}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	var messages strings.Builder
	for id := range 100 {
		fmt.Fprintf(&messages, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", id)
		if id == 63 {
			messages.WriteString(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}` + "\n")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- mcp.Relay(ctx, strings.NewReader(messages.String()), io.Discard, mcp.Remote{URL: server.URL, Log: slog.New(slog.DiscardHandler)})
	}()
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Error("the server does not hear that a request is cancelled")
	}
	cancel()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
