//go:build !linux

package process

import (
	"context"
	"errors"

	"fermata/engine/sandbox"
)

var errNotLinux = errors.New("process sandboxes need Linux: with FERMATA_SANDBOX=docker, programs run in containers")

// New refuses: there are no namespaces here.
func New(context.Context, Options) (sandbox.Provider, error) { return nil, errNotLinux }

// Check tells the same.
func Check(context.Context, Options) []sandbox.Finding {
	return []sandbox.Finding{{What: "Linux", State: sandbox.Missing, Detail: errNotLinux.Error(), Remedy: "set FERMATA_SANDBOX=docker"}}
}
