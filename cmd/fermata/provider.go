package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"fermata/engine/docker"
	"fermata/engine/process"
	"fermata/engine/sandbox"
)

// orphanSlack is how much longer than the longest run or pause a sandbox waits to hear
// from its server.
const orphanSlack = time.Minute

// provider starts the provider of sandboxes. dir is the state directory. All servers of an
// installation can find its containers. A sandbox that has been idle for maxIdle must be
// replaced, unless maxIdle is 0.
func (s *settings) provider(ctx context.Context, log *slog.Logger, dir, installation, instance string) (p sandbox.Provider, maxIdle time.Duration, err error) {
	if s.Sandbox.Provider == "docker" {
		o := s.dockerOptions(log, installation, instance)
		p, err := docker.New(ctx, o)
		if err != nil {
			return nil, 0, fmt.Errorf("start docker sandbox: %w", err)
		}
		return p, o.Orphan / 2, nil
	}
	processes, err := process.New(ctx, s.processOptions(log, dir, instance))
	if err != nil {
		return nil, 0, fmt.Errorf("start process sandbox: %w", err)
	}
	return processes, 0, nil
}

// checkSandbox reports which of the things that sandboxes need this machine has.
func (s *settings) checkSandbox(ctx context.Context, log *slog.Logger, dir string) []sandbox.Finding {
	if s.Sandbox.Provider == "docker" {
		return docker.Check(ctx, s.dockerOptions(log, "", ""))
	}
	return process.Check(ctx, s.processOptions(log, dir, ""))
}

// limits are those of each sandbox.
func (s *settings) limits() sandbox.Limits {
	return sandbox.Limits{
		Memory: int64(s.Sandbox.Memory), CPUs: s.Sandbox.CPUs, PIDs: s.Sandbox.PIDs, Output: int64(s.Sandbox.Output), Disk: int64(s.Sandbox.Disk),
		OutputFiles: s.Files.OutputFiles, OutputFileSize: int64(s.Files.OutputFileSize),
	}
}

func (s *settings) dockerOptions(log *slog.Logger, installation, instance string) docker.Options {
	return docker.Options{
		Image:        s.Sandbox.DockerImage,
		Runtime:      s.Sandbox.DockerRuntime,
		Installation: installation,
		Server:       instance,
		Limits:       s.limits(),
		// A sandbox hears nothing from its server during a run or a pause.
		Orphan: max(s.Executions.longestPause(), maxBudget) + orphanSlack,
		Log:    log,
	}
}

func (s *settings) processOptions(log *slog.Logger, dir, instance string) process.Options {
	return process.Options{
		Dir:             filepath.Join(dir, "sandboxes"),
		Server:          instance,
		Hide:            s.Files.hidden(dir),
		Python:          s.Sandbox.Python,
		Limits:          s.limits(),
		Sandboxes:       s.Sandbox.MaxSandboxes,
		CgroupsOptional: s.Sandbox.Cgroups == "optional",
		// After this time there is nothing left that a later server could take over.
		Orphan: s.Executions.longestPause() + maxBudget,
		Log:    log,
	}
}
