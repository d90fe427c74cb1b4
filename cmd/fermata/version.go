package main

import "runtime/debug"

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
