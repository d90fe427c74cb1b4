// Command fermata runs Python programs that pause at tool calls and go on when
// the client brings the results.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	leaveProcessors()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// The first signal asks for an orderly end. After it signals do again what
	// they do without us, so that a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "fermata:", err)
		os.Exit(1)
	}
}

// leaveProcessors keeps half of the processors for the programs that are served. A
// round is a chain of short steps here and there: with all of them the scheduler of
// this process wakes threads that look for work where the next step is to run. On two
// processors this takes a quarter off a round. GOMAXPROCS in the environment counts.
func leaveProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	}
}

// commands is the command line. Flags of serve and check may come from the environment.
type commands struct {
	Serve   settings `cmd:"" help:"Serve the API until SIGTERM or SIGINT."`
	Check   check    `cmd:"" help:"Print what this machine can isolate and what it cannot, and whether a server with these settings would start."`
	Version struct{} `cmd:"" help:"Print the version."`
}

// run is the program: help and version go to stdout, the log to stderr. It
// returns when what was asked for is done or ctx has ended.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c commands
	exited := false
	parser, err := newParser(&c, kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exited { // Help was asked for and is printed.
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w (see fermata --help)", err)
	}
	switch parsed.Command() {
	case "version":
		_, err := fmt.Fprintln(stdout, version())
		return err
	case "check":
		return c.Check.run(ctx, stdout)
	default:
		return c.Serve.run(ctx, stderr)
	}
}

func newParser(c *commands, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("fermata"),
		kong.Description("Runs programs in sandboxes, pauses them at their tool calls, and resumes them with the results."),
		kong.DefaultEnvars("FERMATA"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "http", Title: "HTTP"},
			{Key: "jwt", Title: "LibreChat tokens"},
			{Key: "executions", Title: "Executions"},
			{Key: "files", Title: "Files"},
			{Key: "servers", Title: "Groups of servers and shutdown"},
			{Key: "sandbox", Title: "Sandboxes"},
			{Key: "log", Title: "Log"},
		}),
	}, options...)...)
}

// version is the version of the module as the go command knows it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
