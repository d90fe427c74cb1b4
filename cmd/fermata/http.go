package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"fermata/api"
	"fermata/api/auth"
)

// httpSettings are the settings of what clients meet: addresses, keys, and limits of requests.
type httpSettings struct {
	Addr           string         `default:"127.0.0.1:8000" help:"Address to listen on."`
	MetricsAddr    string         `placeholder:"ADDR" help:"Address on which to serve Prometheus metrics, at /metrics, without authentication: keep it private. Default: no metrics."`
	Auth           string         `enum:"keys,off" default:"keys" help:"Who may use the API. keys: clients with an API key or a LibreChat token; off: everybody who can reach the address."`
	APIKeys        []apiKey       `name:"api-keys" placeholder:"NAME:KEY" help:"API keys. A client that presents KEY is the principal NAME. A key without a name gets one that is derived from the key."`
	OperatorKeys   []apiKey       `placeholder:"NAME:KEY" help:"Keys of operators, written like FERMATA_API_KEYS. Operators see the executions and files of all principals and may cancel executions. They cannot start, continue, upload or delete anything."`
	MaxBody        byteSize       `default:"50MB" help:"Largest request body. Uploads are bounded by FERMATA_FILE_SIZE instead."`
	BodyBudget     byteSize       `default:"512MiB" help:"Most memory that the bodies of all requests, and large answers to continuations, may take at once. One client may take a quarter of it."`
	Hosts          []string       `placeholder:"NAME" help:"Host names by which clients may call a server with FERMATA_AUTH=off, in addition to IP addresses, localhost and the hosts in FERMATA_ADDR and FERMATA_PEER_URL. All other names are refused: otherwise a web page could make a browser call the server by a name of its own."`
	CORSOrigins    []string       `name:"cors-origins" placeholder:"ORIGIN" help:"Origins whose web pages may use the API, spelled as browsers do: https://a.example. A page still needs a key. Requests of pages of all other origins are refused. Default: none."`
	ErrorStyle     api.ErrorStyle `enum:"http,inline" default:"http" help:"How to report a spent run budget and too many rounds. http: with status 408 and 400; inline: with status 200 and an error in the body, for clients that discard the body of any other status."`
	Console        string         `enum:"on,off" default:"on" help:"Whether to serve the console, a page for people, at /console. The page itself needs no key and tells nothing."`
	MaxConnections int            `default:"4096" help:"Most connections at once. One more closes the connection that has waited longest without a request of a known client. The limit on open files may leave room for fewer."`
	MaxReaders     int            `default:"1000" help:"Most streams of events, live answers among them, that one client may read at once. All clients together may read five times as many. Each takes a connection."`
	RateExecutions rate           `default:"off" placeholder:"N/TIME" help:"Most executions that one client may start in a period, for example 20/30s; off for no limit. Continuations do not count."`
	RateUploads    rate           `default:"off" placeholder:"N/TIME" help:"Most uploads of files by one client in a period, for example 30/5m; off for no limit."`
	RateDownloads  rate           `default:"off" placeholder:"N/TIME" help:"Most downloads of files by one client in a period, for example 60/1m; off for no limit."`
	RateLists      rate           `default:"off" placeholder:"N/TIME" help:"Most requests of one client for lists and properties of files in a period, for example 120/1m; off for no limit."`
}

func (s *httpSettings) check(m *mistakes) {
	if s.Auth == "off" && len(s.OperatorKeys) > 0 {
		*m = append(*m, errors.New("FERMATA_AUTH=off lets in everyone, so the keys in FERMATA_OPERATOR_KEYS would open nothing more: set one of them"))
	}
	*m = append(*m, auth.CheckKeys(s.keys())...)
	if s.Auth == "keys" && !loopback(s.Addr) {
		s.checkLengths(m, "api-keys", s.APIKeys)
		s.checkLengths(m, "operator-keys", s.OperatorKeys)
	}
	for _, origin := range s.CORSOrigins {
		if err := api.CheckOrigin(origin); err != nil {
			*m = append(*m, fmt.Errorf("--cors-origins has %q: %w", origin, err))
		}
	}
	m.address("addr", s.Addr)
	if s.MetricsAddr != "" {
		m.address("metrics-addr", s.MetricsAddr)
	}
	m.unless(s.MaxBody > 0, "max-body", "more than 0")
	m.unless(s.BodyBudget > 0, "body-budget", "more than 0")
	m.unless(s.MaxConnections > 0, "max-connections", "more than 0")
	m.unless(s.MaxReaders > 0, "max-readers", "more than 0")
}

func (s *httpSettings) checkLengths(m *mistakes, flag string, keys []apiKey) {
	for _, k := range keys {
		m.unless(k.length() >= minKey, flag, fmt.Sprintf("keys of at least %d characters, and that of %s has %d: "+
			"make one with openssl rand -hex 24 (shorter ones are for a FERMATA_ADDR such as 127.0.0.1:8000)", minKey, k.Name, k.length()))
	}
}

// hosts returns the names by which clients may call the server.
func (s *httpSettings) hosts() []string {
	hosts := slices.Clone(s.Hosts)
	if host, _, err := net.SplitHostPort(s.Addr); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

func (s *httpSettings) keys() []auth.Key {
	var keys []auth.Key
	for _, k := range s.APIKeys {
		keys = append(keys, auth.Key{Name: k.Name, Key: k.Key.reveal()})
	}
	for _, k := range s.OperatorKeys {
		keys = append(keys, auth.Key{Name: k.Name, Key: k.Key.reveal(), Operator: true})
	}
	return keys
}

// principals returns how many principals the API keys stand for.
func (s *httpSettings) principals() int {
	names := map[string]bool{}
	for _, k := range s.APIKeys {
		names[k.Name] = true
	}
	return len(names)
}

// options returns the settings that all contracts share, except for those that need other parts
// of the server.
func (s *httpSettings) options(log *slog.Logger) api.Options {
	return api.Options{
		Open:         s.Auth == "off",
		Hosts:        s.hosts(),
		Origins:      s.CORSOrigins,
		RefusalDelay: api.RefusalDelay,
		BodyBudget:   int64(s.BodyBudget),
		Rates: api.Rates{
			Executions: api.Rate(s.RateExecutions),
			Uploads:    api.Rate(s.RateUploads),
			Downloads:  api.Rate(s.RateDownloads),
			Lists:      api.Rate(s.RateLists),
		},
		Log: log,
	}
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
