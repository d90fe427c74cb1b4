package survival

import (
	"fmt"
	"net/http"
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

// TestRedisHangsAndProgramsAreKilled suspends Redis while programs run. Their timeouts and cancels are no later for it.
func TestRedisHangsAndProgramsAreKilled(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		c := harness.LaunchAlone(t, s).Alice()
		// The server writes what they print to its store all the time.
		busy := func(m harness.Mark) string {
			return "import time\n" + m.Line() + "while True:\n    print('busy')\n    time.sleep(0.02)\n"
		}
		const timeout = 4 * time.Second
		expires, cancelled, id := harness.NewMark(), harness.NewMark(), uuid.NewString()
		answers := make(chan harness.Answer, 2)
		post := func(header http.Header, p harness.Program) {
			a, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic, header, p)
			if err != nil {
				t.Errorf("a program while Redis hangs: %v", err)
			}
			answers <- a
		}
		began := time.Now()
		go post(nil, harness.Program{Code: busy(expires), Timeout: int(timeout.Milliseconds())})
		go post(http.Header{"X-Librechat-Code-Request-Id": {id}}, harness.Program{Code: busy(cancelled)})
		expires.Await(t, 1)
		cancelled.Await(t, 1)
		if err := redis.Suspend(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // A write is under way by then.
		asked := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic+"/cancel", nil, fmt.Sprintf(`{"request_id":%q}`, id)); err != nil {
				t.Errorf("cancel while Redis hangs: %v", err)
			}
		}()
		cancelled.Gone(t, time.Until(asked.Add(killDelay+killSlack)))
		expires.Gone(t, time.Until(began.Add(timeout+killDelay+killSlack)))
		if err := redis.GoOn(); err != nil {
			t.Fatal(err)
		}
		<-done
		for range cap(answers) {
			if a := <-answers; a.Reason != "timed_out" && a.Reason != "cancelled" {
				t.Errorf("got %v, want the program to be timed out or cancelled", a)
			}
		}
		reportsReady(t, c)
	})
}
