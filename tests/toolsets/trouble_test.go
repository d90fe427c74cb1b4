package toolsets

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestEndpointsThatMisbehave checks that each kind of trouble becomes a failed call with a clear
// message, without addresses, and that the next call works.
func TestEndpointsThatMisbehave(t *testing.T) {
	kinds := []struct{ kind, piece string }{
		{"hang", ""},
		{"trickle", ""},
		{"short", ""},
		{"broken", ""},
		{"nan", ""},
		{"redirect", ""},
		{"huge", ""},
		{"bomb", ""},
		{"cut", ""},
		{"500", "500"},
		{"404", "this is the endpoint's own text"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		for _, k := range kinds {
			t.Run(k.kind, func(t *testing.T) {
				t.Parallel()
				key := harness.NewKey()
				began := time.Now()
				a := d.Post(t, harness.Program{Code: fmt.Sprintf(harness.Py(`
					from fermata_tools.trouble import Trouble
					try:
					    print("no failure:", str(Trouble.get(kind=%q, key=%q))[:100])
					except ToolExecutionError as e:
					    print(e)
				`), k.kind, key), Toolsets: []string{"trouble"}})
				if a.Status != "completed" || a.Stdout == "\n" || strings.HasPrefix(a.Stdout, "no failure") {
					t.Errorf("got %v, want a failed call", a)
				}
				harness.Contains(t, "stdout", a.Stdout, k.piece)
				for _, bad := range []string{"127.0.0", "http:", "dial", "goroutine"} {
					if strings.Contains(a.Stdout, bad) {
						t.Errorf("stdout = %q, want nothing of %q", a.Stdout, bad)
					}
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				// A GET that has met a connection which was closed is sent again over a new one.
				if k.kind != "cut" {
					d.upstream.Sent(t, key, 1)
				}
				d.tells(t, a)
			})
		}
	})
}

// TestPathsStayPaths checks that no argument changes the endpoint.
func TestPathsStayPaths(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		a := d.Post(t, program(key, `
			for city in ["..", ".", "", "%2e%2e", "..%2f", "a/../../echo", "..\\", "%252e%252e/echo"]:
			    try:
			        print("no failure:", city, Weather.current(city=city, key=KEY))
			    except ToolExecutionError as e:
			        assert str(e).startswith("city"), e
			for city in ["a?b=1", "a#b", "//evil", "@evil", "a b", "a;b", "Zürich"]:
			    try:
			        assert Weather.current(city=city, key=KEY)["city"] == city
			    except ToolExecutionError as e:
			        assert str(e).startswith("city"), e
		`))
		a.Completes(t, "")
		for _, r := range d.upstream.Requests(key) {
			if !strings.HasPrefix(r.Path, "/now/") || strings.Count(r.Path, "/") != 2 || len(r.Query) != 1 {
				t.Errorf("the endpoint got %s?%v", r.Path, r.Query)
			}
		}
	})
}

// TestSecretsAreNowhere lets an endpoint tell its secret in every form, and looks for it wherever one
// could see it.
func TestSecretsAreNowhere(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := alone(t, s, harness.Settings{"LOG_LEVEL": "debug"}), harness.NewKey()
		a := d.Post(t, program(key, `
			got = Weather.secret(key=KEY)
			print(got)
			try:
			    Weather.secret(fail="yes", key=KEY)
			except ToolExecutionError as e:
			    print(e)
			import fermata_tools.weather, inspect
			print(open("/proc/self/environ").read(), Weather.secret.__doc__)
		`))
		if a.Status != "completed" || !strings.Contains(a.Stdout, "***") {
			t.Fatalf("got %v, want the secret hidden", a)
		}
		if r := d.upstream.Requests(key); len(r) != 2 || r[0].Header.Get("Authorization") != "Bearer "+harness.UpstreamSecret {
			t.Fatalf("the endpoint got %v, want the secret", r)
		}
		places := map[string]string{"the answer": a.Raw, "the journal": d.tells(t, a).String(), "the log": d.server.Log.All()}
		err := filepath.WalkDir(filepath.Join(d.server.Dir, "state"), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				text, _ := os.ReadFile(path) // It may have gone.
				places[path] = string(text)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		forms := []string{harness.UpstreamSecret, url.QueryEscape(harness.UpstreamSecret), base64.StdEncoding.EncodeToString([]byte(harness.UpstreamSecret))[:20]}
		for place, text := range places {
			for _, form := range forms {
				if strings.Contains(text, form) {
					t.Errorf("%s has the secret as %q", place, form)
				}
			}
		}
	})
}
