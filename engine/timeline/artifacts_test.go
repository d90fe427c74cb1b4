package timeline_test

import (
	"strings"
	"testing"

	"fermata/engine/timeline"
)

// TestWritingTools has the examples of the document "Tool Call Blocks" in which tools write files; see
// docs/timeline.md.
func TestWritingTools(t *testing.T) {
	t.Parallel()
	t.Run("a text", func(t *testing.T) {
		t.Parallel()
		text := "# Report\n" + strings.Repeat("x", 200)
		made := begun("").called("call_001", "react.write", `{"path":"report.md","content":"# Report\n`+strings.Repeat("x", 200)+`"}`).
			handedOver("call_001", "turn_1/files/report.md", "text/markdown", text).returned("call_001", `{"artifact":{"path":"report.md"}}`).build(t, timeline.Options{})
		if len(made.Blocks) != 5 {
			t.Fatalf("got %s", lines(made))
		}
		shaped(t, made.Blocks[2], `{"type":"react.tool.call","path":"tc:turn_1.abc.call_001.call","text":"{\"tool_id\":\"react.write\",\"tool_call_id\":\"abc.call_001\"}"}`)
		if want := `"content":"# Report\n` + strings.Repeat("x", 91) + `... [see fi:turn_1.files/report.md]"`; !strings.Contains(*made.Blocks[2].Text, want) {
			t.Errorf("got %s, want %s", *made.Blocks[2].Text, want)
		}
		shaped(t, made.Blocks[3], `{"type":"react.tool.result","path":"tc:turn_1.abc.call_001.result","text":"{\"artifact_path\":\"fi:turn_1.files/report.md\",`+
			`\"physical_path\":\"turn_1/files/report.md\",\"kind\":\"display\",\"visibility\":\"external\",\"tokens\":53,\"size_bytes\":209}"}`)
		shaped(t, made.Blocks[4], `{"type":"react.tool.result","path":"fi:turn_1.files/report.md","mime":"text/markdown"}`)
		if *made.Blocks[4].Text != text {
			t.Errorf("got %q", *made.Blocks[4].Text)
		}
	})
	t.Run("a PDF", func(t *testing.T) {
		t.Parallel()
		made := begun("").called("call_001", "rendering_tools.write_pdf", `{"path":"report.pdf"}`).
			handedOver("call_001", "report.pdf", "application/pdf", pdf).returned("call_001", `{}`).build(t, timeline.Options{})
		shaped(t, made.Blocks[3], `{"type":"react.tool.result","path":"tc:turn_1.abc.call_001.result","text":"{\"artifact_path\":\"fi:turn_1.files/report.pdf\",`+
			`\"physical_path\":\"turn_1/files/report.pdf\",\"mime\":\"application/pdf\",\"kind\":\"file\",\"visibility\":\"external\"}"}`)
		shaped(t, made.Blocks[4], `{"type":"react.tool.result","path":"fi:turn_1.files/report.pdf","mime":"application/pdf","base64":"`+pdf64+`"}`)
		same(t, parts(made),
			"[TOOL RESULT abc.call_001].summary rendering_tools.write_pdf\nstatus: ok\n- fi:turn_1.files/report.pdf",
			"[TOOL RESULT abc.call_001].artifact rendering_tools.write_pdf\nfi:turn_1.files/report.pdf\nturn_1/files/report.pdf\n"+
				`{"artifact_path":"fi:turn_1.files/report.pdf","mime":"application/pdf","kind":"file","visibility":"external","tool_call_id":"abc.call_001","size_bytes":21}`,
			"document application/pdf "+pdf64)
	})
	t.Run("slides have no content", func(t *testing.T) {
		t.Parallel()
		made := begun("").called("call_001", "rendering_tools.write_pptx", `{}`).
			handedOver("call_001", "a.pptx", "application/vnd.ms-powerpoint", "PK"+strings.Repeat("x", 20)).returned("call_001", `{}`).build(t, timeline.Options{})
		if len(made.Blocks) != 4 || len(made.Rendered) != 2 {
			t.Errorf("got %s", lines(made))
		}
	})
	t.Run("the path of slides", func(t *testing.T) {
		t.Parallel()
		asked := []string{"fi:turn_1.files/a.pptx"}
		made := begun("").called("call_001", "rendering_tools.write_pptx", `{}`).
			handedOver("call_001", "a.pptx", "application/vnd.ms-powerpoint", "PK"+strings.Repeat("x", 20)).returned("call_001", `{}`).build(t, timeline.Options{Paths: asked})
		if len(made.Blocks) != 1 || made.Blocks[0].Path != asked[0] || made.Blocks[0].Data != nil || made.Blocks[0].Meta.Hosted == "" || len(made.Missing(asked)) > 0 {
			t.Errorf("got %s, want one block that tells where the file is", lines(made))
		}
	})
	t.Run("the path in a namespace", func(t *testing.T) {
		t.Parallel()
		asked := []string{"fi:turn_1.files/a.pptx", "conv:tc:turn_1.abc.call"}
		made := begun("").called("call_001", "rendering_tools.write_pptx", `{}`).
			handedOver("call_001", "a.pptx", "application/vnd.ms-powerpoint", "PK"+strings.Repeat("x", 20)).returned("call_001", `{}`).
			build(t, timeline.Options{Paths: asked, Namespace: timeline.Conversation})
		if len(made.Blocks) != 2 || made.Blocks[0].Path != "conv:tc:turn_1.abc.call" || made.Blocks[1].Path != "conv:fi:turn_1.files/a.pptx" || len(made.Missing(asked)) > 0 {
			t.Errorf("got %s, want both blocks with paths of the namespace", lines(made))
		}
	})
}

