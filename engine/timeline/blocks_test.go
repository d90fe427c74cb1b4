package timeline_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"fermata/engine/timeline"
)

const (
	startCode = `react.tool.code fi:turn_1.code.abc text/x-python print(1)`
	startCall = `react.tool.call tc:turn_1.abc.call {"tool_id":"exec_tools.execute_code_python","tool_call_id":"abc","params":{"code":"print(1)"},"ts":"2026-11-27T05:00:01.000Z"}`
	pdf       = "%PDF-1.4 /Type /Page "
	pdf64     = "JVBERi0xLjQgL1R5cGUgL1BhZ2Ug"
)

// contractCall is the call of a program with a contract.
func contractCall(outputs string) string {
	return strings.Replace(startCall, `"print(1)"`, `"print(1)","outputs":`+outputs, 1)
}

// metaOf is the meta block of an output.
func metaOf(name, mime, rest string) string {
	return `react.tool.result tc:turn_1.abc.result {"artifact_path":"fi:turn_1.files/` + name + `","physical_path":"turn_1/files/` + name +
		`","mime":"` + mime + `","kind":"file","visibility":"external","tool_call_id":"abc",` + rest + `}`
}

func reportOf(text string) string {
	return "react.tool.result tc:turn_1.abc.result text/markdown " + text
}

// TestExample1 is the first example of the document "Tool Call Blocks": a program leaves a PDF, a text and a
// table; see docs/timeline.md.
func TestExample1(t *testing.T) {
	t.Parallel()
	const outputs = `["report.pdf","notes.txt","data.xlsx"]`
	h := begun(`,"outputs":`+outputs).
		produced("report.pdf", "application/pdf", pdf).
		produced("notes.txt", "text/plain", "hello").
		produced("data.xlsx", "application/vnd.ms-excel", "PK").completed()
	h.names.Notes = "Making a report"
	made := h.build(t, timeline.Options{})
	same(t, lines(made),
		"react.notes ar:turn_1.react.notes.abc Making a report",
		startCode, contractCall(outputs),
		reportOf("Succeeded:\n- turn_1/files/report.pdf\n- turn_1/files/notes.txt\n- turn_1/files/data.xlsx"),
		metaOf("report.pdf", "application/pdf", `"size_bytes":21`),
		"react.tool.result fi:turn_1.files/report.pdf application/pdf base64:"+pdf64,
		metaOf("notes.txt", "text/plain", `"size_bytes":5,"tokens":2,"tokens_estimated":true`),
		"react.tool.result fi:turn_1.files/notes.txt text/plain hello",
		metaOf("data.xlsx", "application/vnd.ms-excel", `"size_bytes":2`),
		"react.tool.result fi:turn_1.files/data.xlsx application/vnd.ms-excel",
	)
	if notes := made.Blocks[0]; notes.Meta.Channel != "timeline_text" {
		t.Errorf("the notes have the channel %q", notes.Meta.Channel)
	}
	for i, b := range made.Blocks {
		if b.Turn != "turn_1" || b.Call != "abc" {
			t.Errorf("block %d belongs to the turn %q and the call %q", i, b.Turn, b.Call)
		}
	}
	content := made.Blocks[5]
	want := timeline.Meta{
		Digest: *made.Blocks[4].Text, Hosted: "/download/S/id-report.pdf", Resource: "fermata:S:id-report.pdf",
		Key: "S/id-report.pdf", Physical: "turn_1/files/report.pdf",
	}
	if *content.Meta != want {
		t.Errorf("got %+v, want %+v", *content.Meta, want)
	}
	same(t, parts(made),
		"[AI Agent say]: Making a report",
		"[TOOL RESULT abc].summary exec_tools.execute_code_python\nSucceeded:\n- turn_1/files/report.pdf\n- turn_1/files/notes.txt\n- turn_1/files/data.xlsx\n"+
			"- fi:turn_1.files/report.pdf\n- fi:turn_1.files/notes.txt\n- fi:turn_1.files/data.xlsx",
		describedAs("report.pdf", "application/pdf", `"size_bytes":21`),
		"document application/pdf "+pdf64,
		describedAs("notes.txt", "text/plain", `"size_bytes":5,"tokens":2,"tokens_estimated":true`),
		"hello",
		describedAs("data.xlsx", "application/vnd.ms-excel", `"size_bytes":2`),
	)
}

// describedAs returns the part that describes an output.
func describedAs(name, mime, rest string) string {
	return "[TOOL RESULT abc].artifact exec_tools.execute_code_python\nfi:turn_1.files/" + name + "\nturn_1/files/" + name +
		"\n" + `{"artifact_path":"fi:turn_1.files/` + name + `","mime":"` + mime + `","kind":"file","visibility":"external","tool_call_id":"abc",` + rest + `}`
}

