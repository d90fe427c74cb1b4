package requests

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Table
		cancel := func(principal, id string, want State, wantErr error) {
			t.Helper()
			if got, err := q.Cancel(principal, id); got != want || !errors.Is(err, wantErr) {
				t.Errorf("cancel(%s, %s) = %d, %v, want %d, %v", principal, id, got, err, want, wantErr)
			}
		}
		begin := func(principal, id string, want error) (context.Context, func()) {
			t.Helper()
			ctx, done, err := q.Begin(t.Context(), principal, id)
			if !errors.Is(err, want) {
				t.Fatalf("begin(%s, %s) = %v, want %v", principal, id, err, want)
			}
			return ctx, done
		}

		ctx, done := begin("ada", "one", nil)
		begin("ada", "one", ErrInUse)
		cancel("bob", "one", 0, ErrForeign)
		if ctx.Err() != nil {
			t.Error("another principal has cancelled a request")
		}
		cancel("ada", "one", InFlight, nil)
		if !errors.Is(context.Cause(ctx), ErrCancelled) {
			t.Errorf("the request's context ended with %v, want it cancelled", context.Cause(ctx))
		}
		done()
		cancel("ada", "one", Answered, nil)
		cancel("bob", "one", 0, ErrForeign)
		begin("bob", "one", ErrInUse)
		_, done = begin("ada", "one", nil) // Its principal can use the id of an answered request again.
		done()

		// A principal cannot cancel a request of another one before it comes.
		cancel("bob", "two", Unknown, nil)
		_, done = begin("ada", "two", nil)
		done()
		cancel("ada", "three", Unknown, nil)
		cancel("ada", "three", Unknown, nil)
		begin("ada", "three", ErrCancelled)

		time.Sleep(rememberTime + time.Second)
		cancel("ada", "one", Unknown, nil)
		_, done = begin("ada", "three", nil)
		done()
	})
}

func TestRequestsAreBounded(t *testing.T) {
	var q Table
	for n := range 2 * rememberMost {
		if _, err := q.Cancel("ada", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		_, done, err := q.Begin(t.Context(), "bob", strconv.Itoa(n))
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if got := len(q.byID) + len(q.early); got > rememberMost+2 {
		t.Errorf("%d requests are remembered, want at most %d", got, rememberMost)
	}
}

// A principal that cancels more requests than are remembered pushes out its own only.
func TestManyCancelsForgetNobodyElses(t *testing.T) {
	var q Table
	if _, err := q.Cancel("ada", "hers"); err != nil {
		t.Fatal(err)
	}
	for n := range 2 * rememberMost {
		if _, err := q.Cancel("bob", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := q.Begin(t.Context(), "ada", "hers"); !errors.Is(err, ErrCancelled) {
		t.Errorf("the request that ada has cancelled begins with %v, want %v", err, ErrCancelled)
	}
	if got := len(q.early); got > rememberMost || got != q.remembered {
		t.Errorf("%d requests are remembered and %d counted, want at most %d", got, q.remembered, rememberMost)
	}
}
