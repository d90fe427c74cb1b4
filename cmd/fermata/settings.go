package main

import (
	"errors"
	"slices"

	"fermata/api/auth"
)

// settings are all settings of the server, in groups by subject. Flags and environment
// variables are named after the fields of the groups. After a change there, rewrite
// docs/settings.md with
//
//	go test ./cmd/fermata -run TestSettingsPage -update
//
// Methods that need the settings of one group only belong to that group. Here is a method for each part of the server
// that needs more than one.
type settings struct {
	HTTP       httpSettings      `group:"HTTP"`
	JWT        jwtSettings       `prefix:"jwt-" group:"LibreChat tokens"`
	Executions executionSettings `group:"Executions"`
	Tools      toolsSettings     `group:"Tools that the server runs"`
	Journal    journalSettings   `group:"Journals"`
	Files      fileSettings      `group:"Files"`
	Servers    serverSettings    `group:"Groups of servers and shutdown"`
	Sandbox    sandboxSettings   `group:"Sandboxes"`
	Log        logSettings       `prefix:"log-" group:"Log"`
}

// isPrincipal reports whether a client can be the principal with a name. Without keys all names pass: everyone
// is the same principal then, and the toolsets file may be that of another server.
func (s *settings) isPrincipal(name string) bool {
	if s.HTTP.Auth == "off" {
		return true
	}
	if slices.ContainsFunc(s.HTTP.APIKeys, func(k apiKey) bool { return k.Name == name }) {
		return true
	}
	who, possible := auth.Named(name)
	return possible && who.User != "" && s.JWT.on()
}

// Validate reports all mistakes that can be found without starting anything.
func (s *settings) Validate() error {
	var m mistakes
	if s.HTTP.Auth == "keys" && len(s.HTTP.APIKeys) == 0 && !s.JWT.on() {
		m = append(m, errors.New("there are no API keys: set FERMATA_API_KEYS to the keys of the clients, "+
			"or FERMATA_JWT_... to the keys of LibreChat, or FERMATA_AUTH=off to let in everyone who can reach the address"))
	}
	if s.HTTP.Auth == "off" && s.JWT.on() {
		m = append(m, errors.New("FERMATA_AUTH=off lets in everyone, and FERMATA_JWT_... only users of LibreChat: set one of them"))
	}
	m = append(m, s.groupMistakes()...)
	for _, group := range []interface{ check(m *mistakes) }{&s.JWT, &s.HTTP, &s.Executions, &s.Tools, &s.Journal, &s.Files, &s.Servers, &s.Sandbox} {
		group.check(&m)
	}
	return errors.Join(m...)
}

// groupMistakes returns what keeps this server from being a member of a group of servers.
func (s *settings) groupMistakes() []error {
	if s.Servers.RedisURL.reveal() == "" {
		return nil
	}
	var m []error
	if len(s.Executions.Secret) == 0 {
		m = append(m, errors.New("FERMATA_REDIS_URL needs FERMATA_SECRET: servers that share a Redis must share the secret that signs tokens, "+
			"and the one in a state directory is this server's own: make one with openssl rand -hex 32, and keep it"))
	}
	if s.Servers.PeerURL != "" && !s.Files.bucket() {
		m = append(m, errors.New("FERMATA_PEER_URL makes this server a member of a group, whose servers must share their session files: "+
			"set FERMATA_FILES_URL to one bucket for all of them, for example s3://my-bucket"))
	}
	return m
}

// maxExecutions returns the most executions that one client may have, 0 for no limit.
func (s *settings) maxExecutions() int {
	if !s.Executions.MaxExecutions.auto {
		return s.Executions.MaxExecutions.n
	}
	if s.HTTP.Auth == "off" || s.HTTP.principals() < 2 && !s.JWT.on() {
		return 0
	}
	return max(1, s.Sandbox.MaxSandboxes/4)
}

// idle returns one sentence for each setting that has no effect because of another one.
func (s *settings) idle() []string {
	var list []string
	for _, one := range []struct {
		set        bool
		name, with string
	}{
		{s.Sandbox.Provider != "docker" && s.Sandbox.DockerImage != defaultImage, "FERMATA_DOCKER_IMAGE", "FERMATA_SANDBOX=process"},
		{s.Sandbox.Provider != "docker" && s.Sandbox.DockerRuntime != "", "FERMATA_DOCKER_RUNTIME", "FERMATA_SANDBOX=process"},
		{s.Sandbox.Provider == "docker" && s.Sandbox.Python != defaultPython, "FERMATA_PYTHON", "FERMATA_SANDBOX=docker: the image has its own"},
		{s.Sandbox.Provider == "docker" && s.Sandbox.Cgroups != "required", "FERMATA_CGROUPS", "FERMATA_SANDBOX=docker: the engine makes them"},
		{s.Servers.RedisURL.reveal() == "" && len(s.Servers.RedisSecret) > 0, "FERMATA_REDIS_SECRET", "no FERMATA_REDIS_URL"},
		{s.HTTP.Auth == "off" && len(s.HTTP.APIKeys) > 0, "FERMATA_API_KEYS", "FERMATA_AUTH=off: everybody is let in"},
		{s.HTTP.Auth != "off" && len(s.HTTP.Hosts) > 0, "FERMATA_HOSTS", "FERMATA_AUTH=keys: every host name is let in"},
	} {
		if one.set {
			list = append(list, one.name+" has no effect with "+one.with)
		}
	}
	return list
}
