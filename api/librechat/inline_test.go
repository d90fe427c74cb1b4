package librechat_test

import (
	"testing"
)

// A request with files in it stores nothing by itself: the engine stores them when the program begins.
func TestFilesInARequestAreStaged(t *testing.T) {
	o := options()
	store := fileStore(t, t.TempDir())
	o.Files = store
	e := completed()
	h := newHandler(e, o)
	for _, path := range []string{"/exec", "/exec/programmatic"} {
		body := `{"code":"#","lang":"py","files":[{"name":"a","content":"x"},{"name":"b","content":"/w==","encoding":"base64"}]}`
		if w := (call{path: path, body: body}).do(t, h); w.Code != 200 {
			t.Fatalf("%s: got %d %s", path, w.Code, w.Body)
		}
		start := e.starts[len(e.starts)-1]
		if start.Staging == nil || len(start.Inputs) != 0 {
			t.Fatalf("%s: got %+v, want files to be staged and no others", path, start)
		}
		inputs, err := start.Staging.Stage(t.Context())
		if err != nil || len(inputs) != 2 || inputs[0].Session != start.Session || inputs[0].Size != 1 || inputs[1].Size != 1 {
			t.Errorf("%s: Stage = %+v, %v, want two files of one byte in session %s", path, inputs, err, start.Session)
		}
	}
	call{body: `{"code":"#","files":[]}`}.do(t, h)
	if start := e.starts[len(e.starts)-1]; start.Staging != nil {
		t.Error("a start without files has a Staging")
	}
}
