package tests

import (
	"maps"
	"os"
	"testing"
)

// settings are environment variables of the server, without the prefix FERMATA_.
type settings map[string]string

// with returns a copy of base with the changes applied, the last one on top.
func with(base settings, changes ...settings) settings {
	merged := settings{}
	for _, s := range append([]settings{base}, changes...) {
		maps.Copy(merged, s)
	}
	return merged
}

// secret signs the tokens of every server here.
const secret = "tests-0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// common are the settings of every server here.
var common = settings{
	"ADDR":      "127.0.0.1:0",
	"API_KEYS":  "alice:key-a,bob:key-b",
	"SECRET":    secret,
	"PYTHON":    python(),
	"POOL_SIZE": "2",
	// Most tests have one client, which may use the whole server. Tests of the limit set it.
	"MAX_EXECUTIONS": "0",
}

// small are limits that a test reaches soon.
var small = settings{"MEMORY": "192MiB", "PIDS": "32", "OUTPUT": "64KiB", "DISK": "8MiB"}

// A part is one choice of a sandbox or a store, with the settings that choose it.
type part struct {
	name     string
	settings settings
}

// engines returns the sandboxes that this machine has: processes always, Docker if it is
// installed.
func engines() []part {
	return []part{{name: "process"}, {name: "docker", settings: dockerSettings}}[:enginesHere()]
}

// stores returns the stores that this machine has: the embedded one always, Redis if it is
// installed.
func stores() []part {
	return []part{{name: "file"}, {name: "redis", settings: settings{"REDIS_URL": commonRedis.url()}}}[:storesHere()]
}

// gVisorSettings choose containers that have a kernel of their own, gVisor.
var gVisorSettings = with(dockerSettings, settings{"DOCKER_RUNTIME": "runsc"})

// A setup is one way to run the server: a sandbox, a store and a user of the machine.
type setup struct {
	name     string
	settings settings
}

// processSetup returns the simplest setup: process sandboxes and the embedded store.
func processSetup() setup { return setup{"process+file", common} }

// setups says over which setups a test runs. Combine them with |.
type setups int

const (
	// processes is the process sandbox with each store.
	processesOnly setups = 1 << iota
	// docker is Docker with Redis, the store that it is used with, or with the embedded
	// store if the machine has no Redis.
	dockerOnly
	// dockerWithFile is Docker with the embedded store, too.
	dockerWithFile
	// gVisor is Docker with gVisor as its runtime, with the embedded store.
	onGVisor
	// ordinaryUser is the process sandbox of a server that runs as an ordinary user, who has
	// no other users for its sandboxes.
	ordinaryUser
	// ordinaryUserWithRange is the same with a user who has a range of users in /etc/subuid.
	ordinaryUserWithRange

	// eachEngine is what most tests run over: each sandbox with the stores it is used with.
	eachEngine = processesOnly | dockerOnly
	// eachStore is for tests of what outlives a server: each sandbox with each store.
	eachStore = eachEngine | dockerWithFile
)

// overSetups runs test in parallel over the chosen setups, as far as the machine has them.
func overSetups(t *testing.T, chosen setups, test func(t *testing.T, s setup)) {
	t.Parallel()
	for _, s := range chosen.here() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// here returns the chosen setups that this machine has.
func (chosen setups) here() (list []setup) {
	has := func(one setups) bool { return chosen&one != 0 }
	for _, e := range engines() {
		for _, s := range stores() {
			usual := s.name == "redis" || storesHere() == 1
			if e.name == "process" && has(processesOnly) || e.name == "docker" && (usual && has(dockerOnly) || !usual && has(dockerWithFile)) {
				list = append(list, setup{e.name + "+" + s.name, with(common, e.settings, s.settings)})
			}
		}
	}
	for _, u := range []struct {
		wanted setups
		user   string
	}{{ordinaryUser, nobody}, {ordinaryUserWithRange, nobodyWithRange}} {
		// Only root can become another user.
		if has(u.wanted) && os.Geteuid() == 0 {
			list = append(list, setup{"process as " + u.user, with(common, settings{runAs: u.user})})
		}
	}
	if has(onGVisor) && hasGVisor() {
		list = append(list, setup{"gvisor", with(common, gVisorSettings)})
	}
	return list
}
