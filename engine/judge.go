package engine

import (
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
