package librechat

import (
	"encoding/json"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
)

// Words tell journals what the answers of this package tell. They implement engine.Words.
type Words struct{}

var _ engine.Words = Words{}

// End implements engine.Words.
func (Words) End(contract string, o core.Outcome) (text, added string) {
	if contract == engine.Exec {
		if exit, err := api.ExitOf(o); err == nil {
			return exit.Message, unsaid(exit, o.Stderr)
		}
	}
	// Only a way to end that the table of endings lacks is an error, and a test finds those.
	reply, _ := api.ReplyTo(o, api.HTTPErrors)
	return reply.Text, ""
}

// File implements engine.Words.
func (Words) File(f core.OutputFile) json.RawMessage {
	entry, err := api.Encode(outputsOf([]core.OutputFile{f}, "")[0])
	if err != nil {
		return json.RawMessage("null") // A struct of plain members can be encoded.
	}
	return entry
}
