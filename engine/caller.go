package engine

import (
	"context"
	"errors"

	"fermata/engine/lanes"
	"fermata/engine/tools"
	"fermata/engine/tools/host"
	"fermata/engine/tools/source"
)

// A caller makes the server's calls, for programs and without one.
type caller struct {
	lanes lanes.Lanes
	o     *Options
}

// A charge is who pays how much for a call, and the lane in which the call runs, or "".
type charge struct {
	principal, lane string
	cost            int64
}

// call waits for the lane of a call, reserves its cost, and makes the call. If the call has had no effect, the cost is
// given back. made is false if the call was not sent; then the error says why.
func (c *caller) call(ctx context.Context, grant *host.Grant, by charge, r tools.Request) (result tools.Result, made bool, err error) {
	if by.lane != "" {
		leave, err := c.lanes.Enter(ctx, grant.Timeout(r.Toolset), lanes.Lane{Principal: by.principal, Name: by.lane})
		if err != nil {
			return tools.Result{}, false, err
		}
		defer leave()
	}
	refund, err := c.o.spend(ctx, by.principal, grant, by.cost)
	if err != nil {
		return tools.Result{}, false, err
	}
	result, err = grant.Call(ctx, r)
	if failed, ok := errors.AsType[*source.CallError](err); ok && !failed.Unknown {
		refund()
	}
	return result, true, err
}
