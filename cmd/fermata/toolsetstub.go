package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/stubs"
)

// toolsetStub is the command fermata toolsets stub.
type toolsetStub struct {
	toolsetFile
	Toolset string `arg:"" name:"toolset" help:"Key of the toolset."`
	Lang    string `env:"-" enum:"python,bash" default:"python" placeholder:"LANGUAGE" help:"Language of the programs: python or bash."`
}

// run prints the source that programs import.
func (c *toolsetStub) run(ctx context.Context, stdout, stderr io.Writer) error {
	return c.print(ctx, c.Toolset, stdout, stderr, func(t stubs.Toolset) (string, error) {
		if c.Lang == "bash" {
			return stubs.BashModule(t)
		}
		return stubs.PythonModule(t)
	})
}

// toolsetDocs is the command fermata toolsets docs.
type toolsetDocs struct {
	toolsetFile
	Toolset string `arg:"" name:"toolset" help:"Key of the toolset."`
	Package string `env:"FERMATA_TOOLS_PACKAGE" default:"fermata_tools" placeholder:"NAME" help:"Package that programs import the toolset from."`
}

// run prints the documentation of a toolset.
func (c *toolsetDocs) run(ctx context.Context, stdout, stderr io.Writer) error {
	if !stubs.IsClassName(c.Package) {
		return fmt.Errorf("the package %s must have a name of at most 64 letters, digits and underscores that begins with a letter", config.Printable(c.Package))
	}
	return c.print(ctx, c.Toolset, stdout, stderr, func(t stubs.Toolset) (string, error) {
		return stubs.Docs(c.Package, t)
	})
}

// print prints what a function makes of a toolset. MCP servers are asked for their tools.
func (f *toolsetFile) print(ctx context.Context, key string, stdout, stderr io.Writer, text func(stubs.Toolset) (string, error)) error {
	return f.open(ctx, key, stderr, func(opened *tools.Tools) error {
		t, err := opened.Toolset(ctx, key)
		switch {
		case err != nil:
			return tellFailure(stderr, err)
		case t.State != tools.Ready:
			return fmt.Errorf("the toolset %s is unavailable: %s", t.Key, config.Printable(t.Reason))
		}
		for _, note := range t.Notes {
			if _, err := fmt.Fprintf(stderr, "warning: toolsets.%s: %s\n", t.Key, config.Printable(note)); err != nil {
				return err
			}
		}
		made, err := text(t.ForPrograms())
		if err != nil {
			return err
		}
		for line := range strings.Lines(made) {
			if _, err := fmt.Fprintln(stdout, config.Printable(strings.TrimSuffix(line, "\n"))); err != nil {
				return err
			}
		}
		return nil
	})
}
