package engine

import "fermata/engine/sandbox"

// A common is what the executions of this server have in common.
type common struct {
	o       Options
	members *membership
	pool    *sandbox.Pool
	quota   *quota
	checker *checker
	tally   tally
	caller  caller
}

func newCommon(o Options) *common {
	m := &common{
		o:       o,
		members: newMembership(o),
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