// TestCases has the cases A, B and C of the document "Tool Call Blocks".
func TestCases(t *testing.T) {
	t.Parallel()
	const outputs = `["summary.pdf","report.xlsx"]`
	summary := []string{
		metaOf("summary.pdf", "application/pdf", `"size_bytes":21`),
		"react.tool.result fi:turn_1.files/summary.pdf application/pdf base64:" + pdf64,
	}
	t.Run("A: all files, and an error", func(t *testing.T) {
		t.Parallel()
		h := begun(`,"outputs":["summary.pdf"]`).produced("summary.pdf", "application/pdf", pdf).raised("ValueError: no\nmore")
		same(t, lines(h.build(t, timeline.Options{})), append([]string{
			startCode, contractCall(`["summary.pdf"]`),
			reportOf("Runtime error: execution_failed — ValueError: no\nSucceeded:\n- turn_1/files/summary.pdf"),
		}, summary...)...)
	})
	t.Run("B: a part of the files", func(t *testing.T) {
		t.Parallel()
		h := begun(`,"outputs":`+outputs).produced("summary.pdf", "application/pdf", pdf).missing("report.xlsx").
			add("execution.ended", `"status":"error","reason":"outputs_missing","error":"Missing output files: report.xlsx"`)
		made := h.build(t, timeline.Options{})
		same(t, lines(made), append([]string{
			startCode, contractCall(outputs),
			reportOf("Runtime error: execution_failed — Missing output files: turn_1/files/report.xlsx\nFile errors:\n- turn_1/files/report.xlsx: file not produced\n" +
				"Succeeded:\n- turn_1/files/summary.pdf"),
		}, summary...)...)
		// The block of the report has the members of the one in the document.
		shaped(t, made.Blocks[2], `{"type":"react.tool.result","path":"tc:turn_1.abc.result","mime":"text/markdown",`+
			`"text":"Runtime error: execution_failed — Missing output files: turn_1/files/report.xlsx\nFile errors:\n- turn_1/files/report.xlsx: file not produced\nSucceeded:\n- turn_1/files/summary.pdf"}`)
	})
	t.Run("C: a part of the files, and an error", func(t *testing.T) {
		t.Parallel()
		h := begun(`,"outputs":`+outputs).produced("summary.pdf", "application/pdf", pdf).missing("report.xlsx").raised("ValueError: no")
		same(t, lines(h.build(t, timeline.Options{})), append([]string{
			startCode, contractCall(outputs),
			reportOf("Runtime error: execution_failed — ValueError: no; Missing output files: turn_1/files/report.xlsx\nFile errors:\n" +
				"- turn_1/files/report.xlsx: file not produced\nSucceeded:\n- turn_1/files/summary.pdf"),
		}, summary...)...)
	})
}

// TestWithoutContract has one text as the result of the program.
func TestWithoutContract(t *testing.T) {
	t.Parallel()
	t.Run("completed", func(t *testing.T) {
		t.Parallel()
		made := begun("").add("output", `"stream":"stdout","offset":0,"text":"one\n"`).add("output", `"stream":"stderr","offset":0,"text":"no"`).
			add("output", `"stream":"stdout","offset":4,"text":"two"`).completed().build(t, timeline.Options{})
		same(t, lines(made), startCode, startCall, "react.tool.result tc:turn_1.abc.result text/plain one\ntwo")
		same(t, parts(made),
			"[TOOL RESULT abc].summary exec_tools.execute_code_python\nstatus: ok\n- tc:turn_1.abc.result",
			"[TOOL RESULT abc].result exec_tools.execute_code_python\ntc:turn_1.abc.result\none\ntwo")
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		made := begun("").add("output", `"stream":"stdout","offset":0,"text":"one"`).raised("ValueError: no").build(t, timeline.Options{})
		same(t, lines(made), startCode, startCall,
			"react.tool.result tc:turn_1.abc.result text/plain Runtime error: execution_failed — ValueError: no\none")
	})
	t.Run("much output", func(t *testing.T) {
		t.Parallel()
		made := begun("").add("output", `"stream":"stdout","offset":0,"text":"`+strings.Repeat("é", 20_000)+`"`).completed().build(t, timeline.Options{})
		if got := *made.Blocks[2].Text; got != strings.Repeat("é", 10_240)+"...[truncated]" {
			t.Errorf("got %d bytes", len(got))
		}
	})
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		same(t, lines(begun("").build(t, timeline.Options{})), startCode, startCall)
	})
}

