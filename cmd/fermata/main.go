// Command fermata is a server that runs Python and shell programs. A program pauses at its
// tool calls and continues when the client sends the results.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
)

func main() {
	leaveProcessors()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// The first signal asks for an orderly shutdown. It also restores the default action of
	// signals, so that a second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "fermata:", err)
		os.Exit(1)
	}
}

// leaveProcessors leaves half of the processors to the sandboxes. A round is a chain of
// short steps, in this process and in a sandbox by turns. With all processors the scheduler
// of this process would wake idle threads to look for work, on the processor where the next
// step of the sandbox has to run. On two processors this makes a round a quarter faster.
// GOMAXPROCS in the environment takes precedence.
func leaveProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2))
	}
}

// run executes the command that args name. Help, version and findings go to stdout, the log
// to stderr. It returns when the command is done or ctx has ended.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	common := new(commonFlags)
	c, args, err := commands(common, stdout, stderr).find(args)
	if err == nil {
		err = c.parse(args)
	}
	switch {
	case common.Help:
		return c.printHelp(stdout)
	case common.Version:
		return printVersion(stdout)
	case err != nil:
		return fmt.Errorf("%w (see fermata --help)", err)
	}
	return c.run(ctx, straysIn(os.Environ(), c.settings()))
}

// commands returns all commands, as one group.
func commands(common *commonFlags, stdout, stderr io.Writer) *command {
	var (
		serve   settings
		machine check
		asked   health
		agent   agentCommand
	)
	all := &command{help: "Runs programs in sandboxes, pauses them at their tool calls, and resumes them with the results."}
	all.below = []*command{
		{
			name: "serve", options: &serve,
			help: "Serve the API until SIGTERM or SIGINT.",
			run:  func(ctx context.Context, strays []stray) error { return serve.run(ctx, stderr, strays) },
		},
		{
			name: "check", options: &machine,
			help: "Print what this machine can isolate and what it cannot, and whether a server with these settings would start.",
			run:  func(ctx context.Context, strays []stray) error { return machine.run(ctx, stdout, strays) },
		},
		{
			name: "health", options: &asked,
			help: "Ask a running server whether it lives; the exit code is 0 if it does.",
			run:  func(ctx context.Context, _ []stray) error { return asked.run(ctx, stdout) },
		},
		{
			name: "mcp", options: &agent,
			help: "Speak the Model Context Protocol over stdin and stdout, for an agent on this machine.",
			run: func(ctx context.Context, strays []stray) error {
				return agent.run(ctx, streams{os.Stdin, keepOpen{stdout}}, stderr, strays)
			},
		},
		toolsetCommands(os.Stdin, stdout, stderr),
		{
			name: "version", help: "Print the version.",
			run: func(context.Context, []stray) error { return printVersion(stdout) },
		},
		{
			name: "help", help: "Print this help, or that of a command: fermata help serve.",
			run: func(context.Context, []stray) error { return all.printHelp(stdout) },
		},
	}
	all.share(common)
	return all
}

func printVersion(stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, version())
	return err
}
