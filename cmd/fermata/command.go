package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A command is one that the first arguments name, or a group of such commands.
type command struct {
	// name is what follows fermata: serve, or toolsets check.
	name, help string
	// below are the commands of a group.
	below []*command
	// common and options are pointers to structs of settings. If options have a method Validate, it
	// finds mistakes in all of them together.
	common  *commonFlags
	options any
	run     func(ctx context.Context, strays []stray) error
}

// commonFlags are the flags of all commands.
type commonFlags struct {
	Help    bool `short:"h" env:"-" help:"Show context-sensitive help."`
	Version bool `env:"-" help:"Print the version."`
}

// find returns the command below c that the first arguments name, and the arguments that follow.
func (c *command) find(args []string) (*command, []string, error) {
	for len(args) > 0 {
		i := slices.IndexFunc(c.below, func(b *command) bool { return b.lastWord() == args[0] })
		if i < 0 {
			break
		}
		c, args = c.below[i], args[1:]
	}
	if len(c.below) > 0 && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return nil, nil, unexpected(args[0], c.words())
	}
	return c, args, nil
}

func (c *command) lastWord() string { return c.name[strings.LastIndex(c.name, " ")+1:] }

// words returns what may follow the name of a group.
func (c *command) words() []string {
	var words []string
	for _, b := range c.below {
		words = append(words, b.lastWord())
	}
	return words
}

// unexpected is the error about an argument, which may mean one of the known ones.
func unexpected(arg string, known []string) error {
	if meant := nearest(arg, known, ""); meant != "" {
		return fmt.Errorf("unexpected argument %s, did you mean %q?", arg, meant)
	}
	return fmt.Errorf("unexpected argument %s", arg)
}

// share gives the command and all below it the common flags.
func (c *command) share(common *commonFlags) {
	c.common = common
	for _, b := range c.below {
		b.share(common)
	}
}

// settings returns the settings of the command, the common ones first.
func (c *command) settings() []*setting {
	list := settingsOf(reflect.ValueOf(c.common).Elem(), "", "")
	if c.options != nil {
		list = append(list, settingsOf(reflect.ValueOf(c.options).Elem(), "", "")...)
	}
	return list
}

// parse gives the settings their values: those that the arguments of the command line say, else those
// of the environment, else their defaults.
func (c *command) parse(args []string) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.Usage = func() {}
	settings := c.settings()
	var arguments []*setting
	for _, s := range settings {
		if err := s.readDefault(); err != nil {
			return err
		}
		if s.argument() {
			arguments = append(arguments, s)
			continue
		}
		f := flags.VarPF(s, s.name, s.tag.Get("short"), "")
		if s.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	if err := flags.Parse(args); err != nil {
		return flagError(err, settings)
	}
	if len(c.below) > 0 {
		return fmt.Errorf("expected one of %s", strings.Join(c.words(), ", "))
	}
	if err := readArguments(flags.Args(), arguments); err != nil {
		return err
	}
	for _, s := range settings {
		if err := s.readEnvironment(); err != nil {
			return err
		}
	}
	if whole, ok := c.options.(interface{ Validate() error }); ok {
		if err := whole.Validate(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// flagError returns the error of pflag in our words. The one of pflag tells the values of secrets.
func flagError(err error, settings []*setting) error {
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s: want a value", missing.GetFlag().Name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	if unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("unknown flag -%s", unknown.GetSpecifiedName())
	}
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	if meant := nearest(unknown.GetSpecifiedName(), names, ""); meant != "" {
		return fmt.Errorf("unknown flag --%s, did you mean %q?", unknown.GetSpecifiedName(), "--"+meant)
	}
	return fmt.Errorf("unknown flag --%s", unknown.GetSpecifiedName())
}

// readArguments reads the arguments that are no flags.
func readArguments(args []string, into []*setting) error {
	var missing []string
	for i, s := range into {
		if _, optional := s.tag.Lookup("default"); i >= len(args) && !optional {
			missing = append(missing, "<"+s.name+">")
		}
		if i >= len(args) {
			continue
		}
		if err := s.Set(args[i]); err != nil {
			return fmt.Errorf("<%s>: %w", s.name, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("expected %q", strings.Join(missing, " "))
	}
	if len(args) > len(into) {
		return unexpected(args[len(into)], nil)
	}
	return nil
}
