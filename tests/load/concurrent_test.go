package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestManyExecutions runs many programs at once. None may meet the values of another, and the
// server must not keep processes, cgroups, files, descriptors or memory.
func TestManyExecutions(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("runs hundreds of programs")
		}
		server := harness.ServeAlone(t, s, harness.Settings{"QUEUE_TIMEOUT": "60s"})
		c := server.Alice()
		wave := func(n int) {
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if err := harness.FiveRounds(t.Context(), c, i); err != nil {
						t.Errorf("execution %d: %v", i, err)
					}
				})
			}
			wg.Wait()
		}
		settled := func() harness.Usage {
			var u harness.Usage
			// Meanwhile the pool refills and sandboxes end. Containers take long for that.
			look := 2 * time.Second
			if s.Docker() {
				look = 4 * time.Second
			}
			err := harness.Within(time.Minute, func() error {
				before := server.Usage()
				time.Sleep(look)
				if u = server.Usage(); u.Processes != before.Processes || u.Groups != before.Groups || u.Files != before.Files {
					return fmt.Errorf("still changing: %v, %v", before, u)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			http.DefaultClient.CloseIdleConnections()
			return u
		}
		// The server keeps up to ten connections to Redis, depending on the load.
		kept, many := 2, 100
		if s.Settings["REDIS_URL"] != "" {
			kept = 10
		}
		if s.Docker() {
			// A busy machine makes one or two containers a second, and no request may wait for
			// longer than a minute.
			many = 30
		}
		wave(20) // The first ones make what stays, such as buffers and threads.
		before := settled()
		wave(many)
		after := harness.Within(time.Minute, func() error {
			u := settled()
			if u.Processes > before.Processes || u.Groups > before.Groups || u.Files > before.Files || u.Descriptors > before.Descriptors+kept ||
				u.Inner > before.Inner || u.Memory > before.Memory+32<<20 {
				return fmt.Errorf("usage after 100 executions: %+v, before: %+v", u, before)
			}
			return nil
		})
		if after != nil {
			t.Error(after)
		}
	})
}

// TestGoodProgramsBesideBadOnes runs well-behaved programs while others loop, use up their memory
// and break their own sandbox.
func TestGoodProgramsBesideBadOnes(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox|harness.OrdinaryUser, func(t *testing.T, s harness.Setup) {
		if testing.Short() {
			t.Skip("runs for seconds")
		}
		c := harness.Serve(t, s, harness.SmallLimits).Alice()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, code := range []string{
			"while True: pass",
			"x = []\nwhile True: x.append(bytearray(1 << 20))",
			"while True: print('x' * 1000)",
			"os.kill(os.getpid(), 9)",
			"os.closerange(0, 1024)",
		} {
			wg.Go(func() {
				for ctx.Err() == nil {
					a, err := c.Send(ctx, harness.Program{Code: code, Timeout: 1000})
					if err == nil && a.HTTPStatus >= 500 {
						t.Errorf("%q: got %v, want no 5xx", code, a)
						return
					}
				}
			})
		}
		for i := range 20 {
			if err := harness.FiveRounds(t.Context(), c, i); err != nil {
				t.Error(err)
			}
		}
		stop()
		wg.Wait()
	})
}
