package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"fermata/engine/sandbox"
)

// check is the command fermata check. It takes the settings of serve and tries them without
// serving.
type check struct {
	settings
}

// Validate accepts all settings, because run reports their mistakes as a finding.
func (*check) Validate() error { return nil }

// checkTimeout bounds a whole check. A server that takes longer to start is useless.
const checkTimeout = 2 * time.Minute

// run prints what this machine can isolate and what it cannot. It returns an error if a
// server with these settings would not start. strays are environment variables to warn of.
func (c *check) run(ctx context.Context, stdout io.Writer, strays []stray) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	findings := append(c.checkSettings(strays), c.checkSandbox(ctx, slog.New(slog.DiscardHandler), "")...)
	findings = append(findings, c.tryProgram(ctx)...)
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	missing := 0
	for _, f := range findings {
		if f.State == sandbox.Missing {
			missing++
		}
		line := strings.Join(strings.Fields(f.Detail), " ")
		if f.Remedy != "" {
			line = strings.TrimPrefix(line+". Remedy: "+f.Remedy, ". ")
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s\n", f.What, f.State, line); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("a server with these settings would not start: of the %d things above, %d are missing", len(findings), missing)
	}
	return nil
}

// checkSettings checks the settings and the state directory.
func (c *check) checkSettings(strays []stray) []sandbox.Finding {
	findings := []sandbox.Finding{{What: "settings", State: sandbox.OK}}
	if err := c.settings.Validate(); err != nil {
		findings[0] = sandbox.Finding{What: "settings", State: sandbox.Missing, Detail: err.Error(), Remedy: "see `fermata serve --help`"}
	}
	for _, one := range strays {
		findings = append(findings, sandbox.Finding{What: "ignored", State: sandbox.Weaker, Detail: one.warning()})
	}
	for _, sentence := range c.idle() {
		findings = append(findings, sandbox.Finding{What: "ignored", State: sandbox.Weaker, Detail: sentence})
	}
	dir, err := c.Executions.stateDirName()
	if err != nil {
		return append(findings, sandbox.Finding{What: "state directory", State: sandbox.Missing, Detail: err.Error(), Remedy: "set FERMATA_STATE_DIR"})
	}
	return append(findings, checkStateDir(dir))
}

// checkStateDir checks a state directory, which need not exist yet.
func checkStateDir(dir string) sandbox.Finding {
	const what, remedy = "state directory", "give it to the server's user, or set FERMATA_STATE_DIR to another directory"
	info, err := os.Stat(dir)
	existing := dir
	for ; errors.Is(err, fs.ErrNotExist) && existing != filepath.Dir(existing); info, err = os.Stat(existing) {
		existing = filepath.Dir(existing)
	}
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		const writeAndEnter = 2 | 1
		err = syscall.Access(existing, writeAndEnter)
	}
	if err != nil {
		return sandbox.Finding{What: what, State: sandbox.Missing, Detail: fmt.Sprintf("%s: %v", existing, err), Remedy: remedy}
	}
	if existing != dir {
		return sandbox.Finding{What: what, State: sandbox.OK, Detail: dir + " will be created"}
	}
	return sandbox.Found(what, info.Mode().Perm()&0o077 == 0, sandbox.Weaker, fmt.Sprintf("%s has the permissions %v", dir, info.Mode().Perm()),
		"`chmod 700 "+dir+"`: other users may have access to it")
}

// lookAround is a program that reports what it sees of its sandbox.
const lookAround = `import json, os
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
routes = [line for line in open("/proc/net/route").read().splitlines()[1:]] if os.path.exists("/proc/net/route") else []
mounts = [line.split() for line in open("/proc/self/mounts")]
print(json.dumps({
    "user": os.getuid(), "capabilities": status.get("CapEff", "").strip(), "no_new_privs": status.get("NoNewPrivs", "").strip(),
    "seccomp": status.get("Seccomp", "").strip(), "routes": len(routes),
    "writable": sorted({m[1] for m in mounts if "rw" in m[3].split(",") and m[2] == "tmpfs" and not m[1].startswith("/proc/") and os.access(m[1], os.W_OK)}),
}))`

// surroundings is the report of lookAround.
type surroundings struct {
	User         int      `json:"user"`
	Capabilities string   `json:"capabilities"`
	NoNewPrivs   string   `json:"no_new_privs"`
	Seccomp      string   `json:"seccomp"`
	Routes       int      `json:"routes"`
	Writable     []string `json:"writable"`
}

