package timeline

import (
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestContractedTimelines are the cases of programs with contracts: all files and an error, a part of the
// files, and a part of the files and an error.
func TestContractedTimelines(t *testing.T) {
	const (
		summary = "open('turn_1/files/summary.pdf', 'wb').write(b'%PDF-1.4 /Type /Page ')\n"
		table   = "open('report.xlsx', 'wb').write(b'PK')\n"
		fails   = "raise ValueError('no\\nSucceeded:')\n"
		missing = "Missing output files: turn_1/files/report.xlsx\nFile errors:\n- turn_1/files/report.xlsx: file not produced\n"
		there   = "Succeeded:\n- turn_1/files/summary.pdf"
	)
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := standard(t, s, nil)
		for name, test := range map[string]struct{ code, report, files string }{
			"A": {summary + table + fails, "Runtime error: execution_failed — ValueError: no\n" + there + "\n- turn_1/files/report.xlsx", "summary.pdf report.xlsx"},
			"B": {summary, "Runtime error: execution_failed — " + missing + there, "summary.pdf"},
			"C": {summary + fails, "Runtime error: execution_failed — ValueError: no; " + missing + there, "summary.pdf"},
		} {
			a := c.Post(t, body(test.code, object{"outputs": []string{"turn_1/files/summary.pdf", "report.xlsx"}, "timeline": object{"notes": "so"}}))
			got := timelineOf(t, c, a, "?turn_id=other")
			var want strings.Builder
			want.WriteString("react.notes ar:turn_1.react.notes.exec\nreact.tool.code fi:turn_1.code.exec\nreact.tool.call tc:turn_1.exec.call\nreact.tool.result tc:turn_1.exec.result\n")
			for f := range strings.FieldsSeq(test.files) {
				want.WriteString("react.tool.result tc:turn_1.exec.result\nreact.tool.result fi:turn_1.files/" + f + "\n")
			}
			if got.shapes() != want.String() {
				t.Errorf("%s: got\n%s\nwant\n%s\nof %v", name, got.shapes(), want.String(), a)
				continue
			}
			if report := got.Blocks[3]; report.Text != test.report || report.MIME != "text/markdown" {
				t.Errorf("%s: got the report %q (%s), want %q", name, report.Text, report.MIME, test.report)
			}
			if got.Blocks[5].Base64 != document {
				t.Errorf("%s: got the block of the PDF %+v", name, got.Blocks[5])
			}
			harness.Contains(t, "the summary", got.Rendered[1].Text, "[TOOL RESULT exec].summary exec_tools.execute_code_python\n"+test.report+"\n- fi:turn_1.files/summary.pdf")
		}
	})
}

// TestLargeTimelines: a large output never sits in the memory of the server, and many who read large
// timelines together take no more than a timeline's share.
func TestLargeTimelines(t *testing.T) {
	const (
		readers = 12
		most    = 220 << 20
	)
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("moves 250 MB")
		}
		server := harness.ServeAlone(t, s, harness.Settings{"FILE_SIZE": "256MiB", "OUTPUT_FILE_SIZE": "256MiB", "FILES_QUOTA": "1GiB", "DISK": "300MiB", "MEMORY": "512MiB"})
		c := server.Alice()
		a := c.Post(t, body(`
with open("large.txt", "wb") as f:
    for _ in range(200):
        f.write(b"x" * (1 << 20))
for n in range(4):
    with open(f"{n}.pdf", "wb") as f:
        f.write(b"%PDF-1.4 /Type /Page " + b"x" * (5_200_000 - 21))
with open("6.pdf", "wb") as f:
    f.write(b"%PDF-1.4" + b"x" * (6 << 20))
`, object{"outputs": []string{"large.txt", "0.pdf", "1.pdf", "2.pdf", "3.pdf", "6.pdf"}, "timeout": 60_000}))
		if len(a.Outputs) != 6 || a.Outputs[0].State != "produced" {
			t.Fatalf("got %v, want 6 outputs", a)
		}
		before := server.PeakMemory(t)
		done := make(chan string, readers)
		for range readers {
			go func() {
				r, err := c.SendFiles(http.MethodGet, "/executions/"+a.Execution()+"/timeline?view=blocks", "", nil)
				switch {
				case err != nil:
					done <- err.Error()
				case r.HTTPStatus == http.StatusOK && strings.Count(r.Body, `"base64":"JVBERi0`) == 4 && strings.HasSuffix(r.Body, `"missing":[]}`):
					done <- ""
				case r.HTTPStatus == http.StatusTooManyRequests, r.HTTPStatus == http.StatusServiceUnavailable:
					done <- ""
				default:
					done <- r.Body[:min(len(r.Body), 300)]
				}
			}()
		}
		for range readers {
			if wrong := <-done; wrong != "" {
				t.Error(wrong)
			}
		}
		grown := server.PeakMemory(t) - before
		t.Logf("the memory of the server grew by %d MiB", grown>>20)
		if grown > most {
			t.Errorf("the memory of the server grew by %d MiB, want at most %d", grown>>20, most>>20)
		}
		got := timelineOf(t, c, a, "?path=tc:turn_1.exec.result&view=blocks")
		harness.Contains(t, "the reason", got.Raw, `\"content_omitted\":\"too_large\"`)
		if large := timelineOf(t, c, a, "?path=fi:turn_1.files/large.txt"); len(large.Blocks) == 1 && len(large.Blocks[0].Text) != 20_480+len("...[truncated]") {
			t.Errorf("got %d bytes of the large text", len(large.Blocks[0].Text))
		}
	})
}
