package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"fermata/api"
	"fermata/engine/sandbox"
)

// settings are all settings of the server. Flags and environment variables are named after
// the fields. After a change here, rewrite docs/settings.md with
//
//	go test ./cmd/fermata -run TestSettingsPage -update
type settings struct {
	Addr        string         `group:"http" default:"127.0.0.1:8000" help:"Address to listen on."`
	MetricsAddr string         `group:"http" placeholder:"ADDR" help:"Address on which to serve Prometheus metrics, at /metrics, without authentication: keep it private. Default: no metrics."`
	Auth        string         `group:"http" enum:"keys,off" default:"keys" help:"Who may use the API. keys: clients with an API key or a LibreChat token; off: everybody who can reach the address."`
	APIKeys     []apiKey       `group:"http" name:"api-keys" placeholder:"NAME:KEY" help:"API keys. A client that presents KEY is the principal NAME. A key without a name gets one that is derived from the key."`
	MaxBody     byteSize       `group:"http" default:"50MB" help:"Largest request body. Uploads are bounded by FERMATA_FILE_SIZE instead."`
	BodyBudget  byteSize       `group:"http" default:"512MiB" help:"Most memory that the bodies of all requests, and large answers to continuations, may take at once. One client may take a quarter of it."`
	Hosts       []string       `group:"http" placeholder:"NAME" help:"Host names by which clients may call a server with FERMATA_AUTH=off, in addition to IP addresses, localhost and the host in FERMATA_ADDR. All other names are refused: otherwise a web page could make a browser call the server by a name of its own."`
	ErrorStyle  api.ErrorStyle `group:"http" enum:"http,inline" default:"http" help:"How to report a spent run budget and too many rounds. http: with status 408 and 400; inline: with status 200 and an error in the body, for clients that discard the body of any other status."`

	MaxConnections int `group:"http" default:"4096" help:"Most connections at once. One more closes the connection that has waited longest without a request of a known client. The limit on open files may leave room for fewer."`

	MaxReaders int `group:"http" default:"1000" help:"Most streams of events, live answers among them, that one client may read at once. All clients together may read five times as many. Each takes a connection."`

	RateExecutions rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most executions that one client may start in a period, for example 20/30s; off for no limit. Continuations do not count."`
	RateUploads    rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most uploads of files by one client in a period, for example 30/5m; off for no limit."`
	RateDownloads  rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most downloads of files by one client in a period, for example 60/1m; off for no limit."`
	RateLists      rate `group:"http" default:"off" placeholder:"N/TIME" help:"Most requests of one client for lists and properties of files in a period, for example 120/1m; off for no limit."`

	JWT jwtSettings `embed:"" prefix:"jwt-" group:"jwt"`

	StateDir     string        `group:"executions" type:"path" placeholder:"DIR" help:"Directory for everything that must outlive the server: records, the secret, session files and what belongs to process sandboxes. Default: fermata in $XDG_STATE_HOME or in ~/.local/state."`
	Secret       []secret      `group:"executions" placeholder:"SECRET" help:"Secrets that sign continuation tokens, each of at least 32 bytes. The first one signs, all of them verify. Default: a secret that the server makes once and keeps in the state directory."`
	PauseTTL     time.Duration `group:"executions" name:"pause-ttl" default:"300s" help:"Longest pause. An execution that waits longer for its client expires."`
	Keep         time.Duration `group:"executions" default:"5m" help:"How long to keep the last answer of an ended execution for a client that repeats its request."`
	TimeoutClock string        `group:"executions" enum:"running,wall" default:"running" help:"What the timeout of a request counts. running: the time in which the program may run; wall: the time of pauses as well."`
	MaxTools     int           `group:"executions" default:"100" help:"Most tools in one request."`
	MaxCalls     int           `group:"executions" default:"10000" help:"Most tool calls of one execution."`
	MaxRunning   int           `group:"executions" default:"0" help:"Most executions of one client that run or wait for a sandbox; 0 for no limit. Checked when another one is started. Each server counts its own."`
	MaxPaused    int           `group:"executions" default:"0" help:"Most paused executions of one client; 0 for no limit. Checked when another one is started. Each server counts its own."`
	MaxResult    byteSize      `group:"executions" default:"5MB" help:"Largest result of one tool call."`
	MaxResults   byteSize      `group:"executions" default:"40MB" help:"Largest sum of all results of one execution."`

	MaxExecutions share    `group:"executions" default:"auto" help:"Most executions of one client that run, wait for a sandbox or are paused; 0 for no limit. auto: a quarter of FERMATA_MAX_SANDBOXES if there can be several clients (API keys of several names, or LibreChat tokens), otherwise no limit. Checked when another one is started. Each server counts its own."`
	MaxStored     byteSize `group:"executions" default:"64MiB" help:"Most bytes to store for one client: its pending tool calls with their records, and its kept answers. A program whose calls would exceed this ends; an answer that would exceed it is not kept. Each server counts its own."`

	FilesURL       string        `group:"files" name:"files-url" placeholder:"URL" help:"Where to keep session files: file:///directory, or s3://bucket with the URL parameters of the Go CDK and credentials from the environment. Default: the directory files in the state directory."`
	FilesLife      time.Duration `group:"files" default:"24h" help:"How long to keep a session file."`
	FilesQuota     byteSize      `group:"files" default:"2GiB" help:"Most bytes of session files of one user, or of all agents and skills of one tenant together. A file counts as at least 4 KiB."`
	FileSize       byteSize      `group:"files" default:"150MiB" help:"Largest file that may be uploaded."`
	OutputFiles    int           `group:"files" default:"50" help:"Most files of one execution to keep. The files that the program was given do not count."`
	OutputFileSize byteSize      `group:"files" default:"25MiB" help:"Largest file of a program to keep."`

	RedisURL     secret        `group:"servers" name:"redis-url" placeholder:"URL" help:"Redis that keeps the records, instead of a file in the state directory: redis://, rediss:// or unix://, with ?cluster=true&addr=… for Redis Cluster or ?master_name=… for Sentinel."`
	RedisSecret  []secret      `group:"servers" placeholder:"SECRET" help:"Secrets that encrypt the records in Redis, each of at least 32 bytes. The first one encrypts, all of them decrypt. Default: no encryption."`
	PeerURL      string        `group:"servers" name:"peer-url" placeholder:"URL" help:"URL at which the other servers of the group reach this one. Default: the address on which it listens for them."`
	PeerAddr     string        `group:"servers" placeholder:"ADDR" help:"Separate address on which to listen for the other servers of the group; FERMATA_ADDR then does not serve them. Default: FERMATA_ADDR serves them."`
	Drain        string        `group:"servers" enum:"end,keep" default:"end" help:"What SIGTERM does with paused executions. end: ends them; keep: leaves them to the next server."`
	DrainTimeout time.Duration `group:"servers" default:"25s" help:"How long SIGTERM waits for running programs."`

	Sandbox        string        `group:"sandbox" enum:"process,docker" default:"process" help:"What programs run in. process: processes of this machine in namespaces of their own; docker: containers of the Docker engine that DOCKER_HOST names."`
	Python         string        `group:"sandbox" default:"python3" help:"Python interpreter of process sandboxes, 3.11 or later: a path, or a name to look up."`
	DockerImage    string        `group:"sandbox" default:"fermata-sandbox" help:"Image of the containers."`
	DockerRuntime  string        `group:"sandbox" placeholder:"NAME" help:"OCI runtime of the containers, for example runsc for gVisor. Default: the default runtime of the Docker engine."`
	Cgroups        string        `group:"sandbox" enum:"required,optional" default:"required" help:"Whether cgroups must limit process sandboxes. required: the server does not start without them; optional: it starts, but then one program may take FERMATA_PIDS times FERMATA_MEMORY, three times FERMATA_DISK on top of that, and all processors. Use optional for your own programs only."`
	PoolSize       int           `group:"sandbox" default:"4" help:"How many idle sandboxes to keep ready. One half is plain; the other half is scientific: these have imported the libraries and serve programs whose text names one."`
	PoolPlain      *int          `group:"sandbox" placeholder:"N" help:"How many idle plain sandboxes to keep ready. Default: half of FERMATA_POOL_SIZE, rounded up."`
	PoolScientific *int          `group:"sandbox" placeholder:"N" help:"How many idle scientific sandboxes to keep ready. Default: half of FERMATA_POOL_SIZE, rounded down."`
	MaxSandboxes   int           `group:"sandbox" default:"256" help:"Most sandboxes at once, paused ones included."`
	QueueTimeout   time.Duration `group:"sandbox" default:"10s" help:"How long a start waits for a sandbox, at most 60s."`
	Memory         byteSize      `group:"sandbox" default:"512MiB" help:"Memory of one sandbox."`
	CPUs           float64       `group:"sandbox" name:"cpus" default:"1" help:"Processors of one sandbox; 1.5 is one and a half."`
	PIDs           int           `group:"sandbox" name:"pids" default:"64" help:"Processes and threads of one program."`
	Output         byteSize      `group:"sandbox" default:"1MiB" help:"Most bytes that a program may print to stdout, and as many to stderr."`
	Disk           byteSize      `group:"sandbox" default:"256MiB" help:"Size of each writable directory of a sandbox. Their files are in its memory."`

	LogLevel  logLevel `group:"log" default:"info" help:"Lowest level to log: debug, info, warn or error."`
	LogFormat string   `group:"log" enum:"text,json" default:"text" help:"Format of the log (${enum})."`
}

