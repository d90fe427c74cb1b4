package api

import (
	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine"
)

// encodeOutput writes a file that is in a workspace in the end.
func encodeOutput(f engine.OutputFile) []byte {
	var o object
	o.text("id", f.ID)
	o.text("name", f.Name)
	o.text("session_id", f.Session)
	o.text("storage_session_id", f.Session)
	switch {
	case f.Inherited:
		o.bool("inherited", true)
		o.text("kind", f.Input.Kind)
		o.text("resource_id", f.Input.Resource)
		if f.Input.Kind == "skill" {
			o.number("version", int64(f.Input.Version))
		}
	case f.Input != nil:
		var from object
		from.text("id", f.Input.ID)
		from.text("storage_session_id", f.Input.Session)
		o.raw("modified_from", from.end())
	}
	return o.end()
}

// leftovers adds what else is to be said of the files of an execution, if anything is.
func (o *object) leftovers(outcome engine.Outcome) {
	if len(outcome.Deleted) > 0 {
		o.raw("deleted_files", encodeList(outcome.Deleted, encodeText))
	}
	if outcome.Undelivered > 0 {
		o.raw("artifact_delivery", encodeDelivery(outcome))
	}
	if outcome.Skipped.Count() > 0 {
		o.raw("artifact_truncation", encodeTruncation(outcome.Skipped))
	}
}

// encodeDelivery tells that new files could not be kept.
func encodeDelivery(outcome engine.Outcome) []byte {
	delivered := 0
	for _, f := range outcome.Files {
		if !f.Inherited {
			delivered++
		}
	}
	status := "failed"
	if delivered > 0 {
		status = "partial"
	}
	var o object
	o.text("code", "artifact_delivery_failed")
	o.text("status", status)
	o.number("attempted", int64(delivered+outcome.Undelivered))
	o.number("delivered", int64(delivered))
	o.number("failed", int64(outcome.Undelivered))
	return o.end()
}

// encodeTruncation tells of files that were left out.
func encodeTruncation(skipped engine.Skipped) []byte {
	var o, reasons object
	for _, reason := range engine.SkipReasons {
		reasons.number(reason, int64(skipped.Reasons[reason]))
	}
	o.text("code", "artifact_truncated")
	o.raw("reasons", reasons.end())
	o.raw("skipped", encodeList(skipped.Names, encodeText))
	o.number("skipped_count", int64(skipped.Count()))
	return o.end()
}

func encodeText(text string) []byte {
	// The only error is about bytes that are no UTF-8, which it has replaced.
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}
