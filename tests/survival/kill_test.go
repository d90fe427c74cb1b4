package survival

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// killDelay is how much later than it should a program may be killed, whatever hangs, and killSlack is what a busy machine
// may add to that.
const (
	killDelay = time.Second
	killSlack = 2 * time.Second
)

// TestRedisHangsAndProgramsAreKilled suspends Redis while programs run, and while their calls and pauses are to be
// recorded. Their timeouts and cancels are no later for it.
func TestRedisHangsAndProgramsAreKilled(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		s.Settings = harness.With(s.Settings, harness.Toolsets(t))
		c := harness.LaunchAlone(t, s).Alice()
		// Within two seconds Redis is suspended.
		soon := "import time\nfrom fermata_tools.weather import Weather\nMARKtime.sleep(2)\n"
		kinds := map[string]string{
			// The server writes what they print to its store all the time.
			"prints":            soon + "while True:\n    print('busy')\n    time.sleep(0.02)\n",
			"calls the server":  soon + "print(Weather.current(city='Rome'))\n",
			"waits for results": soon + "print(await ask())\n",
		}
		const timeout = 3 * time.Second
		expire, cancelled, ids := map[string]harness.Mark{}, map[string]harness.Mark{}, map[string]string{}
		answers := make(chan harness.Answer, 2*len(kinds))
		for name, code := range kinds {
			post := func(m harness.Mark, header http.Header, timeout int) {
				a, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic, header, harness.Program{
					Code: strings.ReplaceAll(code, "MARK", m.Line()), Tools: harness.Tools("ask"), Toolsets: []string{"weather"}, Timeout: timeout,
				})
				if err != nil {
					t.Errorf("a program that %s while Redis hangs: %v", name, err)
				}
				answers <- a
			}
			expire[name], cancelled[name], ids[name] = harness.NewMark(), harness.NewMark(), uuid.NewString()
			go post(expire[name], nil, int(timeout.Milliseconds()))
			go post(cancelled[name], http.Header{"X-Librechat-Code-Request-Id": {ids[name]}}, 0)
		}
		for name := range kinds {
			expire[name].Await(t, 1)
			cancelled[name].Await(t, 1)
		}
		began := time.Now() // or before
		if err := redis.Suspend(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2200 * time.Millisecond) // Writes are under way by then.
		asked := time.Now()
		var cancels sync.WaitGroup
		for name, id := range ids {
			cancels.Go(func() {
				if _, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic+"/cancel", nil, fmt.Sprintf(`{"request_id":%q}`, id)); err != nil {
					t.Errorf("cancel of a program that %s while Redis hangs: %v", name, err)
				}
			})
		}
		for name := range kinds {
			t.Log(name)
			cancelled[name].Gone(t, time.Until(asked.Add(killDelay+killSlack)))
		}
		for name := range kinds {
			if name != "waits for results" { // The time of its pause does not count.
				t.Log(name)
				expire[name].Gone(t, time.Until(began.Add(timeout+killDelay+killSlack)))
			}
		}
		if err := redis.GoOn(); err != nil {
			t.Fatal(err)
		}
		cancels.Wait()
		for range cap(answers) {
			a := <-answers
			// A pause is refused that cannot be recorded, or recorded when Redis goes on. A call fails, or was made before
			// Redis was suspended.
			paused := a.HTTPStatus == http.StatusServiceUnavailable || a.Status == "tool_call_required"
			called := strings.Contains(a.Error, "its store is not available") || a.Status == "completed"
			if a.Reason != "timed_out" && a.Reason != "cancelled" && !paused && !called {
				t.Errorf("got %v, want the program to be timed out or cancelled", a)
			}
		}
		reportsReady(t, c)
	})
}
