package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

const (
	// ownerPatience is how long a request waits for an execution whose owner does not answer:
	// long enough for the lease of a dead owner to end, and for a take-over.
	ownerPatience = cluster.LeaseTime + cluster.RenewEvery
	// ownerRetry is the time between two attempts of a request that waits.
	ownerRetry = 200 * time.Millisecond
	// storeTimeout bounds the operations on the store that do not end with a request, because
	// they record what has already happened.
	storeTimeout = 5 * time.Second
)

// ownerAway wraps the errors after which another attempt may succeed in ErrOwnerAway.
func ownerAway(err error) error {
	// ErrConflict means that the execution is being taken over, or was just started, elsewhere.
	if errors.Is(err, continuation.ErrConflict) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrOwnerAway, err)
	}
	return err
}

// patiently calls try again, for up to ownerPatience, as long as the error is ErrOwnerAway: the
// owner may come back, or a server may take the execution over.
func patiently(ctx context.Context, try func() (core.Outcome, error)) (core.Outcome, error) {
	for patience := time.Now().Add(ownerPatience); ; {
		outcome, err := try()
		if err != nil && ctx.Err() != nil {
			return outcome, context.Cause(ctx) // That may have spoilt the attempt.
		}
		if !errors.Is(err, ErrOwnerAway) || time.Now().After(patience) {
			return outcome, err
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return outcome, context.Cause(ctx)
		}
	}
}
