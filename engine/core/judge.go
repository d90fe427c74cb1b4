package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fermata/continuation"
	"fermata/engine/outputs"
)

// EncodeContract returns a contract of outputs in the form of the record, which leaves out descriptions.
func EncodeContract(c *outputs.Contract) (json.RawMessage, error) {
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

// ContractOf returns the contract of outputs from the record of an execution. If there is none, it returns a
// contract without outputs.
func ContractOf(r continuation.Record) (c outputs.Contract, err error) {
	if len(r.Outputs) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(r.Outputs, &c); err != nil {
		return outputs.Contract{}, fmt.Errorf("read contract of outputs of execution %s: %w", r.ID, err)
	}
	return c, nil
}

// Judge decides what has become of each output of a contract. An execution whose program has completed
// without producing all required outputs fails, unless the contract is lenient.
func Judge(e *Ending, c outputs.Contract) {
	if len(c.Outputs) == 0 {
		return
	}
	e.Judged = c.Judge(e.Found)
	if missing := c.Missing(e.Judged); len(missing) > 0 && e.State == Completed && !c.Lenient {
		e.State, e.Reason, e.Detail, e.Value = Failed, OutputsMissing, strings.Join(missing, ", "), nil
	}
}
