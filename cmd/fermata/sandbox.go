package main

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"fermata/engine/sandbox"
)

// The defaults of what programs run in, as the tags below have them.
const (
	defaultPython = "python3"
	defaultImage  = "fermata-sandbox"
)

// leastMemory is the least memory of a sandbox in which a program can run: Python and the runner
// take most of it.
const leastMemory = 16 << 20

// sandboxSettings are the settings of sandboxes.
type sandboxSettings struct {
	Provider       string        `name:"sandbox" enum:"process,docker" default:"process" help:"What programs run in. process: processes of this machine in namespaces of their own; docker: containers of the Docker engine that DOCKER_HOST names."`
	Python         string        `default:"python3" help:"Python interpreter of process sandboxes, CPython 3.11 to 3.14: a path, or a name to look up."`
	DockerImage    string        `default:"fermata-sandbox" help:"Image of the containers."`
	DockerRuntime  string        `placeholder:"NAME" help:"OCI runtime of the containers, for example runsc for gVisor. Default: the default runtime of the Docker engine."`
	Cgroups        string        `enum:"required,optional" default:"required" help:"Whether cgroups must limit process sandboxes. required: the server does not start without them; optional: it starts, but then one program may take FERMATA_PIDS times FERMATA_MEMORY, three times FERMATA_DISK on top of that, and all processors. Use optional for your own programs only."`
	PoolSize       int           `default:"4" help:"How many idle sandboxes to keep ready. One half is plain; the other half is scientific: these have imported the libraries and serve programs whose text names one."`
	PoolPlain      *int          `placeholder:"N" help:"How many idle plain sandboxes to keep ready. Default: half of FERMATA_POOL_SIZE, rounded up."`
	PoolScientific *int          `placeholder:"N" help:"How many idle scientific sandboxes to keep ready. Default: half of FERMATA_POOL_SIZE, rounded down."`
	MaxSandboxes   int           `default:"256" help:"Most sandboxes at once, paused ones included."`
	QueueTimeout   time.Duration `default:"10s" help:"How long a start waits for a sandbox, at most 60s."`
	Memory         byteSize      `default:"512MiB" help:"Memory of one sandbox, at least 16MiB."`
	CPUs           float64       `name:"cpus" default:"1" help:"Processors of one sandbox; 1.5 is one and a half."`
	PIDs           int           `name:"pids" default:"64" help:"Processes and threads of one program."`
	Output         byteSize      `default:"1MiB" help:"Most bytes that a program may print to stdout, and as many to stderr."`
	Disk           byteSize      `default:"256MiB" help:"Size of each writable directory of a sandbox. Their files are in its memory."`
}

func (s *sandboxSettings) check(m *mistakes) {
	plain, scientific := s.poolSizes()[sandbox.Plain], s.poolSizes()[sandbox.Scientific]
	atMost := func(what string, most, is int) string {
		return fmt.Sprintf("between 0 and %s, which is %d, and is %d", what, most, is)
	}
	m.unless(s.PoolSize >= 0 && s.PoolSize <= s.MaxSandboxes, "pool-size", atMost("--max-sandboxes", s.MaxSandboxes, s.PoolSize))
	m.unless(plain >= 0 && plain <= s.MaxSandboxes, "pool-plain", atMost("--max-sandboxes", s.MaxSandboxes, plain))
	m.unless(scientific >= 0 && plain+scientific <= s.MaxSandboxes, "pool-scientific",
		atMost("--max-sandboxes less --pool-plain", s.MaxSandboxes-plain, scientific))
	m.unless(s.MaxSandboxes > 0, "max-sandboxes", "more than 0")
	m.unless(s.QueueTimeout >= 0 && s.QueueTimeout <= maxQueueTimeout, "queue-timeout", fmt.Sprintf("between 0s and %s, and is %s", maxQueueTimeout, s.QueueTimeout))
	m.unless(s.Memory >= leastMemory, "memory", fmt.Sprintf("at least %s, since Python itself needs some, and is %s",
		humanize.IBytes(leastMemory), humanize.IBytes(uint64(max(0, s.Memory)))))
	m.unless(s.CPUs > 0, "cpus", "more than 0")
	m.unless(s.PIDs > 0, "pids", "more than 0")
	m.unless(s.Output > 0, "output", "more than 0")
	m.unless(s.Disk > 0, "disk", "more than 0")
}

// poolSizes returns how many sandboxes of each kind to keep idle.
func (s *sandboxSettings) poolSizes() map[sandbox.Kind]int {
	sizes := map[sandbox.Kind]int{sandbox.Plain: (s.PoolSize + 1) / 2, sandbox.Scientific: s.PoolSize / 2}
	if s.PoolPlain != nil {
		sizes[sandbox.Plain] = *s.PoolPlain
	}
	if s.PoolScientific != nil {
		sizes[sandbox.Scientific] = *s.PoolScientific
	}
	return sizes
}

// inputSize returns how many bytes the input files of a program may take in its workspace. The
// workspace is part of the sandbox's memory, half of which is left for the program itself.
func (s *sandboxSettings) inputSize() int64 { return int64(min(s.Disk, s.Memory/2)) }
