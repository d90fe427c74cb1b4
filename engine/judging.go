package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fermata/continuation"
	"fermata/engine/outputs"
)

// encodeContract returns a contract of outputs in the form of the record, which leaves out descriptions.
func encodeContract(c *outputs.Contract) (json.RawMessage, error) {
	if c == nil || len(c.Outputs) == 0 {
		return nil, nil
	}
	kept := *c
	kept.Outputs = slices.Clone(c.Outputs)
	for i := range kept.Outputs {
		kept.Outputs[i].Description = ""
	}
	encoded, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("encode contract of outputs: %w", err)
	}
	return encoded, nil
}

// contractOf returns the contract of outputs from the record of an execution. If there is none, it returns a
// contract without outputs.
func contractOf(r continuation.Record) (c outputs.Contract, err error) {
	if len(r.Outputs) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(r.Outputs, &c); err != nil {
		return outputs.Contract{}, fmt.Errorf("read contract of outputs of execution %s: %w", r.ID, err)
	}
	return c, nil
}

// judge decides what has become of each output of a contract. An execution whose program has completed
// without producing all required outputs fails, unless the contract is lenient.
func judge(e *ending, c outputs.Contract) {
	if len(c.Outputs) == 0 {
		return
	}
	e.judged = c.Judge(e.found)
	if missing := c.Missing(e.judged); len(missing) > 0 && e.state == Completed && !c.Lenient {
		e.state, e.reason, e.detail, e.value = Failed, OutputsMissing, strings.Join(missing, ", "), nil
	}
}

// report adds the judged outputs and the report to the outcome of an execution that has a contract and has
// ended. If the sandbox could not be asked for the outputs, all of them are missing. output is everything
// that the program has printed, or nil if that is not known. The caller holds mu.
func (l *ledger) report(o *Outcome, output *printed) {
	c, err := contractOf(l.record)
	if err != nil || len(c.Outputs) == 0 {
		return // collect has logged the error.
	}
	if o.Outputs == nil {
		o.Outputs = c.Judge(nil)
	}
	end := outputs.End{Status: statusOf(o.State), Reason: string(o.Reason)}
	var added string
	end.Error, added = l.chronicle.wordsOf(*o)
	end.Error = cmp.Or(raisedOf(*o, end.Error), end.Error)
	if c.Log {
		end.Stdout, end.Stderr = o.Stdout, o.Stderr
		if output == nil {
			end.Stdout, end.Stderr = l.chronicle.told(l.o.Store)
		}
		end.Stderr += added
	}
	o.Report = c.Report(end, o.Outputs)
}
