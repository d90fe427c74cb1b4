package engine

import (
	"context"

	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
)

// Toolsets are the tools that the server itself runs.
type Toolsets interface {
	// Grant decides what a start of a principal may use.
	Grant(ctx context.Context, principal string, s policy.Start) (*host.Grant, error)
	// Sequential reports whether every execution is sequential.
	Sequential() bool
	// Single decides whether a principal may make one call of a tool without a program. The grant has
	// this tool alone.
	Single(ctx context.Context, principal string, n policy.Name, caller string) (*host.Grant, error)
	// Regrant returns the grant of an execution that another server has started.
	Regrant(principal string, granted []host.Tool, sequential bool, maxCost *int64) *host.Grant
}

// Approve decides on a call that waits for approval, on whichever server its execution is. The error
// is ErrExpired if there is no such execution, ErrForbidden if it is another principal's or if only an
// operator may decide, ErrNoApproval if no such call waits for approval, and ErrDecided if somebody was
// first.
func (e *Engine) Approve(ctx context.Context, a Approval) error { return e.approver.approve(ctx, a) }
