package harness

import (
	"maps"
	"os"
	"testing"
)

// Settings are environment variables of the server, without the prefix FERMATA_.
type Settings map[string]string

// With returns a copy of base with the changes applied, the last one on top.
func With(base Settings, changes ...Settings) Settings {
	merged := Settings{}
	for _, s := range append([]Settings{base}, changes...) {
		maps.Copy(merged, s)
	}
	return merged
}

// Secret signs the tokens of every server here.
const Secret = "tests-0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// Common are the settings of every server here. Main sets PYTHON to BarePython.
var Common = Settings{
	"ADDR":      "127.0.0.1:0",
	"API_KEYS":  "alice:key-a,bob:key-b",
	"SECRET":    Secret,
	"POOL_SIZE": "2",
	// Most tests have one client, which may use the whole server. Tests of the limit set it.
	"MAX_EXECUTIONS": "0",
}

// SmallLimits are limits that a test reaches soon.
var SmallLimits = Settings{"MEMORY": "192MiB", "PIDS": "32", "OUTPUT": "64KiB", "DISK": "8MiB"}

// A Part is a choice of a sandbox or of a store, with the settings that choose it.
type Part struct {
	Name     string
	Settings Settings
}

// Sandboxes returns the sandboxes that this machine has: processes always, Docker if it is
// installed.
func Sandboxes() []Part {
	return []Part{{Name: "process"}, {Name: "docker", Settings: DockerSettings}}[:sandboxesHere()]
}

// stores returns the stores that this machine has: the embedded one always, Redis if it is
// installed.
func stores() []Part {
	return []Part{{Name: "file"}, {Name: "redis", Settings: Settings{"REDIS_URL": commonRedis.URL()}}}[:storesHere()]
}

// GVisorSettings choose containers that have a kernel of their own, gVisor.
var GVisorSettings = With(DockerSettings, Settings{"DOCKER_RUNTIME": "runsc"})

// A Setup is one way to run the server: a sandbox, a store and a user of the machine.
type Setup struct {
	Name     string
	Settings Settings
}

// ProcessSetup returns the simplest setup: process sandboxes and the embedded store.
func ProcessSetup() Setup { return Setup{"process+file", Common} }

// Setups says over which setups a test runs. Combine them with |.
type Setups int

const (
	// Processes is the process sandbox with each store.
	Processes Setups = 1 << iota
	// Docker is Docker with Redis, the store that it is used with, or with the embedded
	// store if the machine has no Redis.
	Docker
	// dockerWithFile is Docker with the embedded store, too.
	dockerWithFile
	// GVisor is Docker with gVisor as its runtime, with the embedded store.
	GVisor
	// OrdinaryUser is the process sandbox of a server that runs as an ordinary user, who has
	// no other users for its sandboxes.
	OrdinaryUser
	// OrdinaryUserWithRange is the same with a user who has a range of users in /etc/subuid.
	OrdinaryUserWithRange

	// EachSandbox is what most tests run over: each sandbox with the stores it is used with.
	EachSandbox = Processes | Docker
	// EachStore is for tests of what outlives a server: each sandbox with each store.
	EachStore = EachSandbox | dockerWithFile
)

// OverSetups runs test in parallel over the chosen setups, as far as the machine has them.
func OverSetups(t *testing.T, chosen Setups, test func(t *testing.T, s Setup)) {
	t.Parallel()
	for _, s := range chosen.here() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// here returns the chosen setups that this machine has.
func (chosen Setups) here() (list []Setup) {
	has := func(one Setups) bool { return chosen&one != 0 }
	for _, e := range Sandboxes() {
		for _, s := range stores() {
			usual := s.Name == "redis" || storesHere() == 1
			if e.Name == "process" && has(Processes) || e.Name == "docker" && (usual && has(Docker) || !usual && has(dockerWithFile)) {
				list = append(list, Setup{e.Name + "+" + s.Name, With(Common, e.Settings, s.Settings)})
			}
		}
	}
	for _, u := range []struct {
		wanted Setups
		user   string
	}{{OrdinaryUser, Nobody}, {OrdinaryUserWithRange, NobodyWithRange}} {
		// Only root can become another user.
		if has(u.wanted) && os.Geteuid() == 0 {
			list = append(list, Setup{"process as " + u.user, With(Common, Settings{RunAs: u.user})})
		}
	}
	if has(GVisor) && HasGVisor() {
		list = append(list, Setup{"gvisor", With(Common, GVisorSettings)})
	}
	return list
}
