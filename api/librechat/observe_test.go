package librechat_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"fermata/engine"
)

// Observations contain no text that a client can choose.
func TestObserve(t *testing.T) {
	for _, c := range []struct {
		name string
		call call
		e    *script
		want string
	}{
		{"a program", call{body: `{"code":"#"}`}, completed(), "POST /exec/programmatic 200"},
		{"by the other path", call{path: "/v1" + path, body: `{"code":"#"}`}, completed(), "POST /v1/exec/programmatic 200"},
		{"a mistake", call{body: "{"}, completed(), "POST /exec/programmatic 400"},
		{"no key", call{header: map[string]string{"X-API-Key": ""}}, completed(), "POST /exec/programmatic 401"},
		{"no sandbox", call{body: `{"code":"#"}`}, &script{err: engine.ErrNoCapacity}, "POST /exec/programmatic 503"},
		{"health", call{method: http.MethodGet, path: "/health"}, completed(), "GET /health 200"},
		{"no such path", call{path: "/very-secret"}, completed(), "POST none 404"},
		{"no such path below one", call{path: path + "/very-secret"}, completed(), "POST none 404"},
		{"no such method", call{method: "SECRET"}, completed(), "other /exec/programmatic 405"},
		{"the method of another route", call{method: http.MethodDelete}, completed(), "DELETE /exec/programmatic 405"},
		{"no such path or method", call{method: "SECRET", path: "/very-secret"}, completed(), "other none 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			o := options()
			o.Observe = func(route, method string, status int, took time.Duration) {
				got = append(got, fmt.Sprintf("%s %s %d", method, route, status))
				if took <= 0 || took > time.Minute {
					t.Errorf("it took %v, want the time since the request came", took)
				}
			}
			c.call.do(t, newHandler(c.e, o))
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("observed %q, want %q", got, c.want)
			}
		})
	}
}
