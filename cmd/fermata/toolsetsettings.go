package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"fermata/engine/tools/config"
	"fermata/engine/tools/host"
	"fermata/engine/tools/mcptool"
	"fermata/stubs"
)

// toolsSettings are the settings of a server about the tools that it runs itself.
type toolsSettings struct {
	Path        string        `name:"toolsets" env:"FERMATA_TOOLSETS" placeholder:"PATH" help:"Toolsets file, or a directory of them: the tools that the server itself runs. Empty: none."`
	Package     string        `name:"tools-package" default:"fermata_tools" help:"Name of the package from which programs import toolsets."`
	Concurrency int           `name:"tool-concurrency" default:"16" help:"Calls that the server runs at the same time for one execution, 1 to 64."`
	Processes   int           `name:"mcp-processes" default:"64" help:"Most processes of MCP servers that run at the same time for all clients. For one more, the process ends that has been idle longest."`
	UsageLife   time.Duration `name:"usage-life" default:"2160h" help:"How long to keep, for each client, toolset and day, how many calls the server has run and what they cost; at most 9600h. Counted from the end of the day."`
	Rules       toolsetSettings
}

// packageName matches the name of a package that programs can import.
var packageName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// check adds what is wrong with the settings.
func (s *toolsSettings) check(m *mistakes) {
	m.unless(packageName.MatchString(s.Package) && !stubs.IsKeyword(s.Package), "tools-package",
		"the name of a Python package: a small letter, then at most 63 small letters, digits and underscores, and no keyword")
	m.unless(s.Concurrency >= 1 && s.Concurrency <= 64, "tool-concurrency", "between 1 and 64")
	m.unless(s.Processes > 0, "mcp-processes", "more than 0")
	m.unless(s.UsageLife > 0 && s.UsageLife <= maxUsageLife, "usage-life", "more than 0 and at most 9600h")
}

// maxUsageLife bounds how many days a store looks through for one answer.
const maxUsageLife = 400 * 24 * time.Hour

// open opens the toolsets, or returns nil if there are none. addrs are those at which the server
// listens, to which no toolset connects, commands is mcptool.Options.Dir, and known is host.Options.Known. SIGHUP makes the host read the file
// again, until closing.
func (s *toolsSettings) open(ctx context.Context, log *slog.Logger, commands string, known func(string) bool, addrs ...net.Addr) (h *host.Host, closing func(context.Context) error, err error) {
	settings, err := s.Rules.policy()
	if err != nil || s.Path == "" {
		return nil, nil, err
	}
	var forbidden []netip.AddrPort
	for _, addr := range addrs {
		if tcp, ok := addr.(*net.TCPAddr); ok {
			forbidden = append(forbidden, tcp.AddrPort())
		}
	}
	reread := make(chan os.Signal, 1)
	signal.Notify(reread, syscall.SIGHUP)
	h, err = host.Open(ctx, host.Options{Path: s.Path, Package: s.Package, Reread: reread, Settings: settings, Log: log, Forbidden: forbidden, Known: known, Commands: commands, Processes: s.Processes, Version: version()})
	if err == nil {
		return h, func(ctx context.Context) error {
			signal.Stop(reread)
			return h.Close(ctx)
		}, nil
	}
	signal.Stop(reread)
	problems := []error{errors.New("the toolsets cannot be used (FERMATA_TOOLSETS)")}
	if mistakes := config.Mistakes(err); len(mistakes) > 0 {
		for _, m := range mistakes {
			problems = append(problems, m)
		}
		return nil, nil, errors.Join(problems...)
	}
	return nil, nil, fmt.Errorf("%w: %w", problems[0], err)
}

// clearCommands clears what a killed server has left of the commands of MCP servers. They have their folders in dir.
func clearCommands(dir string, log *slog.Logger) {
	ended, err := mcptool.Clear(dir)
	if ended > 0 {
		log.Warn("processes of MCP servers that a killed server had left were ended", "processes", ended)
	}
	if err != nil {
		log.Warn("what a killed server has left of its MCP servers cannot be cleared", "err", err)
	}
}
