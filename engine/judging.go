package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fermata/continuation"
	"fermata/engine/outputs"
)

// encodeContract returns a contract of outputs in the form in which the record keeps it. What is meant
// for people stays out.
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

// contractOf returns the contract of outputs in the record of an execution. It has no outputs if there
// is none.
func contractOf(r continuation.Record) (c outputs.Contract, err error) {
	if len(r.Outputs) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(r.Outputs, &c); err != nil {
		return outputs.Contract{}, fmt.Errorf("read contract of outputs of execution %s: %w", r.ID, err)
	}
	return c, nil
}

// judge decides what has become of each output of a contract. A program that has ended well and has not
// produced all that it must has failed, unless the contract is lenient.
func judge(e *ending, c outputs.Contract) {
	if len(c.Outputs) == 0 {
		return
	}
	e.judged = c.Judge(e.found)
	if missing := c.Missing(e.judged); len(missing) > 0 && e.state == Completed && !c.Lenient {
		e.state, e.reason, e.detail, e.value = Failed, OutputsMissing, strings.Join(missing, ", "), nil
	}
}

// report completes the outcome of an execution that has ended with what its contract of outputs says.
// Nothing is there of the outputs of an execution whose sandbox could not be asked. output is all that
// the program has printed, nil if that is not known. mu is held.
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
	if c.Log {
		end.Stdout, end.Stderr = o.Stdout, o.Stderr
		if output == nil {
			end.Stdout, end.Stderr = l.chronicle.told(l.o.Store)
		}
		end.Stderr += added
	}
	o.Report = c.Report(end, o.Outputs)
}
