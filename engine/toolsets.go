package engine

import (
	"context"
	"errors"

	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
)

// Toolsets are the tools that the server itself runs.
type Toolsets interface {
	// Grant decides what a start of a principal may use.
	Grant(ctx context.Context, principal string, s policy.Start) (*host.Grant, error)
	// Regrant returns the grant of an execution that another server has started.
	Regrant(principal string, granted []host.Tool, sequential bool, maxCost *int64) *host.Grant
}

// Approve decides on a call that waits for approval, on whichever server its execution is. The error
// is ErrExpired if there is no such execution, ErrForbidden if it is another principal's,
// ErrNoApproval if no such call waits for approval, and ErrDecided if somebody was first.
func (e *Engine) Approve(_ context.Context, _ Approval) error {
	return errors.New("engine: approvals are not built yet")
}
