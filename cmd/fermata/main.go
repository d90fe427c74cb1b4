// Command fermata is a server that runs Python and shell programs. A program pauses at its
// tool calls and continues when the client sends the results.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
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

// commands is the command line. The flags of serve, check and mcp may also be set in
// the environment.
type commands struct {
	Serve    settings        `cmd:"" help:"Serve the API until SIGTERM or SIGINT."`
	Check    check           `cmd:"" help:"Print what this machine can isolate and what it cannot, and whether a server with these settings would start."`
	Health   health          `cmd:"" help:"Ask a running server whether it lives; the exit code is 0 if it does."`
	MCP      agentCommand    `cmd:"" name:"mcp" help:"Speak the Model Context Protocol over stdin and stdout, for an agent on this machine."`
	Toolsets toolsetCommands `cmd:"" help:"Check the file that describes tools which the server runs, and call them."`
	Version  struct{}        `cmd:"" help:"Print the version."`
	Help     struct{}        `cmd:"" help:"Print this help, or that of a command: fermata help serve."`

	VersionFlag kong.VersionFlag `name:"version" env:"-" help:"Print the version."`
}

// run executes the command that args name. Help, version and findings go to stdout, the log
// to stderr. It returns when the command is done or ctx has ended.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	var c commands
	exited := false
	parser, err := newParser(&c, kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exited { // kong has printed the help or the version that was asked for.
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s (see fermata --help)", withoutSecrets(err, parser))
	}
	command := parsed.Command()
	if strings.HasPrefix(command, "toolsets ") {
		return c.Toolsets.run(ctx, command, os.Stdin, stdout, stderr)
	}
	switch command {
	case "version":
		_, err := fmt.Fprintln(stdout, version())
		return err
	case "check":
		return c.Check.run(ctx, stdout, straysIn(os.Environ(), parsed.Selected().Flags))
	case "mcp":
		return c.MCP.run(ctx, streams{os.Stdin, keepOpen{stdout}}, stderr, straysIn(os.Environ(), parsed.Selected().Flags))
	case "health":
		return c.Health.run(ctx, stdout)
	default:
		return c.Serve.run(ctx, stderr, straysIn(os.Environ(), parsed.Selected().Flags))
	}
}

func newParser(c *commands, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("fermata"),
		kong.Description("Runs programs in sandboxes, pauses them at their tool calls, and resumes them with the results."),
		kong.DefaultEnvars("FERMATA"),
		kong.Vars{"version": version(), "defaultPython": defaultPython, "defaultImage": defaultImage},
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "http", Title: "HTTP"},
			{Key: "jwt", Title: "LibreChat tokens"},
			{Key: "executions", Title: "Executions"},
			{Key: "tools", Title: "Tools that the server runs"},
			{Key: "journal", Title: "Journals"},
			{Key: "files", Title: "Files"},
			{Key: "servers", Title: "Groups of servers and shutdown"},
			{Key: "sandbox", Title: "Sandboxes"},
			{Key: "log", Title: "Log"},
		}),
	}, options...)...)
}

// release is the version that a build was given, as the images are:
//
//	go build -ldflags "-X main.release=v1.2.3"
var release string //nolint:gochecknoglobals // the linker sets it

// version returns the version that the build was given, or else what the go command has recorded
// of the module and its repository.
func version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case release != "":
		return release
	case !ok:
		return "unknown"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	const short = 12 // characters of a revision that tell it from all others
	revision := recorded["vcs.revision"]
	if revision == "" {
		return "(devel)"
	}
	if recorded["vcs.modified"] == "true" {
		return revision[:min(short, len(revision))] + "+changes"
	}
	return revision[:min(short, len(revision))]
}
