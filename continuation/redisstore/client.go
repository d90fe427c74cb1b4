package redisstore

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// While a command waits for Redis, a client waits for its answer, so an outage must be
// noticed soon. Each of these limits must fit into the one before it and is computed from it.
const (
	// commandLimit is the time limit of one command with all its attempts.
	commandLimit = 2 * time.Second
	// attemptLimit is the time limit of one read or write. A command has two attempts.
	attemptLimit = commandLimit * 45 / 100
	// dialLimit is the time limit of one attempt to connect. Each attempt of a command has one.
	dialLimit = attemptLimit / 2
)

const (
	// retries is 1 because after a restart of Redis the dead connections of the pool are
	// noticed only when they are used. With more retries an outage would only be noticed
	// later.
	retries = 1
	// redirects is how often a command follows a Cluster that moves its slots or fails
	// over before the command gives up.
	redirects = 3
)

// errReplica refuses replicas: a replica may be behind its master, and a server that
// continues an execution must see its last write.
var errReplica = errors.New("the URL of Redis asks to read from replicas, which is not supported")

// newClient returns a client for the Redis at rawURL. Parameters in the URL override our
// own, except for commandLimit.
func newClient(rawURL string) (redis.UniversalClient, error) {
	// The library would print errors that it also returns.
	logging.Disable()
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error is left out: like the URL it may contain a password.
		return nil, errors.New("the URL of Redis cannot be parsed")
	}
	query := u.Query()
	switch cluster := query.Get("cluster"); {
	case cluster == "true":
		query.Del("cluster")
		u.RawQuery = query.Encode()
		return clusterClient(u)
	case cluster != "":
		return nil, fmt.Errorf("the URL of Redis has cluster=%q, want true", cluster)
	case query.Has("master_name"):
		return failoverClient(u)
	default:
		return singleClient(u)
	}
}

func singleClient(u *url.URL) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	setDefault(&o.DialTimeout, dialLimit)
	setDefault(&o.ReadTimeout, attemptLimit)
	setDefault(&o.WriteTimeout, attemptLimit)
	setDefault(&o.PoolTimeout, attemptLimit)
	setDefault(&o.MaxRetries, retries)
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = noNotifications()
	return redis.NewClient(o), nil
}

func failoverClient(u *url.URL) (redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, err
	}
	if o.ReplicaOnly || o.RouteByLatency || o.RouteRandomly {
		return nil, errReplica
	}
	setDefault(&o.DialTimeout, dialLimit)
	setDefault(&o.ReadTimeout, attemptLimit)
	setDefault(&o.WriteTimeout, attemptLimit)
	setDefault(&o.PoolTimeout, attemptLimit)
	setDefault(&o.MaxRetries, retries)
	setDefault(&o.DialerRetries, 1)
	o.ContextTimeoutEnabled = true
	return redis.NewFailoverClient(o), nil
}

func clusterClient(u *url.URL) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, err
	}
	if o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
		return nil, errReplica
	}
	setDefault(&o.DialTimeout, dialLimit)
	setDefault(&o.ReadTimeout, attemptLimit)
	setDefault(&o.WriteTimeout, attemptLimit)
	setDefault(&o.PoolTimeout, attemptLimit)
	// A client of a Cluster retries by following redirects, and in no other way.
	setDefault(&o.MaxRetries, -1)
	setDefault(&o.MaxRedirects, redirects)
	setDefault(&o.DialerRetries, 1)
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = noNotifications()
	return redis.NewClusterClient(o), nil
}

// setDefault sets an option that the URL did not set.
func setDefault[T int | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}

// noNotifications turns maintenance notifications off: asking for them costs every new
// connection a command, which all servers but Redis' own cloud refuse.
func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
