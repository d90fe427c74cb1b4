package toolsets

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestRedisLosesTheBeginOfACall puts Redis back to what it was before a call began, as a failover to a
// replica does that was behind. The server that runs the call tells Redis again, and the call is made once.
// If that server dies at the same moment, nobody is left who knows of the call: the next server makes it
// again, and the program goes on with that result.
func TestRedisLosesTheBeginOfACall(t *testing.T) {
	t.Parallel()
	for _, e := range harness.Sandboxes() {
		for name, dies := range map[string]bool{"the server lives": false, "the server dies as well": true} {
			t.Run(e.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				redis := harness.RedisAlone(t)
				if err := redis.Start(); err != nil {
					t.Fatal(err)
				}
				s := harness.Setup{Name: e.Name, Settings: harness.With(harness.Common, e.Settings, harness.Quick(t), harness.Settings{"REDIS_URL": redis.URL()})}
				d, gate, key := alone(t, s, nil), harness.NewKey(), harness.NewKey()
				p := program(key, `
					await ask(n=0)
					print(Weather.wait(n=1, key=GATE)["n"])
					print(HelpDesk.hold(n=2, key=KEY)["n"])
				`)
				p.Code, p.Tools = strings.ReplaceAll(p.Code, "GATE", fmt.Sprintf("%q", gate)), harness.Tools("ask")
				next := d.Pause(t, p).Continue(harness.Echo)
				first := make(chan harness.Answer, 1)
				go func() {
					a, _ := d.Send(t.Context(), next) // The server may die.
					first <- a
				}()
				d.upstream.Await(t, gate, 1)
				if err := redis.Client.Save(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				d.upstream.Release(gate)
				d.upstream.Await(t, key, 1)
				if dies {
					if err := d.server.Kill(); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(redis.Crash(), redis.Start()); err != nil {
					t.Fatal(err)
				}
				sent := 1
				if dies {
					if err := d.server.Start(); err != nil {
						t.Fatal(err)
					}
					sent = 2
					d.upstream.Await(t, key, sent)
				}
				d.upstream.Release(key)
				a, err := d.Insist(t.Context(), http.MethodPost, harness.Programmatic, nil, next)
				if err != nil {
					t.Fatal(err)
				}
				a.Completes(t, "1\n2\n")
				if other := <-first; other.HTTPStatus == http.StatusOK && other.Raw != a.Raw {
					t.Errorf(harness.AskedAgain, a, other)
				}
				d.upstream.Sent(t, key, sent)
				d.upstream.Sent(t, gate, 1)
				d.tells(t, a)
			})
		}
	}
}
