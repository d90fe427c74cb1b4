package engine

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"fermata/continuation"
)

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q requests
		cancel := func(principal, id string, want Cancelling, wantErr error) {
			t.Helper()
			if got, err := q.cancel(principal, id); got != want || !errors.Is(err, wantErr) {
				t.Errorf("cancel(%s, %s) = %q, %v, want %q, %v", principal, id, got, err, want, wantErr)
			}
		}
		begin := func(principal, id string, want error) (context.Context, func()) {
			t.Helper()
			ctx, done, err := q.begin(t.Context(), principal, id)
			if !errors.Is(err, want) {
				t.Fatalf("begin(%s, %s) = %v, want %v", principal, id, err, want)
			}
			return ctx, done
		}

		ctx, done := begin("ada", "one", nil)
		begin("ada", "one", ErrRequestInUse)
		cancel("bob", "one", "", ErrForbidden)
		if ctx.Err() != nil {
			t.Error("another principal has cancelled a request")
		}
		cancel("ada", "one", CancelRequested, nil)
		if !errors.Is(context.Cause(ctx), errCancelled) {
			t.Errorf("the request's context ended with %v, want it cancelled", context.Cause(ctx))
		}
		done()
		cancel("ada", "one", CancelCompleted, nil)
		cancel("bob", "one", "", ErrForbidden)
		begin("bob", "one", ErrRequestInUse)
		_, done = begin("ada", "one", nil) // Its principal can use the id of an answered request again.
		done()

		// A principal cannot cancel a request of another one before it comes.
		cancel("bob", "two", CancelUnknown, nil)
		_, done = begin("ada", "two", nil)
		done()
		cancel("ada", "three", CancelUnknown, nil)
		cancel("ada", "three", CancelUnknown, nil)
		begin("ada", "three", errCancelled)

		time.Sleep(rememberTime + time.Second)
		cancel("ada", "one", CancelUnknown, nil)
		_, done = begin("ada", "three", nil)
		done()
	})
}

func TestRequestsAreBounded(t *testing.T) {
	var q requests
	for n := range 2 * rememberMost {
		if _, err := q.cancel("ada", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		_, done, err := q.begin(t.Context(), "bob", strconv.Itoa(n))
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
	var q requests
	if _, err := q.cancel("ada", "hers"); err != nil {
		t.Fatal(err)
	}
	for n := range 2 * rememberMost {
		if _, err := q.cancel("bob", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := q.begin(t.Context(), "ada", "hers"); !errors.Is(err, errCancelled) {
		t.Errorf("the request that ada has cancelled begins with %v, want %v", err, errCancelled)
	}
	if got := len(q.early); got > rememberMost || got != q.remembered {
		t.Errorf("%d requests are remembered and %d counted, want at most %d", got, q.remembered, rememberMost)
	}
}

// The id of a request is free again after a while, and its execution may outlive that.
func TestCancelFindsNobodyElsesExecution(t *testing.T) {
	id := "request-0123456789"
	executions := newExecutionTable()
	add := func(principal string) {
		x := new(common).newExecution(newConversation(&ledger{record: continuation.Record{ID: principal, Principal: principal}}), nil, nil, &mandate{})
		x.requestID.Store(&id)
		if err := executions.register(principal, x); err != nil {
			t.Fatal(err)
		}
	}
	add("ada")
	if x := executions.findByRequest(Cancel{Principal: "bob", RequestID: id}); x != nil {
		t.Errorf("bob's cancel finds the execution of %s", x.principal)
	}
	add("bob")
	for _, principal := range []string{"ada", "bob"} {
		if x := executions.findByRequest(Cancel{Principal: principal, RequestID: id}); x == nil || x.principal != principal {
			t.Errorf("the cancel of %s finds %+v, want its own execution", principal, x)
		}
	}
}
