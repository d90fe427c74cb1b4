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

// A client waits for its answer while a command waits for Redis, so trouble has
// to show soon. Each of these must fit into the one before it, so it is built
// from it.
const (
	// commandLimit bounds one command with all its attempts.
	commandLimit = 2 * time.Second
	// attemptLimit bounds one read or write. There are two attempts.
	attemptLimit = commandLimit * 45 / 100
	// dialLimit bounds one connection attempt. There is one in each attempt.
	dialLimit = attemptLimit / 2
)

const (
	// retries is 1: when Redis has restarted, connections of the pool turn out to
	// be dead as they are used. More of them would only make an outage slower.
	retries = 1
	// redirects is how often a command follows a Cluster that moves its slots, or
	// fails over, before it gives up.
	redirects = 3
)

// errReplica: a replica may be behind its master, and whoever goes on with an
// execution must see its last write.
var errReplica = errors.New("the url of Redis asks to read from replicas, which is not supported")

// newClient returns a client for the Redis that text names. Parameters in text
// go before our own, except for commandLimit.
func newClient(text string) (redis.UniversalClient, error) {
	// The library prints what it also returns as errors.
	logging.Disable()
	u, err := url.Parse(text)
	if err != nil {
		// The text may hold a password, and so may the error.
		return nil, errors.New("the url of Redis cannot be parsed")
	}
	query := u.Query()
	switch cluster := query.Get("cluster"); {
	case cluster == "true":
		query.Del("cluster")
		u.RawQuery = query.Encode()
		return clusterClient(u)
	case cluster != "":
		return nil, fmt.Errorf("the url of Redis has cluster=%q, want true", cluster)
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
	// A Cluster client retries by its redirects alone.
	setDefault(&o.MaxRetries, -1)
	setDefault(&o.MaxRedirects, redirects)
	setDefault(&o.DialerRetries, 1)
	o.ContextTimeoutEnabled = true
	o.MaintNotificationsConfig = noNotifications()
	return redis.NewClusterClient(o), nil
}

// setDefault sets an option that the url did not set.
func setDefault[T int | time.Duration](option *T, value T) {
	if *option == 0 {
		*option = value
	}
}

// noNotifications saves every new connection a command that servers other than
// Redis' own cloud refuse.
func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
