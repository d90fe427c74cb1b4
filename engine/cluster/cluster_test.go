package cluster_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/cluster"
)

// registry has servers by their names. It remembers the latest lease.
type registry struct {
	servers map[string]string
	lease   time.Duration
}

func (r *registry) Announce(_ context.Context, instance, address string, lease time.Duration) error {
	r.servers[instance], r.lease = address, lease
	return nil
}

func (r *registry) Locate(_ context.Context, instance string) (string, error) {
	if address, ok := r.servers[instance]; ok {
		return address, nil
	}
	return "", continuation.ErrNotFound
}

func (r *registry) Servers(context.Context) (map[string]string, error) { return r.servers, nil }

func (r *registry) Withdraw(_ context.Context, instance string) error {
	delete(r.servers, instance)
	return nil
}

func TestMember(t *testing.T) {
	r := &registry{servers: map[string]string{"b.1": "http://b", "a.0": "http://old"}}
	m := cluster.New(cluster.Options{Registry: r, Instance: "a.1", Address: "http://a"})
	if m.Announced() || m.Holds() {
		t.Error("a member without a lease is announced")
	}
	if err := m.Renew(t.Context()); err != nil || !m.Announced() || r.lease != cluster.LeaseTime {
		t.Errorf("after Renew: %v, announced %v, for %v", err, m.Announced(), r.lease)
	}
	for instance, lives := range map[string]bool{"b.1": true, "c.1": false, "a.0": false} { // a.0 is an earlier process of a.
		if got := m.Lives(t.Context(), instance); got != lives {
			t.Errorf("%s lives: %v, want %v", instance, got, lives)
		}
	}
	if m.Lapse(); m.Announced() {
		t.Error("the lease has not ended")
	}
	if err := m.Withdraw(); err != nil || r.servers["a.1"] != "" {
		t.Errorf("Withdraw: %v, %v", err, r.servers)
	}
}

func TestAlone(t *testing.T) {
	m := cluster.New(cluster.Options{Instance: "a.1"})
	if !m.Announced() || !m.Succeeds("b.1") || m.Succeeds("a.1") || m.Withdraw() != nil {
		t.Error("without a registry every other instance is an earlier process, and the lease never ends")
	}
}

func TestAskOthers(t *testing.T) {
	r := &registry{servers: map[string]string{"a.1": "own", "a.0": "earlier", "b.1": "b", "c.1": "c", "d.1": "silent"}}
	m := cluster.New(cluster.Options{Registry: r, Instance: "a.1"})
	silent := errors.New("silent")
	answers, err := cluster.AskOthers(t.Context(), m, func(_ context.Context, address string) (string, error) {
		if address == "silent" {
			return "", silent
		}
		return address, nil
	})
	slices.Sort(answers)
	if !slices.Equal(answers, []string{"b", "c"}) || !errors.Is(err, silent) {
		t.Errorf("got %v, %v", answers, err)
	}
}