// TestNotices checks the notices about files.
func TestNotices(t *testing.T) {
	t.Parallel()
	made := begun("").called("call_001", "w", `{"path":"../x","content":"abc"}`).
		add("artifact.stored", `"call":"call_001","path":"x","asked":"../x","error":"the quota is full"`).
		add("call.failed", `"call":"call_001","record":"ptc:1","error":"the file could not be stored","took_ms":1`).build(t, timeline.Options{})
	same(t, lines(made)[3:],
		`react.notice tc:turn_1.abc.call_001.notice {"code":"protocol_violation.path_rewritten","message":"the path of the file was rewritten","from":"../x","to":"turn_1/files/x"}`,
		`react.notice tc:turn_1.abc.call_001.notice {"code":"react.write.hosting_failed","message":"the quota is full","to":"turn_1/files/x"}`,
		`react.notice tc:turn_1.abc.call_001.notice {"code":"tool_call_error","message":"the file could not be stored"}`,
		`react.tool.result tc:turn_1.abc.call_001.result {"artifact_path":"fi:turn_1.files/x","physical_path":"turn_1/files/x","kind":"file","visibility":"external",`+
			`"tool_call_id":"abc.call_001","error":{"code":"react.write.hosting_failed","message":"the quota is full"}}`,
	)
}

// A file has one path, whether it is an output or a tool has handed it over, also if the request for the
// timeline names another turn than the start.
func TestPathsInTheDirectoryOfTheTurn(t *testing.T) {
	t.Parallel()
	h := begun(`,"outputs":["turn_1/files/a.txt"]`).called("call_001", "w", `{}`).handedOver("call_001", "turn_1/files/a.txt", "text/plain", "A").
		returned("call_001", `{}`).produced("turn_1/files/a.txt", "text/plain", "A").completed()
	h.names.Turn = "turn_7"
	n := 0
	for _, b := range h.build(t, timeline.Options{}).Blocks {
		if b.Path == "fi:turn_7.files/a.txt" && b.Meta.Physical == "turn_7/files/a.txt" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d blocks have the content of the file under its path, want 2", n)
	}
}

// TestWarnings checks the warnings about files that were stored and look wrong.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"%PDF":                            "the file is unusually small",
		"%PDF-1.4 /Type /Pages /Kids []":  "the PDF has no pages",
		"%PDF-1.4 /Type /Page /Kids []":   "",
		"%PDF-1.7 /Type /ObjStm packed..": "",
	} {
		made := begun("").called("call_001", "w", `{}`).handedOver("call_001", "a.pdf", "application/pdf", content).returned("call_001", `{}`).build(t, timeline.Options{})
		got := lines(made)[3]
		if strings.Contains(got, "write_warning") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", content, got, want)
		}
	}
	h := begun(`,"outputs":[{"path":"a.txt","min_bytes":9}]`)
	h.files.files["1"] = "short"
	h.add("output.judged", `"output":{"path":"a.txt","state":"too_small","id":"1","size":5,"mime":"text/plain"}`).completed()
	if got := lines(h.build(t, timeline.Options{})); !strings.Contains(got[3], `"write_warning":"the file is smaller than min_bytes"`) || !strings.HasSuffix(got[4], " short") {
		t.Errorf("got %s", got)
	}
}

