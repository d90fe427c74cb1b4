package sandbox

// PoolStats are the figures of a pool: what there is at this moment, and counts of what has
// been since it began.
type PoolStats struct {
	// KindStats are the sums of those of all kinds.
	KindStats
	// Kinds are the figures of each kind.
	Kinds map[Kind]KindStats
	// Live counts the sandboxes that are idle, in use, being made or being destroyed.
	Live int
	// Stuck counts those that could not be destroyed, and are tried again.
	Stuck int
	// Ceiling is how many may live.
	Ceiling int
}

// KindStats are the figures of one kind of sandboxes.
type KindStats struct {
	// Idle sandboxes wait for a program, those in Making are being made.
	Idle, Making int
	// Waiting is how many starts wait for a sandbox.
	Waiting int
	// Size is how many sandboxes should be idle.
	Size int
	// Warm counts starts that found a sandbox idle, Cold those that had to wait for one, and
	// Refused those that got none.
	Warm, Cold, Refused uint64
	// Made counts sandboxes, Failed attempts to make one.
	Made, Failed uint64
}

func (s *KindStats) add(t KindStats) {
	s.Idle += t.Idle
	s.Making += t.Making
	s.Waiting += t.Waiting
	s.Size += t.Size
	s.Warm += t.Warm
	s.Cold += t.Cold
	s.Refused += t.Refused
	s.Made += t.Made
	s.Failed += t.Failed
}

// Full reports whether a start that came now would have to wait until a program ends: executions and
// those who wait for a sandbox already take all that may live.
func (p *Pool) Full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.o.Ceiling - min(p.stuckCount(), p.o.Ceiling/2) - p.live + p.ending
	for _, kind := range Kinds {
		room += p.idle.count(kind) + p.making[kind] - p.queue.waiting(kind)
	}
	return room <= 0
}

// Stats returns the figures of this moment.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PoolStats{Kinds: map[Kind]KindStats{}, Live: p.live, Stuck: p.stuckCount(), Ceiling: p.o.Ceiling}
	for _, kind := range Kinds {
		k := *p.counts[kind]
		k.Idle, k.Making, k.Waiting, k.Size = p.idle.count(kind), p.making[kind], p.queue.waiting(kind), p.o.Sizes[kind]
		s.Kinds[kind] = k
		s.add(k)
	}
	return s
}
