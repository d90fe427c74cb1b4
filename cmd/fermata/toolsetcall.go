package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/schema"
	"fermata/engine/tools/source"
)

const (
	// closeTime is how long the sources of a toolset have to end.
	closeTime = 10 * time.Second
)

// toolsetFile says where toolsets are, for commands that open one of them.
type toolsetFile struct {
	Path    string `arg:"" name:"file" help:"Toolsets file, or a directory of them."`
	Verbose bool   `short:"v" env:"-" help:"Print the log to stderr, with what MCP servers write to theirs."`
}

// toolsetCall is the command fermata toolsets call.
type toolsetCall struct {
	toolsetFile
	Tool  string `arg:"" name:"toolset.tool" help:"Key of the toolset, a dot, and the name of the tool."`
	Input string `arg:"" name:"input" default:"{}" help:"Input of the tool, a JSON object; - reads it from stdin."`
}

// run makes one call and prints its result as one line of JSON. Why it fails is the error, and what
// caused that goes to stderr.
func (c *toolsetCall) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	key, tool, found := strings.Cut(c.Tool, ".")
	if !found || tool == "" {
		return fmt.Errorf("%s must be the key of a toolset, a dot, and the name of a tool", config.Printable(c.Tool))
	}
	input, err := c.input(stdin)
	if err != nil {
		return err
	}
	return c.open(ctx, key, stderr, func(opened *tools.Tools) error {
		result, err := opened.Call(ctx, tools.Request{Toolset: key, Tool: tool, Input: input})
		if err != nil {
			return tellFailure(stderr, err)
		}
		_, err = fmt.Fprintf(stdout, "%s\n", printableJSON(result.Output))
		return err
	})
}

// input returns the input. More than an input may have is not read.
func (c *toolsetCall) input(stdin io.Reader) (json.RawMessage, error) {
	if c.Input != "-" {
		return json.RawMessage(c.Input), nil
	}
	input, err := io.ReadAll(io.LimitReader(stdin, schema.MaxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	if len(input) > schema.MaxInput {
		return nil, fmt.Errorf("the input on stdin has more than %d bytes", schema.MaxInput)
	}
	return input, nil
}

// open opens the toolset with a key, and no other, for the function.
func (f *toolsetFile) open(ctx context.Context, key string, stderr io.Writer, do func(*tools.Tools) error) error {
	file, err := config.Read(f.Path, os.LookupEnv)
	if err != nil {
		return tellMistakes(stderr, config.Mistakes(err))
	}
	var chosen config.File
	if t := file.Toolset(key); t != nil {
		chosen.Toolsets = []config.Toolset{*t}
	}
	log := slog.New(slog.DiscardHandler)
	if f.Verbose {
		log = slog.New(slog.NewTextHandler(stderr, nil))
	}
	opened := tools.Open(ctx, tools.Options{File: &chosen, Log: log, Version: version()})
	err = do(opened)
	// The context may have ended, and processes have to end all the same.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return errors.Join(err, opened.Close(closing))
}

// tellFailure prints the cause of a failed call, which programs are not told, and returns the error
// that the command ends with.
func tellFailure(stderr io.Writer, err error) error {
	failed, ok := errors.AsType[*source.CallError](err)
	if !ok {
		return errors.New(config.Printable(err.Error()))
	}
	if failed.Err != nil && !errors.Is(err, tools.ErrUnknown) && failed.Err.Error() != failed.Message {
		if _, err := fmt.Fprintln(stderr, "cause:", config.Printable(failed.Err.Error())); err != nil {
			return err
		}
	}
	return errors.New(config.Printable(failed.Message))
}

// printableJSON returns JSON in one line, in which all is escaped that cannot be seen, so that no
// terminal obeys it. It is the same value.
func printableJSON(raw json.RawMessage) []byte {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return []byte(config.Printable(string(raw)))
	}
	var b []byte
	for text := line.Bytes(); len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		switch {
		case unicode.IsPrint(r):
			b = append(b, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b
}
