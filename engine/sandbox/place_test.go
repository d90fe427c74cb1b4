package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestPlace waits for what comes of a file, and hands over what happens meanwhile.
func TestPlace(t *testing.T) {
	large := said(frameContent, strings.Repeat("x", maxContentFrame)) // The stream stays open: it is not read.
	c := attached(
		t, said(frameRan, "7"), said(framePlaced, `{"error": ""}`), said(framePlaced, `{"error": "No space"}`), said(frameLost, ""),
		said(frameRan, "7"), said(frameRan, "7"), large, large,
	)
	events := 0
	other := func(Event) bool { events++; return events < 2 }
	if err := c.Place(t.Context(), "x", []byte("content"), other); err != nil || events != 1 {
		t.Errorf("got %v after %d other events", err, events)
	}
	refused, ok := errors.AsType[*PlaceError](c.Place(t.Context(), "x", nil, other))
	if !ok || refused.Reason != "No space" {
		t.Errorf("got %v, want that there is no space", refused)
	}
	if err := c.Place(t.Context(), "x", nil, other); err == nil || errors.Is(err, ErrInterrupted) {
		t.Errorf("another answer: got %v", err)
	}
	if err := c.Place(t.Context(), "x", nil, other); !errors.Is(err, ErrInterrupted) {
		t.Errorf("an event that ends it: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Place(ctx, "x", nil, other); !errors.Is(err, ErrInterrupted) {
		t.Errorf("its context has ended: got %v", err)
	}
}
