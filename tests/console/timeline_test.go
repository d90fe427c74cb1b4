package console

import (
	"testing"

	"fermata/tests/harness"
)

// promises is a program with a contract of outputs and a timeline.
type promises struct {
	start
	Outputs  []any          `json:"outputs"`
	Timeline map[string]any `json:"timeline"`
}

// TestTimeline looks at the outputs of a program that has not produced all of them, and at what a model
// sees of it.
func TestTimeline(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	server.Alice().Post(t, promises{
		start: start{Program: harness.Program{Code: "open('/mnt/data/summary.md', 'w').write('# A <b>summary</b>')"}, Title: "Report"},
		Outputs: []any{
			map[string]any{"path": "summary.md", "mime": "text/markdown"}, "report.xlsx",
		},
		Timeline: map[string]any{"turn_id": "turn_7", "tool_call_id": "abc", "notes": "Now the report"},
	})
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.click("a", "Report", found("h1", "Report")+" !== undefined")
	tb.see(".pill", "Failed")
	tb.read(".end-error", "Missing output files: report.xlsx")
	tb.see(".promised.is-broken .verdict", "Missing")
	tb.see(".promised:not(.is-broken) .verdict", "Produced")
	tb.click("button", "Show the timeline", `document.querySelector(".timeline-panel .columns")?.checkVisibility()`)
	tb.read(".timeline-panel", "[AI Agent say]: Now the report")
	tb.read(".timeline-panel", "[TOOL RESULT abc].summary")
	tb.read(".timeline-panel", "turn_7/files/report.xlsx: file not produced")
	tb.read(".timeline-panel .value", "react.tool.code")
	tb.shoot("timeline")
	tb.clean()
}
