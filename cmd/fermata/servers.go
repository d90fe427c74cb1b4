package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fermata/api/peer"
	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/continuation/redisstore"
)

// maxDrainDelay is the longest time for which a server may serve on after SIGTERM.
const maxDrainDelay = 5 * time.Minute

// redisLookup is how long the addresses of Redis are looked up for.
const redisLookup = 2 * time.Second

// serverSettings are the settings of a group of servers, and of how a server ends.
type serverSettings struct {
	RedisURL     secret        `name:"redis-url" placeholder:"URL" help:"Redis that keeps the records, instead of a file in the state directory: redis://, rediss:// or unix://, with ?cluster=true&addr=… for Redis Cluster or ?master_name=… for Sentinel."`
	RedisSecret  []secret      `placeholder:"SECRET" help:"Secrets that encrypt the records in Redis, each of at least 32 bytes. The first one encrypts, all of them decrypt. Default: no encryption."`
	PeerURL      string        `name:"peer-url" placeholder:"URL" help:"URL at which the other servers of the group reach this one. Default: the address on which it listens for them."`
	PeerAddr     string        `placeholder:"ADDR" help:"Separate address on which to listen for the other servers of the group; FERMATA_ADDR then does not serve them. Default: FERMATA_ADDR serves them."`
	Drain        string        `enum:"end,keep" default:"end" help:"What SIGTERM does with paused executions. end: ends them; keep: leaves them to the next server."`
	DrainDelay   time.Duration `default:"0s" help:"How long the server serves on after SIGTERM, at most 5m, while /ready answers 503: long enough for a load balancer to notice, for example 5s. Paused executions end only after it."`
	DrainTimeout time.Duration `default:"25s" help:"How long SIGTERM waits for running programs, after FERMATA_DRAIN_DELAY."`
}

func (s *serverSettings) check(m *mistakes) {
	m.unless(s.PeerAddr == "" || s.RedisURL.reveal() != "", "peer-addr", "empty without FERMATA_REDIS_URL: there are no other servers")
	m.unless(s.PeerURL == "" || s.RedisURL.reveal() != "", "peer-url", "empty without FERMATA_REDIS_URL: there are no other servers")
	if s.PeerAddr != "" {
		m.address("peer-addr", s.PeerAddr)
	}
	scheme, _, _ := strings.Cut(s.RedisURL.reveal(), "://")
	m.unless(s.RedisURL.reveal() == "" || slices.Contains([]string{"redis", "rediss", "unix"}, scheme), "redis-url",
		"a URL that begins with redis://, rediss:// or unix://, such as redis://localhost:6379") // It may contain a password, so it is not shown.
	m.unless(s.DrainDelay >= 0 && s.DrainDelay <= maxDrainDelay, "drain-delay", fmt.Sprintf("between 0s and %s", maxDrainDelay))
	m.unless(s.DrainTimeout >= 0, "drain-timeout", "0s or more")
}

// store opens the store of records. It also returns the registry of servers, or nil if no
// other servers can share the store.
func (s *serverSettings) store(dir string, j *journalSettings, log *slog.Logger) (continuation.Store, peer.Directory, error) {
	if s.RedisURL.reveal() == "" {
		store, err := boltstore.Open(filepath.Join(dir, "executions.db"), log,
			boltstore.WithLimits(j.limits()), boltstore.WithExpiry(j.options().Expire))
		return store, nil, err
	}
	options := []redisstore.Option{redisstore.WithLimits(j.limits()), redisstore.WithLog(log)}
	if len(s.RedisSecret) > 0 {
		options = append(options, redisstore.WithKey(reveal(s.RedisSecret)...))
	}
	redisstore.LogClient(log)
	store, err := redisstore.New(s.RedisURL.reveal(), options...)
	if err != nil {
		return nil, nil, fmt.Errorf("open the store of records (FERMATA_REDIS_URL, FERMATA_REDIS_SECRET): %w", err)
	}
	return store, store, nil
}

// redisPlace returns the part of the Redis URL that says where Redis is, without the
// credentials. Servers whose URLs differ in it belong to different groups.
func (s *serverSettings) redisPlace() string {
	u, err := url.Parse(s.RedisURL.reveal())
	if err != nil {
		return "" // This cannot happen: the store has refused such a URL.
	}
	query := u.Query()
	for _, secret := range []string{"username", "password"} {
		query.Del(secret)
	}
	return u.Host + u.Path + "?" + query.Encode()
}

// redisAddresses returns the addresses of Redis, those of a cluster or of sentinels included, as far as they can be
// found out now.
func (s *serverSettings) redisAddresses(ctx context.Context) []net.Addr {
	u, err := url.Parse(s.RedisURL.reveal())
	if err != nil || u.Host == "" {
		return nil // A socket has no host.
	}
	ctx, cancel := context.WithTimeout(ctx, redisLookup)
	defer cancel()
	var addresses []net.Addr
	for _, place := range append(u.Query()["addr"], net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "6379"))) {
		host, text, err := net.SplitHostPort(place)
		if err != nil {
			continue // The store reports it.
		}
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			continue
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			continue
		}
		for _, ip := range found {
			addresses = append(addresses, net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port))))
		}
	}
	return addresses
}

// peerAddress returns the URL at which other servers reach this one.
func (s *serverSettings) peerAddress(addr net.Addr) (string, error) {
	if s.PeerURL != "" {
		return strings.TrimRight(s.PeerURL, "/"), nil
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return "http://" + addr.String(), nil
	}
	// This server listens on every address. Other servers need one that belongs to this host.
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("find an address of this host for other servers (set FERMATA_PEER_URL to name one): %w", err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return "http://" + net.JoinHostPort(network.IP.String(), strconv.Itoa(tcp.Port)), nil
		}
	}
	return "http://" + addr.String(), nil
}
