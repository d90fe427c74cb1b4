package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fermata/api"
)

// settings are all there are. The names of flags and of environment variables
// follow from the names of the fields.
type settings struct {
	Addr        string         `group:"http" default:"127.0.0.1:8000" help:"Address to listen on."`
	MetricsAddr string         `group:"http" placeholder:"ADDR" help:"Address to serve metrics for Prometheus on, at /metrics, to all who can reach it. Default: none."`
	Auth        string         `group:"http" enum:"keys,off" default:"keys" help:"Who is let in: clients with one of the API keys, or everyone (${enum})."`
	APIKeys     []apiKey       `group:"http" name:"api-keys" placeholder:"NAME:KEY,..." help:"API keys. A client with the key KEY is the principal NAME; a key may come without a name."`
	MaxBody     byteSize       `group:"http" default:"50MB" help:"Largest request body."`
	BodyBudget  byteSize       `group:"http" default:"512MiB" help:"Most bytes that the bodies of all requests, and large answers to continuations, may hold at once, of which a client may have a quarter."`
	Hosts       []string       `group:"http" placeholder:"NAME,..." help:"Names by which clients call the server if FERMATA_AUTH is off, beside addresses, localhost and the name in FERMATA_ADDR: web pages can make a browser call it by names of theirs."`
	ErrorStyle  api.ErrorStyle `group:"http" enum:"http,inline" default:"http" help:"How a spent budget and too many rounds are answered: with 408 and 400, or with 200 and an error in the body, for clients that throw other bodies away (${enum})."`

	MaxConnections int `group:"http" default:"4096" help:"Most connections at once. One more closes the one that has waited longest without a request of a known client. The limit on open files may leave room for fewer."`

	RateExecutions rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most executions that a client may start in a time, for example 20/30s, or off. Continuations are not counted."`
	RateUploads    rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most uploads of files, for example 30/5m."`
	RateDownloads  rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most downloads of files, for example 60/1m."`
	RateLists      rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most requests for lists and properties of files, for example 120/1m."`

	JWT jwtSettings `embed:"" prefix:"jwt-" group:"jwt"`

	StateDir     string        `group:"executions" type:"path" placeholder:"DIR" help:"Where executions are recorded. Default: fermata in $XDG_STATE_HOME or in ~/.local/state."`
	Secret       []secret      `group:"executions" placeholder:"SECRET,..." help:"Secrets that sign continuation tokens. The first one signs, all are accepted. Default: one that is made once and kept in the state directory."`
	PauseTTL     time.Duration `group:"executions" name:"pause-ttl" default:"300s" help:"How long a paused execution waits for its client."`
	Keep         time.Duration `group:"executions" default:"5m" help:"How long the last answer of an execution is kept for a client that asks again."`
	TimeoutClock string        `group:"executions" enum:"running,wall" default:"running" help:"What the timeout of a request counts: the time the program runs, or the time of pauses, too (${enum})."`
	MaxTools     int           `group:"executions" default:"100" help:"Most tools in a request."`
	MaxCalls     int           `group:"executions" default:"10000" help:"Most tool calls of an execution."`
	MaxRunning   int           `group:"executions" default:"0" help:"Most executions of a client that run or wait for a sandbox when it starts another one; 0 is any number. Each server counts its own."`
	MaxPaused    int           `group:"executions" default:"0" help:"Most executions of a client that are paused when it starts another one; 0 is any number. Each server counts its own."`
	MaxResult    byteSize      `group:"executions" default:"5MB" help:"Largest result of a tool call."`
	MaxResults   byteSize      `group:"executions" default:"40MB" help:"Largest sum of the results of an execution."`

	MaxExecutions share    `group:"executions" default:"auto" help:"Most executions of a client that run, wait for a sandbox or are paused when it starts another one; 0 is any number. auto is a quarter of --max-sandboxes where there is more than one client (keys of several names, or tokens of LibreChat), else any number. Each server counts its own."`
	MaxStored     byteSize `group:"executions" default:"64MiB" help:"Most bytes of tool calls that wait, with their program's record, and of last answers that a client may have. Calls beyond it end their program, and answers beyond it are not kept. Each server counts its own."`

	FilesURL       string        `group:"files" name:"files-url" placeholder:"URL" help:"Where files are kept: file:///directory, or s3://bucket with the parameters of the Go CDK and keys from the environment. Default: files in the state directory."`
	FilesLife      time.Duration `group:"files" default:"24h" help:"How long a file is kept."`
	FilesQuota     byteSize      `group:"files" default:"2GiB" help:"Most bytes of files that a user may have, or the agents and skills of a tenant together. A small file counts as 4 KiB."`
	FileSize       byteSize      `group:"files" default:"150MiB" help:"Largest file that may be uploaded."`
	OutputFiles    int           `group:"files" default:"50" help:"Most files of a program that are kept, not counting those that it was given."`
	OutputFileSize byteSize      `group:"files" default:"25MiB" help:"Largest file of a program that is kept."`

	RedisURL     secret        `group:"servers" name:"redis-url" placeholder:"URL" help:"Redis that keeps the records of executions, instead of a file in the state directory: redis://, rediss:// or unix://, with ?cluster=true&addr=… for a Cluster, ?master_name=… for Sentinels."`
	RedisSecret  []secret      `group:"servers" placeholder:"SECRET,..." help:"Secrets that encrypt the records in Redis. The first one encrypts, all decrypt. Default: records are not encrypted."`
	PeerURL      string        `group:"servers" name:"peer-url" placeholder:"URL" help:"Where other servers with the same Redis and the same secret reach this one. Default: the address it listens on for them."`
	PeerAddr     string        `group:"servers" placeholder:"ADDR" help:"Address of its own for what other servers ask, which FERMATA_ADDR does not answer then. Default: they come to FERMATA_ADDR."`
	Drain        string        `group:"servers" enum:"end,keep" default:"end" help:"What SIGTERM does with paused executions: end them, or keep them for the next server (${enum})."`
	DrainTimeout time.Duration `group:"servers" default:"25s" help:"How long SIGTERM waits for programs that run."`

	Sandbox       string        `group:"sandbox" enum:"process,docker" default:"process" help:"What programs run in: processes of this machine with namespaces of their own, or containers of Docker, which DOCKER_HOST names (${enum})."`
	Python        string        `group:"sandbox" default:"python3" help:"The interpreter, a path or a name to look up."`
	DockerImage   string        `group:"sandbox" default:"fermata-sandbox" help:"The image of containers."`
	DockerRuntime string        `group:"sandbox" placeholder:"NAME" help:"The OCI runtime of containers, such as runsc for gVisor. Default: the daemon's."`
	Cgroups       string        `group:"sandbox" enum:"required,optional" default:"required" help:"Whether processes must be limited by cgroups (${enum}). Without them a program has PIDS times MEMORY, three times DISK besides, and all processors: for your own programs only."`
	PoolSize      int           `group:"sandbox" default:"4" help:"How many sandboxes wait ready."`
	MaxSandboxes  int           `group:"sandbox" default:"256" help:"Most sandboxes at once, paused ones included."`
	QueueTimeout  time.Duration `group:"sandbox" default:"10s" help:"How long a request waits for a sandbox, at most 60s."`
	Memory        byteSize      `group:"sandbox" default:"512MiB" help:"Memory of a sandbox."`
	CPUs          float64       `group:"sandbox" name:"cpus" default:"1" help:"Processors of a sandbox."`
	PIDs          int           `group:"sandbox" name:"pids" default:"64" help:"Processes and threads of a sandbox."`
	Output        byteSize      `group:"sandbox" default:"1MiB" help:"What a program may print to each of stdout and stderr."`
	Disk          byteSize      `group:"sandbox" default:"256MiB" help:"Size of each of the writable directories of a sandbox."`

	LogLevel  logLevel `group:"log" default:"info" help:"Least level that is logged: debug, info, warn or error."`
	LogFormat string   `group:"log" enum:"text,json" default:"text" help:"Form of the log (${enum})."`
}