// tryProgram runs lookAround in a sandbox that is made as a server would make it.
func (c *check) tryProgram(ctx context.Context) []sandbox.Finding {
	begin := time.Now()
	seen, err := c.runProgram(ctx)
	if err != nil {
		// Only the first line is shown: the lines that follow are remedies, which the other
		// findings have.
		detail, _, _ := strings.Cut(err.Error(), "\n")
		return []sandbox.Finding{{What: "program", State: sandbox.Missing, Detail: detail, Remedy: "apply the remedies above, and see the error"}}
	}
	const sandboxUser = 1000
	const remedy = "report this with the whole table: no program should see this"
	// Another kernel, such as gVisor's, may leave out some of these.
	oneOf := func(got string, want ...string) bool { return slices.Contains(want, got) }
	return []sandbox.Finding{
		{What: "program", State: sandbox.OK, Detail: fmt.Sprintf("ran in a sandbox, %d ms after the start of a server", time.Since(begin).Milliseconds())},
		sandbox.Found("its privileges", seen.User == sandboxUser && oneOf(seen.Capabilities, "0000000000000000") && oneOf(seen.NoNewPrivs, "1", ""), sandbox.Missing,
			fmt.Sprintf("user %d, capabilities %s, no_new_privs %s", seen.User, seen.Capabilities, seen.NoNewPrivs), remedy),
		sandbox.Found("its system calls", oneOf(seen.Seccomp, "2", ""), sandbox.Missing, "seccomp "+seen.Seccomp, remedy),
		sandbox.Found("its network", seen.Routes == 0, sandbox.Missing, fmt.Sprintf("%d routes", seen.Routes), remedy),
		sandbox.Found("its file systems", !slices.Contains(seen.Writable, "/"), sandbox.Missing, "it may write to "+strings.Join(seen.Writable, ", "), remedy),
	}
}

// runProgram starts a server that only this machine can reach, with a temporary state
// directory and key, and runs lookAround on it. The server does not use the services of
// other machines, such as Redis or a bucket.
func (c *check) runProgram(ctx context.Context) (seen surroundings, err error) {
	dir, err := os.MkdirTemp("", "fermata-check-")
	if err != nil {
		return surroundings{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := c.settings
	s.Executions.StateDir, s.HTTP.MetricsAddr, s.Files.FilesURL, s.Servers = dir, "", "", serverSettings{}
	s.Sandbox.PoolSize, s.Sandbox.PoolPlain, s.Sandbox.PoolScientific, s.Sandbox.QueueTimeout = 1, nil, nil, maxQueueTimeout
	key := secret{rand.Text()}
	s.HTTP.Auth, s.HTTP.APIKeys, s.HTTP.OperatorKeys = "keys", []apiKey{{Name: "check", Key: key}}, nil
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return surroundings{}, err
	}
	log, watched := slog.New(slog.DiscardHandler), newMetrics()
	handlers, opened, err := s.wire(ctx, ctx, log, watched, func(pinging) {}, listener.Addr())
	if err != nil {
		return surroundings{}, errors.Join(err, listener.Close())
	}
	server := httpServer(handlers.handler, s.HTTP.connections(log, s.Sandbox.MaxSandboxes, watched.pushedOut.Inc), log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // If it fails before it is closed, so does the request.
	}()
	defer func() {
		err = errors.Join(err, server.Close())
		<-served
		err = errors.Join(err, opened.close(ctx))
	}()
	return runLookAround(ctx, "http://"+listener.Addr().String()+"/exec", key)
}

// runLookAround runs lookAround on the server at url.
func runLookAround(ctx context.Context, url string, key secret) (seen surroundings, err error) {
	body, err := json.Marshal(map[string]string{"lang": "py", "code": lookAround})
	if err != nil {
		return surroundings{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return surroundings{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", key.reveal())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return surroundings{}, err
	}
	defer response.Body.Close()
	const maxAnswer = 1 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return surroundings{}, err
	}
	var answer struct{ Stdout string }
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		return surroundings{}, fmt.Errorf("the server answered the program with %s: %s", response.Status, text)
	}
	if err := json.Unmarshal([]byte(answer.Stdout), &seen); err != nil {
		return surroundings{}, fmt.Errorf("the program did not report what it sees: %s", text)
	}
	return seen, nil
}
