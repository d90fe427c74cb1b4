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

// A build is the program of a server.
type build struct {
	binary string
	// source is the commit that it was built from, or "work tree".
	source string
}

// buildTree builds the server from the work tree, with changes that are not committed.
func buildTree(ctx context.Context, dir string) (build, error) {
	binary := filepath.Join(dir, "fermata")
	if _, err := output(ctx, ".", "go", "build", "-trimpath", "-o", binary, "fermata/cmd/fermata"); err != nil {
		return build{}, err
	}
	return build{binary: binary, source: "work tree"}, nil
}

// buildCommit builds the server of a commit. It takes the files from git archive: git would
// remember a second work tree even after this process is killed.
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

// output runs a program in a directory and returns its standard output.
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
