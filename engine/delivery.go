package engine

import (
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// A delivery is what sets a program going: the program itself, or the results of its calls. The
// zero value is for a program that runs already.
type delivery struct {
	program *sandbox.Program
	results []sandbox.Result // not nil, even if there are none
	// handed are those of the results that hand files over.
	handed []core.Handing
}

// to sends the delivery to a sandbox.
func (d delivery) to(c *sandbox.Conn) error {
	switch {
	case d.program != nil:
		return c.Run(*d.program)
	case d.results != nil:
		return c.Resume(d.results)
	}
	return nil
}
