package timeline

import (
	"cmp"

	"fermata/engine/journal"
	"fermata/engine/outputs"
)

// A result is what one call has come to: that of the program, or an inner one.
type result struct {
	id, tool string
	at       journal.Moment
	// inner is the inner call, nil for that of the program.
	inner *call
	// report is the report on the program: of a contract if contracted is true, else its error alone. printed
	// is what a program without a contract has printed.
	report, printed string
	contracted      bool
	failed          bool
	files           []*artifact
}

// results returns the results so far, in the order of their blocks.
func (b *builder) results() []*result {
	var list []*result
	for _, c := range b.facts.made() {
		list = append(list, b.innerResult(c))
	}
	if b.facts.ended != nil {
		list = append(list, b.programResult())
	}
	return list
}

// innerResult returns the result of an inner call, which may still run.
func (b *builder) innerResult(c *call) *result {
	tool := c.Tool
	if c.Toolset != "" {
		tool = c.Toolset + "." + tool
	}
	r := &result{id: b.names.Call + "." + c.Call, tool: tool, inner: c, failed: c.failed != nil}
	if c.ended != nil {
		r.at = *c.ended
	}
	for _, stored := range c.artifacts {
		r.files = append(r.files, b.handedOver(stored))
	}
	return r
}

// programResult returns the result of the program, which has ended.
func (b *builder) programResult() *result {
	f := b.facts
	r := &result{id: b.names.Call, tool: b.names.Tool, at: f.ended.Time, failed: f.ended.Status != journal.StatusCompleted}
	contract, err := f.contract(b.names)
	if err != nil || len(contract.Outputs) == 0 {
		// What the start has sent was checked when it came.
		r.report, r.printed = outputs.Contract{Turn: b.names.Turn}.Report(f.end(), nil), f.stdout.text()
		if r.report != "" && r.printed != "" {
			r.report += "\n"
		}
		return r
	}
	judged := make([]outputs.Judged, len(f.judged))
	for i, j := range f.judged {
		judged[i] = j.Judged
	}
	r.report, r.contracted = contract.Report(f.end(), judged), true
	for _, o := range contract.Outputs {
		for _, j := range f.judged {
			if j.Path == o.Path && j.Stored() {
				r.files = append(r.files, b.produced(o, j))
			}
		}
	}
	return r
}

// text returns the beginning of what was printed.
func (p *printed) text() string {
	return cut(string(p.head), maxText)
}

// result adds the blocks of a result, and those of its call if it is an inner one.
func (b *builder) result(r *result) {
	if r.inner == nil {
		b.program(r)
		return
	}
	b.add(b.call(r.id, r.tool, b.params(r), r.inner.Time))
	b.notices(r)
	switch {
	case r.inner.ended == nil:
	case r.failed:
		b.failure(r)
	case len(r.files) > 0:
		b.files(r)
	default:
		b.value(r)
	}
}

// program adds the result of the program.
func (b *builder) program(r *result) {
	path, mime, text := b.callPath(r.id, "result"), "text/plain", r.report+r.printed
	if r.contracted {
		mime = "text/markdown"
	}
	b.add(Block{Type: typeResult, Path: path, Call: r.id, Time: r.at, MIME: mime, Text: &text})
	if r.contracted {
		b.render(path, summary(r, cmp.Or(r.report, status(r))))
	} else {
		b.render(path, summary(r, status(r), path), payload(r, path, r.report+quote(r.printed)))
	}
	for _, a := range r.files {
		b.artifact(r, a)
	}
}

// status returns the line of a summary that tells how a call has ended.
func status(r *result) string {
	switch {
	case !r.failed:
		return "status: ok"
	case r.inner == nil:
		return "status: error"
	}
	return "status: error: " + oneLine(cmp.Or(r.inner.failed.Code, noticeOf(r.inner.failed))) + ": " + oneLine(r.inner.failed.Error)
}

// files adds the result of an inner call that has handed files over.
func (b *builder) files(r *result) {
	b.render(b.callPath(r.id, "result"), summary(r, status(r)))
	for _, a := range r.files {
		b.artifact(r, a)
	}
}

// value adds the result of an inner call that has returned a value: a meta block, and the value.
func (b *builder) value(r *result) {
	path := b.callPath(r.id, "result")
	text, mime := valueOf(r.inner.output)
	m := digest{Artifact: path, MIME: mime, Kind: "file", Visibility: internal, Call: r.id}
	if r.inner.cut && r.inner.output == nil {
		m.Omitted = omittedFull
	} else {
		m.count(len(text))
	}
	b.meta(r, m)
	b.render(path, summary(r, status(r), path))
	if m.Omitted == "" {
		b.add(Block{Type: typeResult, Path: path, Call: r.id, Time: r.at, MIME: mime, Text: &text})
		b.render(path, payload(r, path, quote(text)))
	}
}

// failure adds the result of an inner call that has failed: a meta block alone, and one for each of its
// files that is there or could not be stored.
func (b *builder) failure(r *result) {
	path := b.callPath(r.id, "result")
	b.render(path, summary(r, status(r)))
	if len(r.files) == 0 {
		b.meta(r, digest{Artifact: path, MIME: "application/json", Kind: "file", Visibility: internal, Call: r.id, Error: errorOf(r.inner.failed)})
		return
	}
	for _, a := range r.files {
		b.artifact(r, a)
	}
}

// meta adds a meta block and returns its text.
func (b *builder) meta(r *result, m digest) string {
	text := string(encode(m))
	b.add(Block{Type: typeResult, Path: b.callPath(r.id, "result"), Call: r.id, Time: r.at, Text: &text})
	return text
}

// A failure is how blocks tell of an error.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Where   string `json:"where,omitempty"`
	// From and To are the paths that a tool has named, and that its file has got.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// errorOf returns what blocks tell of a call that has failed.
func errorOf(f *journal.CallFailed) *failure {
	return &failure{Code: cmp.Or(f.Code, noticeOf(f)), Message: f.Error, Where: f.Where}
}

// noticeOf returns the code of the notice about a call that has failed.
func noticeOf(f *journal.CallFailed) string {
	if f.Envelope {
		return "tool_result_error"
	}
	return "tool_call_error"
}

// notices adds what is to be noticed of an inner call.
func (b *builder) notices(r *result) {
	for _, a := range r.files {
		if a.asked != "" {
			b.notice(r, a.at, failure{Code: "protocol_violation.path_rewritten", Message: "the path of the file was rewritten", From: a.asked, To: a.physical})
		}
		if a.err != "" {
			b.notice(r, a.at, failure{Code: "react.write.hosting_failed", Message: a.err, To: a.physical})
		}
	}
	if f := r.inner.failed; f != nil {
		b.notice(r, r.at, notice{noticeOf(f), f.Error, f.Code, f.Where})
	}
}

// A notice tells of a call that has failed. Error is the code that the tool has given.
type notice struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Error   string `json:"error_code,omitempty"`
	Where   string `json:"where,omitempty"`
}

func (b *builder) notice(r *result, at journal.Moment, what any) {
	text := string(encode(what))
	b.add(Block{Type: typeNotice, Path: b.callPath(r.id, "notice"), Call: r.id, Time: at, Text: &text})
}

// params returns the parameters of an inner call. Long texts in them are in its file, if it has one.
func (b *builder) params(r *result) rawJSON {
	see := ""
	for _, a := range r.files {
		if a.id != "" && see == "" {
			see = a.logical
		}
	}
	if r.inner.Input == nil && r.inner.cut {
		return encode(truncatedEnd)
	}
	return shorten(r.inner.Input, see)
}
