package timeline_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fermata/engine/journal"
	"fermata/engine/timeline"
)

// A history is a journal and the files of which it tells.
type history struct {
	names  timeline.Names
	events []journal.Entry
	files  stored
}

// stored are files by their ids. reserved is the number of bytes that were to be read, and read the number
// of bytes that were read.
type stored struct {
	files          map[string]string
	read, reserved int64
}

func (s *stored) Reserve(n int64) error {
	s.reserved += n
	return nil
}

func (s *stored) Read(_ context.Context, id string, most int64) ([]byte, error) {
	content, there := s.files[id]
	if !there {
		return nil, timeline.ErrGone
	}
	content = content[:min(int64(len(content)), most)]
	s.read += int64(len(content))
	return []byte(content), nil
}

// begun returns the history of an execution that has begun. members are additional members of the first
// event.
func begun(members string) *history {
	h := &history{names: timeline.Usual(false), files: stored{files: map[string]string{}}}
	h.names.Call = "abc"
	h.add("execution.started", `"execution":"x","session":"S","language":"python","contract":"programmatic","code":"print(1)","timeout_ms":1`+members)
	return h
}

// add adds an event, one second after the one before.
func (h *history) add(kind, members string) *history {
	n := len(h.events) + 1
	content := fmt.Sprintf(`{"seq":%d,"time":"2026-11-27T05:00:%02d.000Z","type":%q,%s}`, n, n, kind, members)
	h.events = append(h.events, journal.Entry{Seq: int64(n), Type: kind, Content: []byte(content)})
	return h
}

// produced adds an output that was produced, with its content.
func (h *history) produced(path, mime, content string) *history {
	id := "id-" + path
	h.files.files[id] = content
	return h.add("output.judged", fmt.Sprintf(`"output":{"path":%q,"state":"produced","id":%q,"size":%d,"mime":%q}`, path, id, len(content), mime))
}

func (h *history) missing(path string) *history {
	return h.add("output.judged", fmt.Sprintf(`"output":{"path":%q,"state":"missing"}`, path))
}

// called adds an inner call.
func (h *history) called(id, tool, input string) *history {
	toolset, name, ok := strings.Cut(tool, ".")
	if !ok {
		toolset, name = "", tool
	}
	return h.add("call.started", fmt.Sprintf(`"call":%q,"record":"ptc:1","tool":%q,"toolset":%q,"runner":"client","input":%s`, id, name, toolset, input))
}

func (h *history) returned(id, output string) *history {
	return h.add("call.completed", fmt.Sprintf(`"call":%q,"record":"ptc:1","output":%s,"took_ms":1`, id, output))
}

// handedOver adds an artifact, with its content.
func (h *history) handedOver(call, path, mime, content string) *history {
	id := "id-" + path
	h.files.files[id] = content
	return h.add("artifact.stored", fmt.Sprintf(`"call":%q,"path":%q,"id":%q,"size":%d,"mime":%q`, call, path, id, len(content), mime))
}

func (h *history) completed() *history { return h.add("execution.ended", `"status":"completed"`) }

func (h *history) raised(text string) *history {
	return h.add("execution.ended", fmt.Sprintf(`"status":"error","reason":"raised","error":%q`, text))
}

// build returns the timeline.
func (h *history) build(t *testing.T, o timeline.Options) timeline.Timeline {
	t.Helper()
	var f timeline.Facts
	for _, e := range h.events {
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	o.Names = h.names
	h.files.read, h.files.reserved = 0, 0
	made, err := timeline.Build(t.Context(), &f, o, &h.files)
	if err != nil {
		t.Fatal(err)
	}
	if h.files.read > h.files.reserved {
		t.Errorf("%d bytes were read, and %d reserved", h.files.read, h.files.reserved)
	}
	return made
}

// lines returns the blocks of a timeline, one a line: type, path, media type and content.
func lines(made timeline.Timeline) []string {
	var list []string
	for _, b := range made.Blocks {
		line := b.Type + " " + b.Path
		if b.MIME != "" {
			line += " " + b.MIME
		}
		if b.Text != nil {
			line += " " + *b.Text
		}
		if b.Data != nil {
			line += " base64:" + base64.StdEncoding.EncodeToString(b.Data)
		}
		list = append(list, line)
	}
	return list
}

// parts returns the rendered parts as texts.
func parts(made timeline.Timeline) []string {
	var list []string
	for _, p := range made.Rendered {
		if p.Data != nil {
			list = append(list, p.Type+" "+p.MIME+" "+base64.StdEncoding.EncodeToString(p.Data))
		} else {
			list = append(list, p.Text)
		}
	}
	return list
}

// same compares lists line by line.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%d is missing: %s", i, want[i])
		case i >= len(want):
			t.Errorf("%d is too many: %s", i, got[i])
		case got[i] != want[i]:
			t.Errorf("%d:\ngot  %s\nwant %s", i, got[i], want[i])
		}
	}
}

// shaped checks that a block has all members of an example, with the same values. If text is JSON, it is
// compared member by member.
func shaped(t *testing.T, got timeline.Block, example string) {
	t.Helper()
	var want, have map[string]any
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for from, into := range map[string]*map[string]any{example: &want, string(raw): &have} {
		if err := json.Unmarshal([]byte(from), into); err != nil {
			t.Fatal(err, from)
		}
	}
	if got.Data != nil {
		have["base64"] = base64.StdEncoding.EncodeToString(got.Data)
	}
	for name, value := range want {
		text, _ := have[name].(string)
		wanted, _ := value.(string)
		var inner, wantedInner map[string]any
		if name == "text" && json.Unmarshal([]byte(wanted), &wantedInner) == nil && json.Unmarshal([]byte(text), &inner) == nil {
			for member, v := range wantedInner {
				if fmt.Sprint(inner[member]) != fmt.Sprint(v) {
					t.Errorf("%s of text: got %v, want %v", member, inner[member], v)
				}
			}
			continue
		}
		if have[name] != value {
			t.Errorf("%s: got %v, want %v", name, have[name], value)
		}
	}
}
