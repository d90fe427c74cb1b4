package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"fermata/api"
	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine"
	"fermata/engine/process"
)

// maxRounds is part of the contract.
const maxRounds = 20

// closers close what was opened, the last first.
type closers []func(context.Context) error

func (c *closers) add(f func(context.Context) error) { *c = append(*c, f) }

func (c closers) close(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(c) {
		errs = append(errs, f(ctx))
	}
	return errors.Join(errs...)
}

// wire builds the parts and joins them. What it returns must be closed when no
// request is being handled any more; after an error nothing is left open.
func (s *settings) wire(ctx context.Context, log *slog.Logger) (handler http.Handler, opened closers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.close(context.WithoutCancel(ctx)))
			opened = nil
		}
	}()
	dir, err := s.stateDir()
	if err != nil {
		return nil, opened, err
	}
	instance := uuid.NewString()
	signer, err := s.signer(dir)
	if err != nil {
		return nil, opened, err
	}
	store, err := boltstore.Open(filepath.Join(dir, "executions.db"), log) //nolint:contextcheck // the store lives until it is closed
	if err != nil {
		return nil, opened, err
	}
	opened.add(func(context.Context) error { return store.Close() })
	provider, err := process.New(ctx, process.Options{
		Dir:    filepath.Join(dir, "sandboxes"),
		Server: instance,
		Hide:   []string{dir},
		Python: s.Python,
		Memory: int64(s.Memory),
		CPUs:   s.CPUs,
		PIDs:   s.PIDs,
		Output: int64(s.Output),
		Disk:   int64(s.Disk),
		// Nothing that a later server could take over lives longer.
		Orphan: s.PauseTTL + maxBudget,
		Log:    log,
	})
	if err != nil {
		return nil, opened, fmt.Errorf("start process sandbox: %w", err)
	}
	opened.add(func(context.Context) error { return provider.Close() })
	executions, err := engine.New(ctx, engine.Options{
		Provider:     provider,
		Store:        store,
		Signer:       signer,
		Instance:     instance,
		Log:          log,
		PauseTTL:     s.PauseTTL,
		KeepAnswers:  s.Keep,
		WallClock:    s.TimeoutClock == "wall",
		MaxRounds:    maxRounds,
		MaxCalls:     s.MaxCalls,
		PoolSize:     s.PoolSize,
		MaxSandboxes: s.MaxSandboxes,
		QueueTimeout: s.QueueTimeout,
	})
	if err != nil {
		return nil, opened, fmt.Errorf("start engine: %w", err)
	}
	opened.add(executions.Close)
	return api.New(executions, s.api(log)), opened, nil
}

// signer returns the signer of continuation tokens. Without a secret it makes
// one, which must stay: tokens are to outlive the server.
func (s *settings) signer(dir string) (*continuation.Signer, error) {
	var secrets [][]byte
	for _, given := range s.Secret {
		secrets = append(secrets, []byte(given.reveal()))
	}
	if len(secrets) == 0 {
		made, err := continuation.LoadOrCreateSecret(filepath.Join(dir, "secret"))
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, made)
	}
	return continuation.NewSigner(secrets)
}

func (s *settings) api(log *slog.Logger) api.Options {
	o := api.Options{
		Open:   s.Auth == "off",
		Errors: s.ErrorStyle,
		Limits: api.Limits{
			Body:           int64(s.MaxBody),
			Tools:          s.MaxTools,
			Results:        s.MaxCalls,
			ResultBytes:    int(s.MaxResult),
			AggregateBytes: int(s.MaxResults),
		},
		Log:     log,
		Version: version(),
	}
	for _, k := range s.APIKeys {
		o.Keys = append(o.Keys, api.Key{Name: k.Name, Key: k.Key.reveal()})
	}
	return o
}
