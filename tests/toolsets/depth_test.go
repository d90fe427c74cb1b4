package toolsets

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/tests/harness"
)

// loop is a toolset that leads back to its own server, by way of PROXY.
const loop = `
toolsets:
  loop:
    title: Loop
    description: Leads back to its own server.
    private: true
    unmasked: true
    http:
      base_url: PROXY
      headers: {X-API-Key: key-a}
      timeout: 60s
      tools:
        - {name: exec, description: Runs a program., method: POST, path: /exec,
           parameters: {type: object, properties: {lang: {type: string}, code: {type: string}, toolsets: {type: array}}}}
`

// TestDepth runs a program that starts itself, through a proxy, as deep as it may.
func TestDepth(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		var server atomic.Pointer[url.URL]
		var deepest atomic.Value
		proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			deepest.Store(r.In.Header.Get("Fermata-Depth"))
			r.SetURL(server.Load())
		}})
		t.Cleanup(proxy.Close)
		path := harness.WriteToolsets(t, harness.NewUpstream(t), strings.ReplaceAll(loop, "PROXY", proxy.URL))
		started := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": path, "MAX_SANDBOXES": "8"})
		address, err := url.Parse(started.URL)
		if err != nil {
			t.Fatal(err)
		}
		server.Store(address)

		code := harness.Py(`
			from fermata_tools.loop import Loop
			try:
			    print(Loop.exec(lang="python", code="CODE = " + repr(CODE) + "\n" + CODE, toolsets=["loop"])["stdout"], end="")
			except ToolExecutionError as e:
			    print("the end:", e)
		`)
		a := started.Alice().Exec(t, nil, map[string]any{
			"lang": "python", "code": "CODE = " + strconv.Quote(code) + "\n" + code, "toolsets": []string{"loop"},
		})
		if !strings.HasPrefix(a.Stdout, "the end:") || !strings.Contains(a.Stdout, "508") {
			t.Errorf("got %v, want the end of the chain", a)
		}
		if got := deepest.Load(); got != "5" {
			t.Errorf("the deepest request has Fermata-Depth %v, want 5", got)
		}
		for depth, status := range map[string]int{"4": http.StatusOK, "5": http.StatusLoopDetected, "x": http.StatusBadRequest} {
			b, err := started.Alice().Request(t.Context(), http.MethodPost, "/exec", http.Header{"Fermata-Depth": {depth}}, map[string]any{"lang": "python", "code": "print(1)"})
			if err != nil || b.HTTPStatus != status {
				t.Errorf("depth %s: got %d, %v, want %d", depth, b.HTTPStatus, err, status)
			}
		}
	})
}
