package toolsets

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// blocked are toolsets in which alice may no longer use the desk.
const blocked = harness.StandardToolsets + `
policies:
  rest: {block: [desk]}
principals: {alice: rest}
`

// TestReload changes the toolsets file of a server that runs, while a program pauses that has started
// with the former one.
func TestReload(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		u, key := harness.NewUpstream(t), harness.NewKey()
		path := harness.WriteToolsets(t, u, harness.StandardToolsets)
		server := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": path})
		d := desk{server.Alice(), server, u}
		replace := func(text, message string) {
			t.Helper()
			before := strings.Count(server.Log.All(), message)
			if err := harness.ReplaceToolsets(path, u, text); err != nil {
				t.Fatal(err)
			}
			for begin := time.Now(); strings.Count(server.Log.All(), message) == before; time.Sleep(20 * time.Millisecond) {
				if time.Since(begin) > 20*time.Second {
					t.Fatalf("the log does not tell that %s:\n%s", message, server.Log.Tail())
				}
			}
		}
		const again, mistake = "the toolsets file was read again", "the toolsets file cannot be used, and the former toolsets stay"

		p := program(key, `
			print(await ask(n=1))
			print(Weather.current(city="Rome", key=KEY)["city"])
			try:
			    HelpDesk.book(n=2, key=KEY)
			except ToolExecutionError as e:
			    print(e)
		`)
		p.Tools = harness.Tools("ask")
		paused, once := d.Pause(t, p), harness.NewKey()
		d.PostKeyed(t, once, harness.Program{Code: "print(1)", Toolsets: []string{"weather.current"}}).Completes(t, "1\n")
		replace(strings.ReplaceAll(blocked, "name: current,", "name: presently,"), again)
		refused(t, d.Post(t, harness.Program{Code: "1", Toolsets: []string{"desk"}}), 403, "desk", "the policy rest blocks it")
		refused(t, d.Post(t, harness.Program{Code: "1", Toolsets: []string{"weather.current"}}), 400, "current")
		// The program keeps the tool that is gone, and may not use what is blocked by now.
		d.Post(t, paused.Continue(harness.Echo)).Completes(t, "{'n': 1}\nRome\nthe tool desk.book may not be used: the policy rest blocks it\n")
		u.Sent(t, key, 1)

		replace("toolsets:\n  weather: {}\n", mistake) // once the end of the server
		replace(strings.NewReplacer("alice:", "alcie:", "name: current,", "name: presently,").Replace(blocked), "principals.alcie: no client can be this principal")
		replace("toolsets:\n  weather:\n    https: {}\n", mistake)
		harness.Contains(t, "the log", server.Log.All(), "toolsets.yaml:3")
		d.Post(t, harness.Program{Code: "from fermata_tools.weather import Weather\nprint(hasattr(Weather, 'presently'))", Toolsets: []string{"weather"}}).Completes(t, "True\n")

		// A repeated start gets its answer, though its program could not start any more.
		d.PostKeyed(t, once, harness.Program{Code: "print(1)", Toolsets: []string{"weather.current"}}).Completes(t, "1\n")
		refused(t, d.PostKeyed(t, harness.NewKey(), harness.Program{Code: "print(1)", Toolsets: []string{"weather.current"}}), 400, "current")

		replace(harness.StandardToolsets, again)
		before := strings.Count(server.Log.All(), again)
		if err := server.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for begin := time.Now(); strings.Count(server.Log.All(), again) == before; time.Sleep(20 * time.Millisecond) {
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("SIGHUP has done nothing:\n%s", server.Log.Tail())
			}
		}
		d.Post(t, harness.Program{Code: "1", Toolsets: []string{"desk.book"}}).Completes(t, "")
	})
}