// Validate reports all mistakes that can be found without starting anything.
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
		"max-connections": s.MaxConnections, "max-readers": s.MaxReaders, "max-tools": s.MaxTools, "max-calls": s.MaxCalls, "max-sandboxes": s.MaxSandboxes, "pids": s.PIDs,
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
	plain, scientific := s.poolSizes()[sandbox.Plain], s.poolSizes()[sandbox.Scientific]
	mistake(plain >= 0 && plain <= s.MaxSandboxes, "pool-plain", "between 0 and --max-sandboxes")
	mistake(scientific >= 0 && plain+scientific <= s.MaxSandboxes, "pool-scientific", "between 0 and --max-sandboxes less --pool-plain")
	mistake(s.QueueTimeout >= 0 && s.QueueTimeout <= maxQueueTimeout, "queue-timeout", fmt.Sprintf("between 0s and %s", maxQueueTimeout))
	return errors.Join(mistakes...)
}

// poolSizes returns how many sandboxes of each kind to keep idle.
func (s *settings) poolSizes() map[sandbox.Kind]int {
	sizes := map[sandbox.Kind]int{sandbox.Plain: (s.PoolSize + 1) / 2, sandbox.Scientific: s.PoolSize / 2}
	if s.PoolPlain != nil {
		sizes[sandbox.Plain] = *s.PoolPlain
	}
	if s.PoolScientific != nil {
		sizes[sandbox.Scientific] = *s.PoolScientific
	}
	return sizes
}

// maxExecutions returns the most executions that one client may have, 0 for no limit.
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

// loopback reports whether an address can be reached only from this machine.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
