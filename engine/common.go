package engine

import (
	"fermata/continuation"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/quota"
	"fermata/engine/sandbox"
	"fermata/engine/tools"
)

// A common is what the executions of this server have in common.
type common struct {
	o       Options
	members *cluster.Member
	pool    *sandbox.Pool
	quota   *quota.Quota
	checker *checker
	tally   tally
	caller  caller
}

// maxStandalone is how many calls without a program one principal may have under way on this server.
const maxStandalone = tools.MaxOfPrincipal

// newQuota returns the quota of a server.
func newQuota(o Options) *quota.Quota {
	return quota.New(quota.Limits{
		Running: o.MaxRunning, Paused: o.MaxPaused, Executions: o.MaxExecutions, Stored: o.MaxStored,
		Calls: maxStandalone, Asked: core.MaxAskedOfAll,
	})
}

func newCommon(o Options) *common {
	m := &common{
		o:       o,
		members: cluster.New(cluster.Options{Registry: o.Registry, Instance: o.Instance, Address: o.Address, Exclusive: o.Exclusive}),
		pool: sandbox.NewPool(sandbox.PoolOptions{
			Provider: o.Provider, Limits: o.Limits, Log: o.Log, Sizes: o.PoolSizes,
			Ceiling: o.MaxSandboxes, MaxIdle: o.MaxIdle, Waited: o.Waited, Made: o.Made,
		}),
		quota:   newQuota(o),
		checker: &checker{maxRounds: o.MaxRounds, maxCalls: o.MaxCalls},
	}
	m.caller.o = &m.o
	return m
}

// newLedger returns the ledger of an execution that this server does not own yet.
func (m *common) newLedger(r continuation.Record, c *chronicle) *ledger {
	l := &ledger{
		id: r.ID, o: &m.o, members: m.members, quota: m.quota, tally: &m.tally, chronicle: c, errands: new(errands),
		left: make(chan struct{}), over: make(chan struct{}), record: r, standing: core.StandsUnowned,
	}
	state := core.State(r.State)
	l.state.Store(&state)
	return l
}