// Validate reports every mistake that can be seen before anything is started.
func (s *settings) Validate() error {
	var mistakes []error
	mistake := func(ok bool, flag, must string) {
		if !ok {
			mistakes = append(mistakes, fmt.Errorf("--%s must be %s", flag, must))
		}
	}
	if s.Auth == "keys" && len(s.APIKeys) == 0 && !s.JWT.on() {
		mistakes = append(mistakes, errors.New("there are no API keys: set FERMATA_API_KEYS to the keys of the clients, "+
			"or FERMATA_JWT_... to the keys of LibreChat, or FERMATA_AUTH=off to let in everyone who can reach the address"))
	}
	if s.Auth == "off" && s.JWT.on() {
		mistakes = append(mistakes, errors.New("FERMATA_AUTH=off lets in everyone, and FERMATA_JWT_... only users of LibreChat: set one of them"))
	}
	if err := s.JWT.mistake(); err != nil {
		mistakes = append(mistakes, err)
	}
	if s.Auth == "keys" && !loopback(s.Addr) {
		for _, k := range s.APIKeys {
			mistake(k.length() >= minKey, "api-keys", fmt.Sprintf("keys of at least %d characters, and that of %s has %d: "+
				"make one with openssl rand -hex 24 (shorter ones are for a FERMATA_ADDR such as 127.0.0.1:8000)", minKey, k.Name, k.length()))
		}
	}
	mistake(s.PeerAddr == "" || s.RedisURL.reveal() != "", "peer-addr", "empty without FERMATA_REDIS_URL: there are no other servers")
	for flag, size := range map[string]byteSize{
		"max-body": s.MaxBody, "max-result": s.MaxResult, "max-results": s.MaxResults,
		"memory": s.Memory, "output": s.Output, "disk": s.Disk,
		"body-budget": s.BodyBudget, "files-quota": s.FilesQuota, "max-stored": s.MaxStored,
		"file-size": s.FileSize, "output-file-size": s.OutputFileSize,
	} {
		mistake(size > 0, flag, "more than 0")
	}
	for flag, n := range map[string]int{
		"max-connections": s.MaxConnections, "max-tools": s.MaxTools, "max-calls": s.MaxCalls, "max-sandboxes": s.MaxSandboxes, "pids": s.PIDs,
	} {
		mistake(n > 0, flag, "more than 0")
	}
	mistake(s.MaxRunning >= 0, "max-running", "0 or more")
	mistake(s.MaxPaused >= 0, "max-paused", "0 or more")
	mistake(s.OutputFiles >= 0, "output-files", "0 or more")
	mistake(s.OutputFileSize <= s.FileSize, "output-file-size", "at most --file-size")
	mistake(s.FilesLife > 0, "files-life", "more than 0")
	mistake(s.FilesURL == "" || strings.HasPrefix(s.FilesURL, "file:///") || strings.HasPrefix(s.FilesURL, "s3://"),
		"files-url", "file:///directory or s3://bucket")
	mistake(s.CPUs > 0, "cpus", "more than 0")
	mistake(s.PauseTTL > 0, "pause-ttl", "more than 0")
	mistake(s.Keep > 0, "keep", "more than 0")
	mistake(s.DrainTimeout >= 0, "drain-timeout", "0s or more")
	mistake(s.PoolSize >= 0 && s.PoolSize <= s.MaxSandboxes, "pool-size", "between 0 and --max-sandboxes")
	mistake(s.QueueTimeout >= 0 && s.QueueTimeout <= maxQueueTimeout, "queue-timeout", fmt.Sprintf("between 0s and %s", maxQueueTimeout))
	return errors.Join(mistakes...)
}

