package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/requests"
)

// A resumer continues paused executions.
type resumer struct {
	signer   *continuation.Signer
	requests *requests.Table
	router   *router
}

// resume is Engine.Resume.
func (c *resumer) resume(ctx context.Context, r Resume) (outcome core.Outcome, err error) {
	claims, err := c.signer.Verify(r.Token, time.Now())
	expired := err
	if err != nil && !errors.Is(err, continuation.ErrTokenExpired) {
		return core.Outcome{}, err
	}
	// The token is genuine, so that its holder may learn what it is for.
	begun := false
	defer func() {
		outcome.Execution = claims.Execution
		if err != nil {
			outcome.Session, outcome.Step.Round = claims.Session, claims.Round
		} else if !begun && outcome.Step.Round > 0 {
			outcome.Step.Repeated = true
		}
	}()
	if claims.Principal != r.Principal {
		return core.Outcome{}, ErrForbidden
	}
	known, done, err := c.requests.Begin(ctx, r.Principal, r.RequestID)
	switch {
	case errors.Is(err, ErrRequestInUse) && r.HandedOver:
		// The server that handed the request over has lost our answer and asks again.
		known, done = ctx, func() {}
	case err != nil:
		return answerCancelled(claims.Session, core.Outcome{}, err)
	}
	defer done()
	began := r.Began
	r.Began = func(execution string, events int64) {
		if begun {
			return // An attempt may fail after it has begun, and be made again.
		}
		begun = true
		if began != nil {
			began(execution, events)
		}
	}
	try := func() (core.Outcome, error) { return c.try(known, claims, r, expired) }
	if r.HandedOver {
		outcome, err = try()
	} else {
		outcome, err = patiently(known, try)
	}
	if err != nil && errors.Is(context.Cause(known), requests.ErrCancelled) {
		err = requests.ErrCancelled
	}
	return answerCancelled(claims.Session, outcome, err)
}

// try makes one attempt of resume: it does not wait for an owner that is away.
func (c *resumer) try(ctx context.Context, claims continuation.Claims, r Resume, expired error) (core.Outcome, error) {
	for {
		x, outcome, err := c.router.route(ctx, claims, r)
		if x == nil {
			return outcome, err
		}
		var s *segment
		asked := x.ask(ctx, func() { s, err = x.conversation.resume(claims, r, expired) })
		switch {
		case errors.Is(asked, errEnded):
			continue // Its record has the answer.
		case asked != nil || err != nil:
			return core.Outcome{}, cmp.Or(asked, err)
		}
		x.requestID.Store(&r.RequestID)
		return s.await(ctx, x.cancel)
	}
}

// executionOf is Engine.ExecutionOf.
func (c *resumer) executionOf(token string) string {
	claims, err := c.signer.Verify(token, time.Now())
	if err != nil && !errors.Is(err, continuation.ErrTokenExpired) {
		return ""
	}
	return claims.Execution
}
