package librechat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what the engine hears of an execution beside its program.
type said struct {
	Contract, Title string
	Labels          map[string]string
	Parent          string
}

// startsAs posts a start with these members by both contracts, and returns what the engine hears.
func startsAs(t *testing.T, members string, header map[string]string) (w *httptest.ResponseRecorder, heard []said) {
	t.Helper()
	e := completed()
	h := newHandler(e, options())
	for _, p := range []string{path, "/v1" + path, "/exec"} {
		body := `{"code":"#","lang":"py"`
		if members != "" {
			body += "," + members
		}
		if w = (call{path: p, body: body + "}", header: header}).do(t, h); w.Code != http.StatusOK {
			return w, nil
		}
	}
	for _, s := range e.starts {
		heard = append(heard, said{s.Contract, s.Title, s.Labels, s.Parent})
	}
	return w, heard
}

// TestAbout starts executions with members that say what they are for.
func TestAbout(t *testing.T) {
	many := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%d":"v"`, i))
		}
		return strings.Join(list, ",")
	}
	parent := map[string]string{"x-ptc-call-id": "outer-1"}
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		name, members string
		header        map[string]string
		want          said
	}{
		{"nothing", ``, nil, said{}},
		{"all", `"title":"A \u00fc","labels":{"a.b_c-1":"\u00fc","z":""},"parent_call_id":"toolu_1"`, nil, said{Title: "A ü", Labels: map[string]string{"a.b_c-1": "ü", "z": ""}, Parent: "toolu_1"}},
		{"the longest title", `"title":"` + strings.Repeat("ü", 200) + `"`, nil, said{Title: strings.Repeat("ü", 200)}},
		{"an empty title", `"title":""`, nil, said{}},
		{"a title that would like to be more", `"title":"a\r\n\r\ndata: x\u0000"`, nil, said{Title: "a\r\n\r\ndata: x\x00"}},
		{"the longest labels", `"labels":{"` + long[:64] + `":"` + strings.Repeat("ü", 256) + `"}`, nil, said{Labels: map[string]string{long[:64]: strings.Repeat("ü", 256)}}},
		{"an equal name, the last one counts", `"labels":{"a":"1","a":"2"}`, nil, said{Labels: map[string]string{"a": "2"}}},
		{"an equal member, the last one counts", `"title":1,"title":"b"`, nil, said{Title: "b"}},
		{"the longest parent", `"parent_call_id":"` + long[:255] + `"`, nil, said{Parent: long[:255]}},
		{"no parent", `"parent_call_id":null`, nil, said{}},
		{"the header", ``, parent, said{Parent: "outer-1"}},
		{"the header beside null", `"parent_call_id":null`, parent, said{Parent: "outer-1"}},
		{"the member wins", `"parent_call_id":"inner"`, parent, said{Parent: "inner"}},
		{"other names", `"subtitle":1,"tags":1,"parent":1`, nil, said{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, heard := startsAs(t, c.members, c.header)
			wanted := []said{c.want, c.want, c.want}
			for i, contract := range []string{"programmatic", "programmatic", "exec"} {
				wanted[i].Contract = contract
			}
			if diff := cmp.Diff(wanted, heard); diff != "" {
				t.Errorf("got %d %s, and the engine heard (-want +got):\n%s", w.Code, w.Body, diff)
			}
		})
	}
	if w, heard := startsAs(t, `"labels":{`+many(16)+`}`, nil); heard == nil || len(heard[0].Labels) != 16 {
		t.Errorf("16 labels: got %d %s, and the engine heard %+v", w.Code, w.Body, heard)
	}

	const (
		title  = "title must be a string of at most 200 characters"
		labels = "labels must be an object of at most 16 strings"
		callID = "parent_call_id must be a string of 1 to 255 printable ASCII characters without spaces"
		ptc    = "x-ptc-call-id must be 1 to 255 printable ASCII characters without spaces"
	)
	label := func(name string) string {
		return `labels: the name \"` + name + `\" must be 1 to 64 of a-z, 0-9, _, . and -`
	}
	for _, c := range []struct {
		name, members, header, want string
	}{
		{"title a number", `"title":1`, "", title},
		{"title null", `"title":null`, "", title},
		{"title a list", `"title":["a"]`, "", title},
		{"title too long", `"title":"` + strings.Repeat("ü", 201) + `"`, "", title},
		{"labels a text", `"labels":"a:b"`, "", labels},
		{"labels null", `"labels":null`, "", labels},
		{"labels a list", `"labels":[["a","b"]]`, "", labels},
		{"too many labels", `"labels":{` + many(17) + `}`, "", labels},
		{"a label that is a number", `"labels":{"a":1}`, "", "labels.a must be a string of at most 256 characters"},
		{"a label that is null", `"labels":{"a":null}`, "", "labels.a must be a string of at most 256 characters"},
		{"a label that is an object", `"labels":{"a":{}}`, "", "labels.a must be a string of at most 256 characters"},
		{"a label too long", `"labels":{"a":"` + long + `x"}`, "", "labels.a must be a string of at most 256 characters"},
		{"a name in capitals", `"labels":{"A":"1"}`, "", label("A")},
		{"an empty name", `"labels":{"":"1"}`, "", label("")},
		{"a name too long", `"labels":{"` + long[:65] + `":"1"}`, "", label(long[:65])},
		{"a name with a colon", `"labels":{"a:b":"1"}`, "", label("a:b")},
		{"a name with a line end", `"labels":{"a\n":"1"}`, "", label(`a\\n`)},
		{"parent a number", `"parent_call_id":1`, "", callID},
		{"parent empty", `"parent_call_id":""`, "", callID},
		{"parent too long", `"parent_call_id":"` + long + `"`, "", callID},
		{"parent with a space", `"parent_call_id":"a b"`, "", callID},
		{"parent not ASCII", `"parent_call_id":"\u00fc"`, "", callID},
		{"parent with a line end", `"parent_call_id":"a\n"`, "", callID},
		{"bad parent beside a good header", `"parent_call_id":7`, "outer-1", callID},
		{"header too long", ``, long, ptc},
		{"header with a space", ``, "a b", ptc},
		{"header not ASCII", ``, "ü", ptc},
		{"bad header beside a good parent", `"parent_call_id":"a"`, "a b", ptc},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{"x-ptc-call-id": c.header}
			w, _ := startsAs(t, c.members, header)
			if got := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(got, `"error":"`+c.want+`"`) {
				t.Errorf("got %d %s, want 400 %s", w.Code, got, c.want)
			}
			// A continuation ignores what a start says.
			e := completed()
			members := c.members
			if members != "" {
				members += ","
			}
			w = call{header: header, body: `{` + members + `"continuation_token":"t","tool_results":[{"call_id":"call_001"}]}`}.do(t, newHandler(e, options()))
			if w.Code != http.StatusOK || len(e.resumes) != 1 {
				t.Errorf("a continuation with them got %d %s, want 200", w.Code, w.Body)
			}
		})
	}
	for _, values := range [][]string{{""}, {"a", "a"}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(`{"code":"#"}`))
		r.Header = http.Header{"X-Api-Key": {"good-key"}, "Content-Type": {"application/json"}, "X-Ptc-Call-Id": values}
		w := httptest.NewRecorder()
		newHandler(completed(), options()).ServeHTTP(w, r)
		want(t, w, 400, `{"status":"error","error":"`+ptc+`"}`)
	}
}

