package peer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"fermata/continuation"
)

// A Directory is a continuation.Registry that also keeps what servers say of themselves.
type Directory interface {
	continuation.Registry

	// Describe keeps what a server says of itself, for ttl from now.
	Describe(ctx context.Context, server, text string, ttl time.Duration) error

	// Descriptions returns what every server that is alive says of itself.
	Descriptions(ctx context.Context) (map[string]string, error)
}

// A member is what a server says of itself to servers that join its store. It is not signed, since a
// server with another secret must be able to read it. Nothing but a refusal follows from it.
type member struct {
	// Address is where other servers reach it.
	Address string `json:"address"`
	// Keys are the fingerprints of its secrets.
	Keys []string `json:"keys"`
	// Bucket is true if its session files are in a bucket, which all servers can share.
	Bucket bool `json:"bucket"`
}

// fingerprints identifies each secret. A fingerprint reveals nothing about the secret.
func (k Key) fingerprints() []string {
	const length = 8
	var list []string
	for _, key := range k.keys {
		list = append(list, hex.EncodeToString(macOf(key, "fingerprint")[:length]))
	}
	return list
}

// describe returns the text of what a server says of itself.
func (m member) describe() (string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("describe this server: %w", err)
	}
	return string(text), nil
}

// with returns an error that says what to change, unless the servers m and other can be in one
// group.
func (m member) with(other member) error {
	known := func(key string) bool { return slices.Contains(other.Keys, key) }
	const from = "the server at %s uses the same Redis (FERMATA_REDIS_URL)"
	switch {
	case !slices.ContainsFunc(m.Keys, known):
		return fmt.Errorf(from+", but none of its secrets is one of this server (FERMATA_SECRET): "+
			"give all servers of a group the same secret, or this server another Redis or database. "+
			"A server counts for some seconds after it was killed", other.Address)
	case !m.Bucket:
		return fmt.Errorf(from+", so other servers must be able to read the session files of this one: "+
			"set FERMATA_FILES_URL to one bucket for all servers of the group, for example s3://my-bucket", other.Address)
	case !other.Bucket:
		return fmt.Errorf(from+", but keeps its session files in a directory of its own: "+
			"set FERMATA_FILES_URL to one bucket for all servers of the group, for example s3://my-bucket, and start that server again", other.Address)
	}
	return nil
}

// describe renews what this server says of itself. The first time it also compares that with what
// the other servers say, and returns an error if they cannot be in one group.
func (r *Registry) describe(ctx context.Context, server, address string, ttl time.Duration) error {
	self := member{Address: address, Keys: r.key.fingerprints(), Bucket: r.bucket}
	text, err := self.describe()
	if err != nil {
		return err
	}
	if err := r.directory.Describe(ctx, server, text, ttl); err != nil {
		return err
	}
	if r.compared.Load() {
		return nil
	}
	texts, err := r.directory.Descriptions(ctx)
	if err != nil {
		return err
	}
	home, _, _ := strings.Cut(server, ".")
	for name, text := range texts {
		var other member
		// The part before the dot names the state directory: only one server at a time has it.
		if before, _, _ := strings.Cut(name, "."); before == home || json.Unmarshal([]byte(text), &other) != nil {
			continue
		}
		if err := self.with(other); err != nil {
			return err
		}
		if !slices.Contains(other.Keys, self.Keys[0]) {
			// A new secret belongs behind the old one until all servers know it.
			r.log.Warn("another server does not know the secret with which this one signs, and refuses its tokens", "server", other.Address)
		}
	}
	r.compared.Store(true)
	return nil
}
