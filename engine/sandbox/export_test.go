package sandbox

// What tests of the pool know of it.
const (
	CalmTime    = calmTime
	StartTime   = startTime
	RetryDelay  = retryDelay
	MakeTimeout = makeTimeout
	Makers      = makers
)

// ComeTooLate has a sandbox come in the moment its request gives up.
func (p *Pool) ComeTooLate(kind Kind, c *Conn) {
	place := make(chan taken, 1)
	place <- taken{conn: c}
	p.leave(kind, place)
}
