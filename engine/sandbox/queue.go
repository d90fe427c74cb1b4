package sandbox

import "slices"

// A queue is the line of those who wait for a sandbox, of whatever kind. Principals are
// served in turns, and each of them in the order in which it came.
type queue struct {
	turns []turn // in the order in which they are served
	// served is the rank of the latest turn that was served at the head of the line.
	served int
}

// A turn is a place in line.
type turn struct {
	taken     chan taken
	kind      Kind
	principal string
	// rank is one more than that of the principal's place before this one.
	rank int
}

// taken is what a turn comes to.
type taken struct {
	conn *Conn
	err  error
}

// join takes a place in line.
func (q *queue) join(kind Kind, principal string) chan taken {
	t := turn{taken: make(chan taken, 1), kind: kind, principal: principal, rank: q.served + 1}
	place := 0
	for i, other := range q.turns {
		if other.principal == principal {
			t.rank = other.rank + 1
		}
		if other.rank <= t.rank {
			place = i + 1
		}
	}
	q.turns = slices.Insert(q.turns, place, t)
	return t.taken
}

// leave gives up a place. It reports false if the turn has been served already.
func (q *queue) leave(place chan taken) bool {
	i := slices.IndexFunc(q.turns, func(t turn) bool { return t.taken == place })
	if i >= 0 {
		q.turns = slices.Delete(q.turns, i, i+1)
	}
	return i >= 0
}

// serve gives a sandbox to the first in line who waits for its kind. It reports false if
// nobody does.
func (q *queue) serve(kind Kind, c *Conn) bool {
	i := slices.IndexFunc(q.turns, func(t turn) bool { return t.kind == kind })
	if i < 0 {
		return false
	}
	if i == 0 {
		q.served = q.turns[0].rank
	}
	q.turns[i].taken <- taken{conn: c}
	q.turns = slices.Delete(q.turns, i, i+1)
	return true
}

// refuse ends the waiting of all who wait for one of the kinds.
func (q *queue) refuse(err error, kinds ...Kind) {
	q.turns = slices.DeleteFunc(q.turns, func(t turn) bool {
		refused := slices.Contains(kinds, t.kind)
		if refused {
			t.taken <- taken{err: err}
		}
		return refused
	})
}

// lack returns the kinds that those wait for who will get none of the sandboxes that are
// being made, in the order of the line.
func (q *queue) lack(making map[Kind]int) []Kind {
	if len(q.turns) == 0 {
		return nil
	}
	var lack []Kind
	covered := map[Kind]int{}
	for _, t := range q.turns {
		if covered[t.kind]++; covered[t.kind] > making[t.kind] {
			lack = append(lack, t.kind)
		}
	}
	return lack
}

// waiting counts those who wait for a kind.
func (q *queue) waiting(kind Kind) (n int) {
	for _, t := range q.turns {
		if t.kind == kind {
			n++
		}
	}
	return n
}
