//go:build !linux

package process

import (
	"context"
	"errors"

	"fermata/engine/sandbox"
)

var errNotLinux = errors.New("process sandboxes need Linux: with FERMATA_SANDBOX=docker, programs run in containers")

// A Provider cannot be made here: there are no namespaces.
type Provider struct {
	sandbox.Provider
	python interpreter
}

// New refuses.
func New(context.Context, Options) (*Provider, error) { return nil, errNotLinux }

// Check tells the same.
func Check(context.Context, Options) []sandbox.Finding {
	return []sandbox.Finding{{What: "Linux", State: sandbox.Missing, Detail: errNotLinux.Error(), Remedy: "set FERMATA_SANDBOX=docker"}}
}