// TestContents has contents that are truncated, and others that are left out for a reason.
func TestContents(t *testing.T) {
	t.Parallel()
	large := pdf + strings.Repeat("x", timeline.MaxFile)
	for _, test := range []struct {
		name, mime, content string
		no64, deleted       bool
		want                string // the end of the content block, or the reason why there is none
	}{
		{name: "a text", mime: "application/json; charset=utf-8", content: `{"a":1}`, want: ` {"a":1}`},
		{name: "the longest text", mime: "text/plain", content: strings.Repeat("x", 20_480), want: strings.Repeat("x", 20_480)},
		{name: "a text that is none", mime: "text/plain", content: "\x7fELF\xff\x00\x00", want: "not_what_it_claims"},
		{name: "a text in UTF-16", mime: "text/plain", content: "h\x00i\x00", want: "not_what_it_claims"},
		{name: "a text with a NUL", mime: "text/plain", content: strings.Repeat("long ", 10) + "\x00!", want: "\x00!"},
		{name: "a longer text", mime: "text/plain", content: strings.Repeat("x", 20_481), want: strings.Repeat("x", 20_480) + "...[truncated]"},
		{name: "a text that is cut at a character", mime: "text/plain", content: "x" + strings.Repeat("é", 10_240), want: strings.Repeat("é", 10_239) + "...[truncated]"},
		{name: "a text that is no UTF-8", mime: "text/plain", content: "a\xffb", want: " a\uFFFDb"},
		{name: "SVG", mime: "image/svg+xml", content: `<svg/>`, want: ` <svg/>`},
		{name: "SVG that claims to be PNG", mime: "image/png", content: `<svg/>`, want: "not_what_it_claims"},
		{name: "JPEG that claims to be PNG", mime: "image/png", content: "\xff\xd8\xff", want: "not_what_it_claims"},
		{name: "an image of an unknown kind", mime: "image/x-odd", content: "odd", want: "not_what_it_claims"},
		{name: "a page that claims to be PDF", mime: "application/pdf", content: "<html>%PDF-", want: "not_what_it_claims"},
		{name: "no base64", mime: "application/pdf", content: pdf, no64: true, want: "base64_off"},
		{name: "a text without base64", mime: "text/plain", content: "x", no64: true, want: " x"},
		{name: "a large PDF", mime: "application/pdf", content: large, want: "too_large"},
		{name: "a deleted text", mime: "text/plain", content: "x", deleted: true, want: "deleted"},
		{name: "a deleted table", mime: "application/zip", content: "x", deleted: true, want: "deleted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := begun(`,"outputs":["a"]`).produced("a", test.mime, test.content).completed()
			if test.deleted {
				clear(h.files.files)
			}
			h.names.NoBase64 = test.no64
			made := h.build(t, timeline.Options{})
			got := lines(made)
			if last := got[len(got)-1]; len(got) == 5 && !strings.HasSuffix(last, test.want) {
				t.Errorf("got the content %.200s, want %.200s", last, test.want)
			} else if len(got) == 4 && (!strings.Contains(last, `"content_omitted":"`+test.want+`"`) || len(made.Rendered) != 2 || h.files.read > 100) {
				t.Errorf("got %s, %d parts, read %d bytes; want %s", last, len(made.Rendered), h.files.read, test.want)
			}
		})
	}
}

// TestFullTimeline has files of more than 20 MiB, of which no more than 20 MiB are read.
func TestFullTimeline(t *testing.T) {
	t.Parallel()
	h := begun(`,"outputs":["a","b","c","d","e","f"]`)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		h.produced(name, "application/pdf", pdf+strings.Repeat("x", timeline.MaxFile-len(pdf)-1))
	}
	h.produced("f", "text/plain", "xy").completed()
	made := h.build(t, timeline.Options{})
	got := lines(made)
	if len(got) != 3+4*2+1+2 || !strings.Contains(got[11], `"content_omitted":"timeline_full"`) || !strings.HasSuffix(got[13], " xy") {
		t.Errorf("got %d blocks", len(got))
	}
	if h.files.read != 4*(timeline.MaxFile-1)+2 {
		t.Errorf("%d bytes were read", h.files.read)
	}
	// If the file is the only one that is asked for, there is room for it.
	made = h.build(t, timeline.Options{Paths: []string{"fi:turn_1.files/e"}})
	if len(made.Blocks) != 1 || made.Blocks[0].Data == nil {
		t.Errorf("got %d blocks", len(made.Blocks))
	}
}