// stateDirName returns the name of the state directory.
func (s *settings) stateDirName() (string, error) {
	if s.StateDir != "" {
		return s.StateDir, nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	// The specification has relative paths ignored.
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find a state directory, set FERMATA_STATE_DIR: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "fermata"), nil
}

// maxExecutions is the most executions of one client, 0 for any number.
func (s *settings) maxExecutions() int {
	if !s.MaxExecutions.auto {
		return s.MaxExecutions.n
	}
	names := map[string]bool{}
	for _, k := range s.APIKeys {
		names[k.Name] = true
	}
	if s.Auth == "off" || len(names) < 2 && !s.JWT.on() {
		return 0
	}
	return max(1, s.MaxSandboxes/4)
}

// stateDir returns the state directory, which exists then and is ours alone.
func (s *settings) stateDir(log *slog.Logger) (string, error) {
	dir, err := s.stateDirName()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make state directory: %w", err)
	}
	return dir, own(dir, log)
}

// own makes sure that nobody else can read or change a directory.
func own(dir string, log *slog.Logger) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at state directory: %w", err)
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(status.Uid) != os.Geteuid() {
		return fmt.Errorf("the state directory %s belongs to another user: make it the server's (chown), "+
			"or set FERMATA_STATE_DIR to a directory that the server can make itself", dir)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("the state directory %s is open to other users: %w", dir, err)
	}
	log.Warn("the state directory was open to other users and is not any more", "dir", dir, "mode", info.Mode().Perm().String())
	return nil
}

// loopback reports whether only this machine reaches an address.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
