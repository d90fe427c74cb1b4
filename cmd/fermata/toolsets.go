package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
)

// toolsetCommands returns the commands below fermata toolsets.
func toolsetCommands(stdin io.Reader, stdout, stderr io.Writer) *command {
	var (
		check toolsetCheck
		call  toolsetCall
		stub  toolsetStub
		docs  toolsetDocs
	)
	return &command{name: "toolsets", help: "Check the file that describes tools which the server runs, and call them.", below: []*command{
		{
			name: "toolsets check", options: &check,
			help: "Check a toolsets file, or a directory of them, without connecting to anything, and list what is in it.",
			run:  func(ctx context.Context, _ []stray) error { return check.run(ctx, stdout, stderr) },
		},
		{
			name: "toolsets call", options: &call,
			help: "Call one tool as the server will, and print its result as JSON.",
			run:  func(ctx context.Context, _ []stray) error { return call.run(ctx, stdin, stdout, stderr) },
		},
		{
			name: "toolsets stub", options: &stub,
			help: "Print the source that programs import for a toolset.",
			run:  func(ctx context.Context, _ []stray) error { return stub.run(ctx, stdout, stderr) },
		},
		{
			name: "toolsets docs", options: &docs,
			help: "Print Markdown about a toolset for the system prompt of a model.",
			run:  func(ctx context.Context, _ []stray) error { return docs.run(ctx, stdout, stderr) },
		},
	}}
}

// toolsetCheck is the command fermata toolsets check.
type toolsetCheck struct {
	Path     string `arg:"" name:"file" help:"Toolsets file, or a directory of them."`
	As       string `env:"-" placeholder:"NAME" help:"Tell for each tool whether this principal may use it, and if not, why."`
	Settings toolsetSettings
}

// toolsetSettings are the settings that say who may use toolsets.
type toolsetSettings struct {
	Mode       policy.Mode  `name:"toolsets-mode" env:"FERMATA_TOOLSETS_MODE,PTC_MODE" placeholder:"MODE" help:"Who may use toolsets: on (all principals), off, or partial (only those in FERMATA_TOOLSETS_USERS)."`
	Users      []string     `name:"toolsets-users" env:"FERMATA_TOOLSETS_USERS,PTC_USER_ALLOWLIST" placeholder:"NAME" help:"Principals that may use toolsets in the mode partial."`
	Allow      []string     `name:"toolsets-allow" env:"FERMATA_TOOLSETS_ALLOW,PTC_TOOLSET_ALLOWLIST" placeholder:"TOOLSET[.TOOL]" help:"If set, only these toolsets or tools may be used."`
	Block      []string     `name:"toolsets-block" env:"FERMATA_TOOLSETS_BLOCK,PTC_TOOLSET_BLOCKLIST" placeholder:"TOOLSET[.TOOL]" help:"Toolsets or tools that may never be used."`
	Debug      policy.Debug `name:"toolsets-debug" env:"FERMATA_TOOLSETS_DEBUG,PTC_DEBUG" placeholder:"WORD" help:"opt-in: toolsets are only for executions whose title contains useptc; opt-out: for all but those whose title contains nonptc."`
	Rollout    *int         `name:"toolsets-rollout" env:"FERMATA_TOOLSETS_ROLLOUT,PTC_ROLLOUT_PERCENT" placeholder:"PERCENT" help:"Percentage of the principals that may use toolsets, 0 to 100, among those that the other settings allow. A principal that is among 10 percent is among 20, too. Empty: all."`
	Salt       string       `name:"toolsets-rollout-salt" env:"FERMATA_TOOLSETS_ROLLOUT_SALT,PTC_ROLLOUT_SALT" placeholder:"TEXT" help:"Another text here chooses other principals for FERMATA_TOOLSETS_ROLLOUT."`
	Sequential bool         `name:"toolsets-sequential" env:"FERMATA_TOOLSETS_SEQUENTIAL,PTC_SEQUENTIAL" help:"Make every execution sequential: one call at a time."`
	MaxDayCost *int64       `name:"toolsets-max-day-cost" env:"FERMATA_TOOLSETS_MAX_DAY_COST" placeholder:"CREDITS" help:"What the calls that the server runs for one principal may cost on one day of UTC, 0 to 1000000000. Empty: no bound."`
}

