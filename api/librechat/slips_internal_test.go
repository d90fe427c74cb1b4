package librechat

import (
	"fmt"
	"strings"
	"testing"
)

// vocabularies are all of them, by what they are of.
var vocabularies = map[string]vocabulary{
	"request": requestWords, "tool": toolWords, "function": functionWords, "result": resultWords, "file": fileWords, "output": outputWords, "timeline": timelineWords,
}

func TestMeant(t *testing.T) {
	for _, c := range []struct{ of, names, want string }{
		{"request", "timeut timout tiemout Timeout TIMEOUT time_out timeouts timeout_ms timeoutMs", "timeout"},
		{"request", "tool toolz tolos Tools functions", "tools"},
		{"request", "sessionId session_ids session sesion_id", "session_id"},
		{"request", "toolResults tool_result tool_reslts results", "tool_results"},
		{"request", "continuationToken continuation_tokens contination_tokn token", "continuation_token"},
		{"request", "Code codes coed source", "code"},
		{"request", "Lang langs", "lang"},
		{"request", "lagnuage languages", "language"},
		{"request", "label", "labels"},
		{"request", "parentCallId", "parent_call_id"},
		{"request", "file", "files"},
		{"request", "output Outputs outptus", "outputs"},
		{"request", "onMissing on_misssing", "on_missing"},
		{"request", "time_line timelines", "timeline"},
		{"output", "paths filename file", "path"},
		{"output", "mimeType content_type media-type", "mime"},
		{"output", "minBytes min_size minbyte", "min_bytes"},
		{"output", "require optional Required", "required"},
		{"output", "visibilty", "visibility"},
		{"output", "name id type size title kind format tags", ""},
		{"timeline", "turnId turn trun_id", "turn_id"},
		{"timeline", "Tool-Call-Id toolcallid call_id tool_cal_id", "tool_call_id"},
		{"timeline", "toolId tool_ids tool_name", "tool_id"},
		{"timeline", "note Notes", "notes"},
		{"timeline", "Log LOG printed", "log"},
		{"timeline", "includes inlcude", "include"},
		{"timeline", "base_64 bas64", "base64"},
		{"timeline", "name id type session logs_of model user title metadata conversation_id agent x", ""},
		{"file", "Id ID", "id"},
		{"tool", "paramerers parameter Parameters params schema jsonSchema", "parameters"},
		{"tool", "input-schema inputschem input_schemas", "input_schema"},
		{"tool", "functions Function", "function"},
		{"tool", "desciption descriptions desc", "description"},
		{"tool", "names Name", "name"},
		{"function", "input_schema inputSchema paramerers", "parameters"},
		{"result", "error errors err Error message errorMessage error_mesage errormessages", "error_message"},
		{"result", "output content results reslt value data", "result"},
		{"result", "isError iserror is_eror isErr failed", "is_error"},
		{"result", "callId call_ids calll_id", "call_id"},
		{"file", "storageSessionId", "storage_session_id"},
		{"file", "names", "name"},
		{"request", "user_id entity_id runtime_session_hint workspace_instance_id executionRouteKey environmentType environmentId " +
			"bridgeWorkerId codeSessionKey LIBRECHAT_CODE_API_KEY mode node future metadata stream container tool_choice model user id x", ""},
		{"tool", "cache_control strict annotations output_schema outputSchema title type toolType serverName responseFormat response_format " +
			"allowed_callers defer_loading input_examples eager_input_streaming execution icons _meta max_uses allowed_domains display_width_px extra game same", ""},
		{"function", "strict response behavior", ""},
		{"result", "name id tool input type metadata duration_ms more x", ""},
		{"file", "inherited path entity_id modified_from size mime url etag lastModified contentType metadata readOnly", ""},
	} {
		for name := range strings.FieldsSeq(c.names) {
			if got := vocabularies[c.of].meant(name); got != c.want {
				t.Errorf("in a %s %q means %q, want %q", c.of, name, got, c.want)
			}
		}
	}
}

// Every vocabulary is sound: what a guess means is a member, and no name that passes is a slip by
// itself without need to be listed twice.
func TestVocabularies(t *testing.T) {
	for of, v := range vocabularies {
		members := map[string]bool{}
		for _, m := range v.members {
			members[m.name] = true
		}
		for guess, means := range v.guesses {
			if !members[means] || guess != plainName(guess) {
				t.Errorf("in a %s the guess %q means %q: want a plain name and a member", of, guess, means)
			}
		}
		for _, name := range v.passes {
			if name != plainName(name) || v.guesses[name] != "" {
				t.Errorf("in a %s %q passes: want a plain name that is no guess", of, name)
			}
		}
	}
}

// However many names a client sends, and however long, the server keeps few of them.
func TestUnknownNamesAreBounded(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"` + strings.Repeat("x", maxUnknownName+1) + `":1,"` + strings.Repeat(`\u0078`, maxUnknownName+1) + `":1`)
	for i := range 1000 {
		fmt.Fprintf(&body, `,"x%d":[{"timeut":1}]`, i)
	}
	body.WriteString(`,"x1":1,"timeut":1}`)
	r, err := decode([]byte(body.String()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.unknown) != maxUnknownNames || r.unknown[0].name != "x0" {
		t.Errorf("kept %v, want the first %d short names", r.unknown, maxUnknownNames)
	}
	if err := slipIn(r); err != nil {
		t.Errorf("got %v, want the request to pass", err)
	}
}

// FuzzMeant: whatever the name, the members that it could mean are those of the vocabulary, and a
// member means itself.
func FuzzMeant(f *testing.F) {
	for _, seed := range []string{"timeut", "", "_", "error", "é\xff", strings.Repeat("a", maxUnknownName)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for of, v := range vocabularies {
			meant := v.meant(name)
			if meant == "" {
				continue
			}
			found := false
			for _, m := range v.members {
				found = found || m.name == meant
			}
			if !found {
				t.Errorf("in a %s %q means %q, which is no member", of, name, meant)
			}
		}
		if a, b := within(2, name, "parameters"), within(2, "parameters", name); a != b {
			t.Errorf("%q is near to parameters: %v, and the other way round: %v", name, a, b)
		}
	})
}
