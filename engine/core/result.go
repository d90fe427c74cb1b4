package core

import (
	"encoding/json"
	"fmt"
)

// A Result is the client's answer to one tool call.
type Result struct {
	// CallID is the id of a pending call.
	CallID string
	// Value is the result as JSON, in which no text has half a surrogate pair; empty stands for null.
	Value json.RawMessage
	// Failed is true if the tool failed. Message is then the text of the exception that the
	// program sees, a JSON string or empty.
	Failed  bool
	Message json.RawMessage
	// Approve is set if the result decides on a call that waits for approval. Reason is why, in the
	// client's words. Given is true if there is a result beside the approval.
	Approve *bool
	Reason  string
	Given   bool
}

// A ResultError refuses a result for a call that is not pending. The execution stays paused, and
// its token stays valid.
type ResultError struct {
	// CallID is the id of that call.
	CallID string
}

func (e *ResultError) Error() string {
	return fmt.Sprintf("engine: %s is not pending", e.CallID)
}

// A ResultsError refuses results with which the execution would have received Size bytes of
// results, beyond the limit. The execution stays paused, and its token stays valid.
type ResultsError struct {
	Size, Limit int64
}

func (e *ResultsError) Error() string {
	return fmt.Sprintf("engine: results of %d bytes in all, at most %d allowed", e.Size, e.Limit)
}

// Told is the error text that the program gets for such a call.
func (e *ResultsError) Told() string {
	return fmt.Sprintf("the results of the execution have %d bytes in all with this one; at most %d are allowed", e.Size, e.Limit)
}

// An ApprovalError refuses what a result says about the approval of a call. The execution stays paused,
// and its token stays valid.
type ApprovalError struct {
	// CallID is the id of the call, and Problem what is wrong, in words for the client that follow the
	// id.
	CallID, Problem string
}

func (e *ApprovalError) Error() string { return "engine: " + e.CallID + " " + e.Problem }
