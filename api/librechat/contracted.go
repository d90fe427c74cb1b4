package librechat

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/outputs"
	"fermata/engine/timeline"
)

// Starts that are refused for what they say of outputs and of the timeline.
var (
	errOnMissing   = api.BadRequest(`on_missing must be "error" or "report"`)
	errTimeline    = api.BadRequestf("timeline must have at most %d bytes", maxTimeline)
	errNoTimelines = api.BadRequest("timeline needs journals that keep everything: this server's FERMATA_JOURNAL is not full")
)

// A contracted is what a start says of the files that its program must produce, and of its timeline.
type contracted struct {
	// outputs is nil if the program has to produce nothing.
	outputs *outputs.Contract
	// sent and timeline are the members as the request has them.
	sent, timeline json.RawMessage
	// include is true if the answer is to carry the timeline.
	include bool
}

// contractedOf reads what a start says of outputs and of its timeline.
func (p *programs) contractedOf(r request, mode engine.Mode) (c contracted, err error) {
	lenient, err := onMissing(r.Missing)
	if err != nil {
		return c, err
	}
	if !isNull(r.Timeline) {
		if len(r.Timeline) > maxTimeline {
			return c, errTimeline
		}
		c.timeline = json.RawMessage(r.Timeline)
	}
	names, err := timeline.ParseNames(c.timeline, mode == engine.Bash)
	if err != nil {
		return c, err
	}
	if c.timeline != nil && p.noTimelines {
		return c, errNoTimelines
	}
	c.include = names.Include
	list, err := outputs.Parse(json.RawMessage(r.Outputs), names.Turn)
	if err != nil {
		return c, err
	}
	if len(list) > 0 {
		c.outputs = &outputs.Contract{Outputs: list, Turn: names.Turn, Lenient: lenient, Log: names.Log}
		c.sent = json.RawMessage(r.Outputs)
	}
	return c, nil
}

// onMissing reports whether a program keeps its status that has not produced everything.
func onMissing(value jsontext.Value) (lenient bool, err error) {
	if isNull(value) {
		return false, nil
	}
	switch text, _ := unquote(value); text {
	case "error":
		return false, nil
	case "report":
		return true, nil
	}
	return false, errOnMissing
}

// A verdict tells what has become of the files that the program had to produce. It is empty if there
// were none.
type verdict struct {
	Outputs []outputs.Judged `json:"outputs,omitempty"`
	// Report tells the same as a text, which may be empty.
	Report *string `json:"report,omitzero"`
}

func verdictOf(outcome core.Outcome) (v verdict) {
	if v.Outputs = outcome.Outputs; len(v.Outputs) > 0 {
		v.Report = &outcome.Report
	}
	return v
}
