// Command fermata serves programs that pause at tool calls and continue when the client
// sends the results.
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
	// The first signal asks for an orderly shutdown. After it, signals have their default
	// effect again: a second one ends the server at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "fermata:", err)
		os.Exit(1)
	}
}

// leaveProcessors leaves half of the processors to the programs. A round is a chain of short
// steps in this process and in the program's. If Go used all processors, its scheduler would
// wake threads that look for work on the processor where the program's next step should run.
// On two processors this shortens a round by a quarter. GOMAXPROCS in the environment wins.
func leaveProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	}
}

// commands is the command line. The flags of serve and check can also be set in the environment.
type commands struct {
	Serve   settings `cmd:"" help:"Serve the API until SIGTERM or SIGINT."`
	Check   check    `cmd:"" help:"Print what this machine can isolate and what it cannot, and whether a server with these settings would start."`
	Version struct{} `cmd:"" help:"Print the version."`
}

// run executes the command line. Help, findings and the version go to stdout, the log to
// stderr. It returns when the command is done or ctx has ended.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var c commands
	exited := false
	parser, err := newParser(&c, kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exited { // The parser has printed the help.
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
