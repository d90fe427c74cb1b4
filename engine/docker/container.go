package docker

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/go-units"

	"fermata/engine/internal/seccomp"
)

const (
	// user is the user that programs run as, inside the container.
	user = "1000"
	// maxInodes bounds the files in each file system that a program can write to.
	maxInodes = 65536
	// maxFiles bounds the open files of a process.
	maxFiles = 1024
	// maxSignals bounds the pending signals of the processes in all containers together,
	// because the kernel counts them by user.
	maxSignals = 256
	// kernelThreads and threadsPerProcess bound the host's threads of a gVisor container.
	// They are generous: gVisor dies if it cannot have one more.
	kernelThreads     = 512
	threadsPerProcess = 16
)

// entryConfig is the argument of a container's first process, which is Config in
// container.py.
type entryConfig struct {
	Output  int64   `json:"output"`
	Orphan  float64 `json:"orphan"`
	Seccomp string  `json:"seccomp"`
	PIDs    int     `json:"pids"`
}

// container describes the container of a sandbox. If the container has a kernel of its own,
// such as gVisor's, that kernel limits processes, because the host sees only the kernel's
// threads. With cgroup version 1 the buffers of sockets do not count as memory and get
// limits of their own.
func (o Options) container(ownKernel, version1 bool) (container.Config, container.HostConfig, error) {
	filter, err := packedFilter()
	if err != nil {
		return container.Config{}, container.HostConfig{}, err
	}
	profile, err := seccomp.Profile()
	if err != nil {
		return container.Config{}, container.HostConfig{}, err
	}
	pids := int64(o.PIDs) + 1 // the first process is not the program's
	entry := entryConfig{Output: o.Output, Orphan: o.Orphan.Seconds(), Seccomp: filter}
	if ownKernel {
		entry.PIDs = o.PIDs + 1
		pids = kernelThreads + threadsPerProcess*pids
	}
	argument, err := json.Marshal(entry)
	if err != nil {
		return container.Config{}, container.HostConfig{}, fmt.Errorf("encode the configuration of the first process: %w", err)
	}
	config := container.Config{
		Image:      o.Image,
		Hostname:   "sandbox",
		User:       user + ":" + user,
		WorkingDir: "/mnt/data",
		Entrypoint: strslice.StrSlice{"python3", "-I", "-B", "/opt/fermata", "sandbox", string(argument)},
		Cmd:        strslice.StrSlice{},
		Labels:     map[string]string{installationLabel: o.Installation, serverLabel: o.Server},
		// Stdin stays open when a server detaches, for the next server.
		OpenStdin: true,
		StdinOnce: false,
		Healthcheck: &container.HealthConfig{
			Test: []string{"NONE"},
		},
	}
	host := o.host(pids, string(profile))
	if version1 && !ownKernel {
		// With runc, the buffers of sockets have no other limit. A program can still ask for
		// larger buffers, up to the machine's net.core.rmem_max and wmem_max.
		host.Sysctls = map[string]string{"net.ipv4.tcp_rmem": "4096 131072 262144", "net.ipv4.tcp_wmem": "4096 16384 262144"}
	}
	return config, host, nil
}

// host returns what a container may have of its host: pids is how many processes, and profile the seccomp profile.
func (o Options) host(pids int64, profile string) container.HostConfig {
	no := false
	size := fmt.Sprintf("rw,nosuid,nodev,size=%d,nr_inodes=%d,uid=%s,gid=%s", o.Disk, maxInodes, user, user)
	return container.HostConfig{
		Runtime:     o.Runtime,
		NetworkMode: "none",
		// Without these the container would see the host's DNS settings.
		DNS:            []string{"127.0.0.1"},
		DNSSearch:      []string{"."},
		IpcMode:        container.IPCModePrivate,
		CgroupnsMode:   container.CgroupnsModePrivate,
		CapDrop:        strslice.StrSlice{"ALL"},
		SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + profile},
		ReadonlyRootfs: true,
		MaskedPaths:    maskedPaths(),
		Tmpfs: map[string]string{
			"/mnt/data": size + ",exec,mode=755",
			"/tmp":      size + ",exec,mode=1777",
			"/dev/shm":  size + ",noexec,mode=1777",
		},
		LogConfig: container.LogConfig{Type: "none"},
		// A container that ends by itself, because no server is left, leaves nothing behind.
		AutoRemove: true,
		// The supervisor must be the first process. It reaps other processes itself.
		Init: &no,
		Resources: container.Resources{
			Memory:     o.Memory,
			MemorySwap: o.Memory, // the sum of memory and swap, so no swap
			NanoCPUs:   int64(math.Round(o.CPUs * 1e9)),
			PidsLimit:  &pids,
			Ulimits: []*units.Ulimit{
				// With 0 the kernel would still run the host's handler for each dump.
				{Name: "core", Soft: 1, Hard: 1},
				{Name: "fsize", Soft: o.Disk, Hard: o.Disk},
				{Name: "memlock", Soft: 0, Hard: 0},
				{Name: "msgqueue", Soft: 0, Hard: 0},
				{Name: "nofile", Soft: maxFiles, Hard: maxFiles},
				{Name: "sigpending", Soft: maxSignals, Hard: maxSignals},
			},
		},
	}
}

// maskedPaths are the paths that programs cannot see: those that Docker masks by default,
// and those that tell about the machine's devices, kernel and load, as in _covers of
// zygote.py. The cgroup in /sys stays visible, because the first process needs it.
func maskedPaths() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/bus", "/proc/cgroups", "/proc/cmdline", "/proc/config.gz",
		"/proc/consoles", "/proc/crypto", "/proc/devices", "/proc/diskstats", "/proc/dma", "/proc/driver", "/proc/fs", "/proc/interrupts", "/proc/iomem",
		"/proc/ioports", "/proc/irq", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/locks", "/proc/mdstat",
		"/proc/modules", "/proc/mtrr", "/proc/partitions", "/proc/pressure", "/proc/sched_debug", "/proc/schedstat",
		"/proc/scsi", "/proc/softirqs", "/proc/swaps", "/proc/sys/kernel/random/boot_id", "/proc/timer_list",
		"/proc/timer_stats", "/proc/tty", "/proc/vmstat", "/proc/zoneinfo",
		"/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/firmware", "/sys/kernel",
		"/sys/module", "/sys/power",
	}
}

// packedFilter returns the seccomp filter for runtimes that do not apply the profile,
// compressed so that it fits into a command line.
func packedFilter() (string, error) {
	filter, err := seccomp.Filter()
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(filter); err != nil {
		return "", fmt.Errorf("pack seccomp filter: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("pack seccomp filter: %w", err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}
