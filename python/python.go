// Package python holds the runner: the Python program inside every sandbox.
// It is standard library only and works from Python 3.11.
package python

import "embed"

// Protocol is the version of the frames that the embedded runner speaks; it is
// PROTOCOL of runner/fermata/__init__.py.
const Protocol = 9

// Runner is the source of the runner, below the directory "runner", which Python
// can execute: python3 -I runner.
//
//go:embed runner/*.py runner/fermata/*.py
var Runner embed.FS
