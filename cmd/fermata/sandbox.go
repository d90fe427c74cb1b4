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

// orphanSlack is how much longer than any run and any pause a sandbox waits for a
// word from its server.
const orphanSlack = time.Minute

// provider starts what makes the sandboxes. The server lives in the state directory
// dir, and shares what others can reach with the servers of its installation. A
// sandbox that waits ready longer than maxIdle, unless that is 0, must be replaced.
func (s *settings) provider(ctx context.Context, log *slog.Logger, dir, installation, instance string) (p sandbox.Provider, maxIdle time.Duration, err error) {
	if s.Sandbox == "docker" {
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

// checkSandbox looks at what this machine has of all that the sandboxes need.
func (s *settings) checkSandbox(ctx context.Context, log *slog.Logger, dir string) []sandbox.Finding {
	if s.Sandbox == "docker" {
		return docker.Check(ctx, s.dockerOptions(log, "", ""))
	}
	return process.Check(ctx, s.processOptions(log, dir, ""))
}

// limits are those of each sandbox.
func (s *settings) limits() sandbox.Limits {
	return sandbox.Limits{
		Memory: int64(s.Memory), CPUs: s.CPUs, PIDs: s.PIDs, Output: int64(s.Output), Disk: int64(s.Disk),
		OutputFiles: s.OutputFiles, OutputFileSize: int64(s.OutputFileSize),
	}
}

func (s *settings) dockerOptions(log *slog.Logger, installation, instance string) docker.Options {
	return docker.Options{
		Image:        s.DockerImage,
		Runtime:      s.DockerRuntime,
		Installation: installation,
		Server:       instance,
		Limits:       s.limits(),
		// It hears nothing from its server through the longest run, or the longest pause.
		Orphan: max(s.PauseTTL, maxBudget) + orphanSlack,
		Log:    log,
	}
}

func (s *settings) processOptions(log *slog.Logger, dir, instance string) process.Options {
	return process.Options{
		Dir:             filepath.Join(dir, "sandboxes"),
		Server:          instance,
		Hide:            s.hidden(dir),
		Python:          s.Python,
		Limits:          s.limits(),
		Sandboxes:       s.MaxSandboxes,
		CgroupsOptional: s.Cgroups == "optional",
		// Nothing that a later server could take over lives longer.
		Orphan: s.PauseTTL + maxBudget,
		Log:    log,
	}
}
