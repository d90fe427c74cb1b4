package survival

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestClientLeaves checks what happens to a program whose client closes the connection: a start
// ends, a continuation goes on and its answer is kept.
func TestClientLeaves(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"POOL_SIZE": "1"})
		c := server.Alice()
		t.Run("in the first request", func(t *testing.T) {
			before := harness.Resting(server.Processes)
			begun := harness.NewMark()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var gone sync.WaitGroup
			gone.Go(func() {
				if a, err := c.Send(ctx, harness.Program{Code: "import os\nfor _ in range(5): os.fork()\n" + begun.Line() + "while True: pass"}); err == nil {
					t.Errorf("got %v, want the client to have left", a)
				}
			})
			begun.Await(t, 32) // Each of five forks doubles them.
			leave()
			gone.Wait()
			err := harness.Within(harness.ClearTimeout, func() error { return harness.AtMost("processes", server.Processes(), before) })
			if err != nil {
				t.Error(err)
			}
		})
		t.Run("in a continuation", func(t *testing.T) {
			begun := harness.NewMark()
			pause := c.Pause(t, harness.Program{Code: "import time\nx = await ask(n=1)\n" + begun.Line() + "time.sleep(2)\nprint(x)", Tools: harness.Tools("ask")})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var gone sync.WaitGroup
			gone.Go(func() {
				if a, err := c.Send(ctx, pause.Continue(harness.Echo)); err == nil {
					t.Errorf("got %v, want the client to have left", a)
				}
			})
			begun.Await(t, 1)
			leave()
			gone.Wait()
			var wg sync.WaitGroup
			answers := make([]harness.Answer, 4)
			for i := range answers {
				wg.Go(func() {
					var err error
					if answers[i], err = c.Send(t.Context(), pause.Continue(harness.Echo)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, a := range append(answers, c.Post(t, pause.Continue(harness.Echo))) {
				a.Completes(t, "{'n': 1}\n")
				if a.Raw != answers[0].Raw {
					t.Errorf("got %v and %v for one request, want one answer", a, answers[0])
				}
			}
		})
		t.Run("in the middle of a body", func(t *testing.T) {
			ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer leave()
			body := &stuck{text: strings.NewReader(`{"code":"print(`), until: ctx.Done()}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+harness.Programmatic, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-API-Key", "key-a")
			r.Header.Set("Content-Type", "application/json")
			if a, err := http.DefaultClient.Do(r); err == nil {
				defer a.Body.Close()
				t.Errorf("got %v, want no answer to half a request", a.Status)
			}
			c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		})
	})
}

// A stuck body sends its text and then nothing, without ending.
type stuck struct {
	text  *strings.Reader
	until <-chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	if n, err := s.text.Read(p); err == nil {
		return n, nil
	}
	<-s.until
	return 0, context.Canceled
}
