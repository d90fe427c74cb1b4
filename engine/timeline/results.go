package timeline

import (
	"cmp"

	"fermata/engine/journal"
	"fermata/engine/outputs"
)

// A result is the result of one call: of the call that runs the program, or of an inner call.
type result struct {
	id, tool string
	at       journal.Moment
	// inner is the inner call, or nil for the call that runs the program.
	inner *call
	// report is the report about the program: that of its contract if contracted is true, otherwise only its
	// error. printed is what a program without a contract has printed.
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

// innerResult returns the result of an inner call. The call may still run.
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
		// The members of the start were checked when it arrived.
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
	return outputs.Cut(string(p.head), maxText)
}

// result adds the blocks of a result. Before the result of an inner call it adds the block of the call.
func (b *builder) result(r *result) {
	if r.inner == nil {
		b.program(r)
		return
	}
	b.add(b.call(r.id, r.tool, paramsOf(r), r.inner.Time))
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
	metaOf(b, r, m)
	b.render(path, summary(r, status(r), path))
	if m.Omitted == "" {
		b.add(Block{Type: typeResult, Path: path, Call: r.id, Time: r.at, MIME: mime, Text: &text})
		b.render(path, payload(r, path, quote(text)))
	}
}

// failure adds the result of an inner call that has failed: the blocks of each of its files, stored or not,
// or one meta block with the error if it has no files.
func (b *builder) failure(r *result) {
	path := b.callPath(r.id, "result")
	b.render(path, summary(r, status(r)))
	if len(r.files) == 0 {
		metaOf(b, r, digest{Artifact: path, MIME: "application/json", Kind: "file", Visibility: internal, Call: r.id, Error: errorOf(r.inner.failed)})
		return
	}
	for _, a := range r.files {
		b.artifact(r, a)
	}
}

// metaOf adds a meta block and returns its text.
func metaOf(b *builder, r *result, m digest) string {
	text := string(encode(m))
	b.add(Block{Type: typeResult, Path: b.callPath(r.id, "result"), Call: r.id, Time: r.at, Text: &text})
	return text
}

// A failure is the form of an error in blocks.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Where   string `json:"where,omitempty"`
	// From is the path that a tool has named, and To the path that its file has got.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// errorOf returns the error of a call that has failed, in the form of blocks.
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

// notices adds the notices about an inner call.
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

// A notice is the block about a call that has failed. Error is the error code that the tool has given.
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

// paramsOf returns the parameters of an inner call. A long text in them is shortened, and refers to the file
// of the call if it has one.
func paramsOf(r *result) rawJSON {
	see := ""
	for _, a := range r.files {
		if a.id != "" && see == "" {
			see = a.logical
		}
	}
	if r.inner.Input == nil && r.inner.cut {
		return encode(outputs.CutEnd)
	}
	return shorten(r.inner.Input, see)
}