// toolsetSynonyms are the variables that mean the same.
var toolsetSynonyms = [][2]string{
	{"FERMATA_TOOLSETS_MODE", "PTC_MODE"},
	{"FERMATA_TOOLSETS_USERS", "PTC_USER_ALLOWLIST"},
	{"FERMATA_TOOLSETS_ALLOW", "PTC_TOOLSET_ALLOWLIST"},
	{"FERMATA_TOOLSETS_BLOCK", "PTC_TOOLSET_BLOCKLIST"},
	{"FERMATA_TOOLSETS_DEBUG", "PTC_DEBUG"},
	{"FERMATA_TOOLSETS_ROLLOUT", "PTC_ROLLOUT_PERCENT"},
	{"FERMATA_TOOLSETS_ROLLOUT_SALT", "PTC_ROLLOUT_SALT"},
	{"FERMATA_TOOLSETS_SEQUENTIAL", "PTC_SEQUENTIAL"},
}

// policy returns the settings that the policy has to know. Of two names of one setting, none may be
// passed over, also if the other one is empty: it could forbid something.
func (s *toolsetSettings) policy() (policy.Settings, error) {
	var problems []error
	for _, pair := range toolsetSynonyms {
		ours, found := os.LookupEnv(pair[0])
		if theirs, both := os.LookupEnv(pair[1]); found && both && ours != theirs {
			problems = append(problems, fmt.Errorf("%s and %s are the same setting and have different values: unset one of them", pair[0], pair[1]))
		}
	}
	if most := s.MaxDayCost; most != nil && (*most < 0 || *most > config.MaxCost) {
		problems = append(problems, fmt.Errorf("--toolsets-max-day-cost must be between 0 and %d (FERMATA_TOOLSETS_MAX_DAY_COST)", config.MaxCost))
	}
	if percent := s.Rollout; percent != nil && (*percent < 0 || *percent > 100) {
		problems = append(problems, errors.New("--toolsets-rollout must be between 0 and 100 (FERMATA_TOOLSETS_ROLLOUT)"))
	}
	return policy.Settings{
		Mode: s.Mode, Users: trimmed(s.Users), Allow: trimmed(s.Allow), Block: trimmed(s.Block), Debug: s.Debug, Sequential: s.Sequential,
		MaxDayCost: s.MaxDayCost, Rollout: s.Rollout, Salt: s.Salt,
	}, errors.Join(problems...)
}

// trimmed returns a list without the blanks around its entries.
func trimmed(list []string) []string {
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// run lists what is in the toolsets file. Mistakes and warnings go to stderr; if there are mistakes
// nothing is listed.
func (c *toolsetCheck) run(ctx context.Context, stdout, stderr io.Writer) error {
	file, err := config.Read(c.Path, os.LookupEnv)
	if err != nil {
		return tellMistakes(stderr, config.Mistakes(err))
	}
	known, err := c.openable(ctx, file, stderr)
	if err != nil {
		return err
	}
	settings, err := c.Settings.policy()
	if err != nil {
		return err
	}
	decided, warnings, err := policy.New(settings, file, known)
	for _, w := range warnings {
		if _, err := fmt.Fprintln(stderr, "warning:", w); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	l := toolsetList{file: file, known: known, out: stdout}
	if c.As != "" {
		rights := decided.Rights(c.As)
		l.rights = &rights
	}
	return l.print()
}

// tellMistakes prints mistakes, one in each line as compilers do, and returns the error that the
// command ends with.
func tellMistakes(stderr io.Writer, mistakes []*config.Mistake) error {
	for _, m := range mistakes {
		if _, err := fmt.Fprintln(stderr, m); err != nil {
			return err
		}
	}
	if len(mistakes) == 1 {
		return errors.New("the toolsets cannot be used: there is a mistake")
	}
	return fmt.Errorf("the toolsets cannot be used: there are %d mistakes", len(mistakes))
}

// openable opens the toolsets, which connects to nothing, and returns which tools are known. It is an
// error if one of them cannot be used.
func (c *toolsetCheck) openable(ctx context.Context, file *config.File, stderr io.Writer) ([]policy.Toolset, error) {
	opened := tools.Open(ctx, tools.Options{File: file})
	var known []policy.Toolset
	var mistakes []*config.Mistake
	for i, t := range opened.Toolsets() {
		if t.State == tools.Unavailable {
			mistakes = append(mistakes, file.Toolsets[i].Unusable(t.Reason))
		}
		for _, note := range t.Notes {
			if _, err := fmt.Fprintf(stderr, "warning: toolsets.%s: %s\n", t.Key, config.Printable(note)); err != nil {
				return nil, err
			}
		}
		known = append(known, host.Known(file.Toolsets[i], t))
	}
	if err := opened.Close(ctx); err != nil {
		return nil, err
	}
	if len(mistakes) > 0 {
		return nil, tellMistakes(stderr, mistakes)
	}
	return known, nil
}
