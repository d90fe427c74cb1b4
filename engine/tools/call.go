package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"fermata/engine/tools/envelope"
	"fermata/engine/tools/mask"
	"fermata/engine/tools/outgoing"
	"fermata/engine/tools/schema"
	"fermata/engine/tools/source"
)

// maxMessage is the maximum length of the message of a failure, in bytes.
const maxMessage = 20 << 10

// A Request is a call to be made.
type Request struct {
	// Toolset is the key of the toolset, and Tool the name of the tool at its source.
	Toolset, Tool string
	// Principal is the principal on whose behalf the call is made.
	Principal string
	// Input is the input, as it was sent. Empty means an empty object.
	Input json.RawMessage
	// Key is the idempotency key of the call, which all its retries have. If it is empty, a new key is made.
	Key string
	// Depth is the number of toolsets through which the request of the caller has come.
	Depth int
}

// A Result is what a call has returned.
type Result struct {
	// Output is the result, which is JSON.
	Output json.RawMessage
	// Envelope is true if the result came in an envelope.
	Envelope bool
	// Cost is what the call costs, in credits.
	Cost int64
}

// Call makes one call. If it fails the error is a *source.CallError, whose texts contain no secrets; its
// cause is ErrUnknown if there is no such tool, or if the tool is hidden.
func (t *Tools) Call(ctx context.Context, r Request) (Result, error) {
	s := t.find(r.Toolset)
	if s == nil {
		return Result{}, unknownToolset(r.Toolset)
	}
	ctx, cancel := context.WithTimeout(outgoing.WithDepth(ctx, r.Depth+1), s.described.Timeout)
	defer cancel()
	result, err := s.call(ctx, r, t.maxResult)
	if err == nil {
		return result, nil
	}
	failed := s.hide(err)
	if failed.Err != nil && !errors.Is(err, ErrUnknown) {
		t.log.Info("a call of a tool has failed", "toolset", r.Toolset, "tool", quoted(r.Tool), "reason", failed.Message, "err", failed.Err)
	}
	return Result{}, failed
}

// call makes one call. Its errors may contain secrets.
func (t *toolset) call(ctx context.Context, r Request, maxResult int64) (Result, error) {
	called, err := t.tool(ctx, r.Tool)
	if err != nil {
		return Result{}, err
	}
	input, err := called.check(r.Input)
	if err != nil {
		return Result{}, failure(nil, "%v", err)
	}
	leave, err := t.enter(ctx, r.Principal)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if r.Key == "" {
		r.Key = rand.Text()
	}
	answer, err := t.source.Call(ctx, source.Call{
		Tool: called.Name, Input: input, Principal: r.Principal, Idempotent: called.Idempotent, Key: r.Key, MaxResult: maxResult,
	})
	if err != nil {
		return Result{}, err
	}
	if answer, err = called.unwrap(answer, pointerOf(t, called.Name)); err != nil {
		return Result{}, err
	}
	if int64(len(answer)) > maxResult {
		return Result{}, failure(nil, textLarge, len(answer), maxResult)
	}
	return Result{Output: t.masker.JSON(answer), Envelope: called.Rules.Envelope, Cost: called.Rules.Cost}, nil
}

// tool returns a tool. It starts the toolset if that has not happened.
func (t *toolset) tool(ctx context.Context, name string) (tool, error) {
	if err := t.start(ctx); err != nil {
		return tool{}, failure(err, textUnavailable, t.described.Key, textLateTools)
	}
	found, ok := t.find(name)
	if ok && t.source != nil {
		return found, nil
	}
	if known := t.known(); known.State != Ready {
		return tool{}, failure(nil, textUnavailable, t.described.Key, known.Reason)
	}
	return tool{}, failure(ErrUnknown, textNoTool, t.described.Key, quoted(name))
}

// check returns an input in its canonical form, if it fits the schema.
func (t tool) check(input json.RawMessage) (json.RawMessage, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	canonical, err := schema.Canonical(input)
	if err != nil {
		return nil, err
	}
	if canonical[0] != '{' {
		return nil, errors.New(textNoObject)
	}
	if t.schema == nil {
		return canonical, nil
	}
	compiled, err := t.schema()
	if err != nil {
		return nil, fmt.Errorf(textUnchecked, err)
	}
	return canonical, compiled.Check(canonical)
}

// failure returns a failed call.
func failure(cause error, format string, args ...any) *source.CallError {
	return &source.CallError{Message: fmt.Sprintf(format, args...), Err: cause}
}

// hide returns a failure in which the secrets are masked, both in the message and in the cause.
func (t *toolset) hide(err error) *source.CallError {
	failed, ok := errors.AsType[*source.CallError](err)
	if !ok {
		failed = failure(err, "%s", textFailed)
	}
	hidden := &source.CallError{Message: shorten(t.masker.Text(failed.Message), maxMessage), Unknown: failed.Unknown}
	if d := failed.Details; d != nil {
		hidden.Details = &envelope.Details{Code: t.masker.Text(d.Code), Where: t.masker.Text(d.Where), Managed: d.Managed}
	}
	if hidden.Message == "" {
		hidden.Message = textFailed
	}
	if failed.Err != nil {
		hidden.Err = maskedError{err: failed.Err, masker: t.masker}
	}
	return hidden
}

// A maskedError is an error whose text has no secrets.
type maskedError struct {
	err    error
	masker *mask.Masker
}

// Error returns the text without secrets.
func (e maskedError) Error() string {
	return shorten(strings.ToValidUTF8(e.masker.Text(e.err.Error()), "\ufffd"), maxMessage)
}

// Is reports whether the masked error is another one. There is no Unwrap, which would reveal the secrets.
func (e maskedError) Is(target error) bool { return errors.Is(e.err, target) }
