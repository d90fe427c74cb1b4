package engine

import (
	"testing"

	"fermata/continuation"
)

// The id of a request is free again after a while, and its execution may outlive that.
func TestCancelFindsNobodyElsesExecution(t *testing.T) {
	id := "request-0123456789"
	executions := newExecutionTable()
	add := func(principal string) {
		x := newExecution(newConversation(&ledger{record: continuation.Record{ID: principal, Principal: principal}}), nil)
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