// TestNames gives blocks other names, and reads paths that begin with the directory of the turn.
func TestNames(t *testing.T) {
	t.Parallel()
	h := begun(`,"outputs":["t.7/files/a.txt"],"timeline":{"turn_id":"t.7"}`).produced("t.7/files/a.txt", "text/plain", "A").completed()
	h.names = timeline.Names{Turn: "t.7", Call: "toolu_1", Tool: "run"}
	got := strings.Join(lines(h.build(t, timeline.Options{})), "\n")
	for _, want := range []string{
		"fi:t.7.code.toolu_1", "tc:t.7.toolu_1.call", `"tool_id":"run","tool_call_id":"toolu_1"`, "- t.7/files/a.txt", "fi:t.7.files/a.txt text/plain A",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

// Long code is shortened in the block of the call, and whole in its own block.
func TestLongCode(t *testing.T) {
	t.Parallel()
	code := strings.Repeat("ä", 101)
	h := begun("")
	h.events[0].Content = bytes.Replace(h.events[0].Content, []byte("print(1)"), []byte(code), 1)
	made := h.build(t, timeline.Options{})
	if got := *made.Blocks[0].Text; got != code {
		t.Errorf("got the code %q", got)
	}
	if want := `"params":{"code":"` + strings.Repeat("ä", 100) + `... [see fi:turn_1.code.abc]"}`; !strings.Contains(*made.Blocks[1].Text, want) {
		t.Errorf("got %s, want %s", *made.Blocks[1].Text, want)
	}
	h.events[0].Content = bytes.Replace(h.events[0].Content, []byte(`"`+code+`"`), []byte(`{"truncated":true,"bytes":300000,"head":"print(1"}`), 1)
	if got := *h.build(t, timeline.Options{}).Blocks[0].Text; got != "print(1...[truncated]" {
		t.Errorf("got the code %q", got)
	}
}

// TestWrite writes a timeline as JSON, twice the same.
func TestWrite(t *testing.T) {
	t.Parallel()
	h := begun(`,"outputs":["a.pdf","b.png"]`).produced("a.pdf", "application/pdf", pdf).
		produced("b.png", "image/png", "\x89PNG\r\n\x1a\n<&>").completed()
	var all [2]bytes.Buffer
	for i := range all {
		if err := h.build(t, timeline.Options{}).Write(&all[i], timeline.View{Blocks: true, Rendered: true, Missing: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if all[0].String() != all[1].String() {
		t.Error("two timelines of one history differ")
	}
	var got struct {
		Blocks   []map[string]any `json:"blocks"`
		Rendered []struct {
			Type   string            `json:"type"`
			Text   string            `json:"text"`
			Source map[string]string `json:"source"`
		} `json:"rendered"`
		Missing []string `json:"missing"`
	}
	if err := json.Unmarshal(all[0].Bytes(), &got); err != nil {
		t.Fatal(err, all[0].String())
	}
	if b := got.Blocks[4]; b["base64"] != pdf64 || b["ts"] != "2026-11-27T05:00:02.000Z" {
		t.Errorf("got the block %v", b)
	}
	for i, want := range map[int]string{2: "application/pdf", 4: "image/png"} {
		if s := got.Rendered[i].Source; s["type"] != "base64" || s["media_type"] != want || s["data"] == "" {
			t.Errorf("got the part %v", got.Rendered[i])
		}
	}
	if len(got.Missing) != 1 || got.Rendered[2].Type != "document" || got.Rendered[4].Type != "image" {
		t.Errorf("got %v", got)
	}
}

// TestPaths returns the blocks with exactly these paths.
func TestPaths(t *testing.T) {
	t.Parallel()
	h := begun(`,"outputs":["a.pdf","b.txt"]`).produced("a.pdf", "application/pdf", pdf).produced("b.txt", "text/plain", "B").completed()
	h.names.Notes = "so"
	paths := []string{"fi:turn_1.files/b.txt", "fi:../b.txt", "tc:turn_1.abc", "ar:turn_1.react.notes.abc", "fi:../b.txt"}
	made := h.build(t, timeline.Options{Paths: paths, Mute: true})
	same(t, lines(made), "react.notes ar:turn_1.react.notes.abc so", "react.tool.result fi:turn_1.files/b.txt text/plain B")
	same(t, made.Missing(paths), "fi:../b.txt", "tc:turn_1.abc")
	same(t, parts(made), describedAs("b.txt", "text/plain", `"size_bytes":1,"tokens":1,"tokens_estimated":true`), "B")
	if h.files.read != 1 {
		t.Errorf("%d bytes were read of files, want those of the one that was asked for", h.files.read)
	}
}