// A start is a retry of another one only if both say the same, wherever they say it. A header that
// has no meaning makes no difference.
func TestAboutAndRetries(t *testing.T) {
	hash := func(body, parent string) string {
		e := completed()
		call{body: body, header: map[string]string{"x-ptc-call-id": parent}}.do(t, newHandler(e, options()))
		switch {
		case len(e.starts) == 1:
			return e.starts[0].Request
		case len(e.resumes) == 1:
			return e.resumes[0].Request
		}
		t.Fatalf("%s: the engine was not asked", body)
		return ""
	}
	const plain, named, resume = `{"code":"#"}`, `{"code":"#","parent_call_id":"p"}`, `{"continuation_token":"t","tool_results":[{"call_id":"call_001"}]}`
	for _, c := range []struct {
		name string
		a, b string
		same bool
	}{
		{"the same header", hash(plain, "a"), hash(plain, "a"), true},
		{"another header", hash(plain, "a"), hash(plain, "b"), false},
		{"no header", hash(plain, "a"), hash(plain, ""), false},
		{"another title", hash(`{"code":"#","title":"a"}`, ""), hash(`{"code":"#","title":"b"}`, ""), false},
		{"another header where the member wins", hash(named, "a"), hash(named, ""), true},
		{"another header of a continuation", hash(resume, "a"), hash(resume, "b"), true},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: the hashes are %s and %s, same should be %t", c.name, c.a, c.b, c.same)
		}
	}
}
