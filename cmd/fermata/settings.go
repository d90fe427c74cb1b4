package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"fermata/api/auth"
)

// settings are all settings of the server, in groups by subject. Flags and environment
// variables are named after the fields of the groups. After a change there, rewrite
// docs/settings.md with
//
//	go test ./cmd/fermata -run TestSettingsPage -update
//
// Methods that need the settings of one group only belong to that group.
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

// mistakes are what is wrong with the settings.
type mistakes []error

// unless adds what the value of a flag must be, unless it is ok.
func (m *mistakes) unless(ok bool, flag, must string) {
	if !ok {
		*m = append(*m, fmt.Errorf("--%s must be %s (%s)", flag, must, variable(flag)))
	}
}

// variable returns the name of the environment variable of a flag.
func variable(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// address adds how to write an address to listen on, unless it is written so.
func (m *mistakes) address(flag, addr string) {
	m.unless(listenable(addr), flag, addrForm(addr))
}

// listenable reports whether a text is a host and a port, or a port behind a colon.
func listenable(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// addrForm says how to write an address to listen on.
func addrForm(addr string) string {
	return fmt.Sprintf("HOST:PORT, such as 127.0.0.1:8000, [::1]:8000, or :8000 for every address of this machine, "+
		"with a port from 0 to 65535, and is %q", addr)
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
