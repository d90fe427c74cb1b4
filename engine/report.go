package engine

import (
	"cmp"

	"fermata/engine/core"
	"fermata/engine/outputs"
)

// report adds the judged outputs and the report to the outcome of an execution that has a contract and has
// ended. If the sandbox could not be asked for the outputs, all of them are missing. output is everything
// that the program has printed, or nil if that is not known.
func report(l *ledger, o *core.Outcome, output *core.Printed) {
	c, err := core.ContractOf(l.record)
	if err != nil || len(c.Outputs) == 0 {
		return // collect has logged the error.
	}
	if o.Outputs == nil {
		o.Outputs = c.Judge(nil)
	}
	end := outputs.End{Status: core.StatusOf(o.State), Reason: string(o.Reason)}
	var added string
	end.Error, added = l.chronicle.wordsOf(*o)
	end.Error = cmp.Or(core.RaisedOf(*o, end.Error), end.Error)
	if c.Log {
		end.Stdout, end.Stderr = o.Stdout, o.Stderr
		if output == nil {
			end.Stdout, end.Stderr = toldOutput(l)
		}
		end.Stderr += added
	}
	o.Report = c.Report(end, o.Outputs)
}
