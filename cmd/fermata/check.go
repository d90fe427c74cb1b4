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

// check is the command of that name: the settings of serve, and no server.
type check struct {
	settings `embed:""`
}

// Validate leaves mistakes of the settings to run, for which they are a finding.
func (*check) Validate() error { return nil }

// checkTimeout bounds a whole check: a server that starts slower would not be used.
const checkTimeout = 2 * time.Minute

// run prints what this machine can isolate and what it cannot. It returns an error if a
// server with these settings would not start.
func (c *check) run(ctx context.Context, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	findings := append(c.checkSettings(), c.checkSandbox(ctx, slog.New(slog.DiscardHandler), "")...)
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
		return fmt.Errorf("a server with these settings would not start: of %d things %d are missing", len(findings), missing)
	}
	return nil
}

// checkSettings looks at the settings and the state directory.
func (c *check) checkSettings() []sandbox.Finding {
	findings := []sandbox.Finding{{What: "settings", State: sandbox.OK}}
	if err := c.settings.Validate(); err != nil {
		findings[0] = sandbox.Finding{What: "settings", State: sandbox.Missing, Detail: err.Error(), Remedy: "see `fermata serve --help`"}
	}
	dir, err := c.stateDirName()
	if err != nil {
		return append(findings, sandbox.Finding{What: "state directory", State: sandbox.Missing, Detail: err.Error(), Remedy: "set FERMATA_STATE_DIR"})
	}
	return append(findings, checkStateDir(dir))
}

// checkStateDir looks at a state directory, which need not be there yet.
func checkStateDir(dir string) sandbox.Finding {
	const what, remedy = "state directory", "give it to the server's user, or set FERMATA_STATE_DIR to another one"
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
		return sandbox.Finding{What: what, State: sandbox.OK, Detail: dir + " will be made"}
	}
	return sandbox.Found(what, info.Mode().Perm()&0o077 == 0, sandbox.Weaker, fmt.Sprintf("%s has the rights %v", dir, info.Mode().Perm()),
		"`chmod 700 "+dir+"`: others may read what is there")
}

// lookAround is a program that tells what it sees of its sandbox.
const lookAround = `import json, os
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
routes = [line for line in open("/proc/net/route").read().splitlines()[1:]] if os.path.exists("/proc/net/route") else []
mounts = [line.split() for line in open("/proc/self/mounts")]
print(json.dumps({
    "user": os.getuid(), "capabilities": status.get("CapEff", "").strip(), "no_new_privs": status.get("NoNewPrivs", "").strip(),
    "seccomp": status.get("Seccomp", "").strip(), "routes": len(routes),
    "writable": sorted({m[1] for m in mounts if "rw" in m[3].split(",") and m[2] == "tmpfs" and not m[1].startswith("/proc/") and os.access(m[1], os.W_OK)}),
}))`

// sight is what lookAround tells.
type sight struct {
	User         int      `json:"user"`
	Capabilities string   `json:"capabilities"`
	NoNewPrivs   string   `json:"no_new_privs"`
	Seccomp      string   `json:"seccomp"`
	Routes       int      `json:"routes"`
	Writable     []string `json:"writable"`
}

// tryProgram makes a sandbox as a server would, and has a program look around in it.
func (c *check) tryProgram(ctx context.Context) []sandbox.Finding {
	begin := time.Now()
	seen, err := c.runProgram(ctx)
	if err != nil {
		// What follows the first line are remedies, which stand above.
		detail, _, _ := strings.Cut(err.Error(), "\n")
		return []sandbox.Finding{{What: "program", State: sandbox.Missing, Detail: detail, Remedy: "mend what is missing above, and what this says"}}
	}
	const sandboxUser = 1000
	const remedy = "report this, with all lines of this table: no program should see that"
	// A kernel of its own, such as gVisor's, need not tell all.
	told := func(got string, want ...string) bool { return slices.Contains(want, got) }
	return []sandbox.Finding{
		{What: "program", State: sandbox.OK, Detail: fmt.Sprintf("ran in a sandbox, %d ms after the start of a server", time.Since(begin).Milliseconds())},
		sandbox.Found("its rights", seen.User == sandboxUser && told(seen.Capabilities, "0000000000000000") && told(seen.NoNewPrivs, "1", ""), sandbox.Missing,
			fmt.Sprintf("user %d, capabilities %s, no_new_privs %s", seen.User, seen.Capabilities, seen.NoNewPrivs), remedy),
		sandbox.Found("its system calls", told(seen.Seccomp, "2", ""), sandbox.Missing, "seccomp "+seen.Seccomp, remedy),
		sandbox.Found("its network", seen.Routes == 0, sandbox.Missing, fmt.Sprintf("%d routes", seen.Routes), remedy),
		sandbox.Found("its file systems", !slices.Contains(seen.Writable, "/"), sandbox.Missing, "it may write to "+strings.Join(seen.Writable, ", "), remedy),
	}
}

// runProgram starts a server for this machine only, with a state directory and a key that
// go away, and sends it a program. What other machines keep is left out.
func (c *check) runProgram(ctx context.Context) (seen sight, err error) {
	dir, err := os.MkdirTemp("", "fermata-check-")
	if err != nil {
		return sight{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := c.settings
	s.StateDir, s.MetricsAddr, s.PeerURL, s.PeerAddr, s.FilesURL, s.RedisURL, s.RedisSecret = dir, "", "", "", "", secret{}, nil
	s.PoolSize, s.QueueTimeout = 1, maxQueueTimeout
	key := secret{rand.Text()}
	s.Auth, s.APIKeys = "keys", []apiKey{{Name: "check", Key: key}}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return sight{}, err
	}
	log := slog.New(slog.DiscardHandler)
	handlers, opened, err := s.wire(ctx, log, listener.Addr())
	if err != nil {
		return sight{}, errors.Join(err, listener.Close())
	}
	server := httpServer(handlers.handler, handlers.bound, log)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // It is closed below; what fails before fails the request.
	}()
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, server.Close())
		<-served
		err = errors.Join(err, opened.close(closing))
	}()
	return look(ctx, "http://"+listener.Addr().String()+"/exec", key)
}

// look has the server at url run lookAround.
func look(ctx context.Context, url string, key secret) (seen sight, err error) {
	body, err := json.Marshal(map[string]string{"lang": "py", "code": lookAround})
	if err != nil {
		return sight{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return sight{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", key.reveal())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return sight{}, err
	}
	defer response.Body.Close()
	const enough = 1 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil {
		return sight{}, err
	}
	var answer struct{ Stdout string }
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		return sight{}, fmt.Errorf("the program was answered with %s: %s", response.Status, text)
	}
	if err := json.Unmarshal([]byte(answer.Stdout), &seen); err != nil {
		return sight{}, fmt.Errorf("the program did not say what it sees: %s", text)
	}
	return seen, nil
}
