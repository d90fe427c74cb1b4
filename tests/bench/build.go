package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A build is a server that has been compiled.
type build struct {
	binary string
	// source says what it was compiled from.
	source string
}

// buildTree compiles the server from the work tree, with uncommitted changes.
func buildTree(ctx context.Context, dir string) (build, error) {
	binary := filepath.Join(dir, "fermata")
	if _, err := output(ctx, ".", "go", "build", "-trimpath", "-o", binary, "fermata/cmd/fermata"); err != nil {
		return build{}, err
	}
	return build{binary: binary, source: "work tree"}, nil
}

// buildCommit compiles the server of a commit. It gets the files from git archive: git would
// still list a second work tree after this process was killed.
func buildCommit(ctx context.Context, dir, commit string) (b build, err error) {
	name, err := output(ctx, ".", "git", "rev-parse", "--verify", "--short", commit+"^{commit}")
	if err != nil {
		return build{}, err
	}
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return build{}, err
	}
	tree := filepath.Join(dir, "tree-"+name)
	binary := filepath.Join(dir, "fermata-"+name)
	b = build{binary: binary, source: name}
	if _, err := os.Stat(binary); err == nil {
		return b, nil
	}
	if err := os.Mkdir(tree, 0o700); err != nil {
		return build{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tree)) }()
	if _, err := output(ctx, root, "git", "archive", "--output="+tree+".tar", name); err != nil {
		return build{}, err
	}
	defer func() { err = errors.Join(err, os.Remove(tree+".tar")) }()
	if _, err := output(ctx, tree, "tar", "-xf", tree+".tar"); err != nil {
		return build{}, err
	}
	_, err = output(ctx, tree, "go", "build", "-trimpath", "-o", binary, "./cmd/fermata")
	return b, err
}

// output runs a program in a directory and returns its output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
