package live

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/tests/harness"
)

// The canaries are texts that a test finds again wherever the server keeps them.
const (
	codeCanary   = "canary-in-code"
	printCanary  = "canary-in-output"
	inputCanary  = "canary-in-input"
	resultCanary = "canary-in-result"
	errorCanary  = "canary-in-error"
)

// valueCanaries are those of which only a journal of the mode full may tell.
var valueCanaries = []string{codeCanary, printCanary, inputCanary, resultCanary, errorCanary}

// canaries is a program that makes two calls, each of which is a round, and fails. What it prints and
// passes on is not in its code, so that each canary tells where it comes from.
var canaries = harness.Program{Code: harness.Py(`
	# canary-in-code
	def canary(where): return "-".join(["canary", "in", where])
	import sys
	print(canary("output"), flush=True)
	print(canary("output"), file=sys.stderr, flush=True)
	await ask(text=canary("input"))
	try:
	    await ask(text=canary("input"))
	except Exception as e:
	    raise ValueError(str(e) + canary("output"))
`), Tools: harness.Tools("ask")}

// tellCanaries runs the program of the canaries on from its first pause, to its end.
func tellCanaries(t *testing.T, c harness.Client, first harness.Answer) {
	t.Helper()
	second := c.Pause(t, first.Continue(harness.Value(fmt.Sprintf("%q", resultCanary))))
	next := second.Continue(harness.Value("null"))
	for i := range next.Results {
		next.Results[i].Result, next.Results[i].IsError, next.Results[i].Message = nil, true, errorCanary
	}
	if a := c.Post(t, next); a.Status != "error" || !strings.Contains(a.Error, errorCanary) {
		t.Fatalf("got %v, want the error of the program", a)
	}
}

// named returns those of the texts that are in a text.
func named(text string, all []string) (found []string) {
	for _, one := range all {
		if strings.Contains(text, one) {
			found = append(found, one)
		}
	}
	return found
}

// views returns all that the routes tell of an execution at once, by route.
func views(t *testing.T, c harness.Client, id string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{
		"/executions", "/calls", "/executions/" + id, "/executions/" + id + "/calls", "/executions/" + id + "/events",
		"/v1/executions/" + id + "/events?after=1",
	} {
		status, _, body := get(t, c, http.MethodGet, path, nil)
		all[path] = fmt.Sprint(status, " ", body)
	}
	return all
}

// ended reads a stream of an ended execution to its end.
func ended(t *testing.T, c harness.Client, id, form, query string) (status int, body string) {
	t.Helper()
	status, _, body = get(t, c, http.MethodGet, "/executions/"+id+"/events"+query, accepting(form))
	return status, body
}

// stateFiles returns what is in the files of a server's state directory, by name, without the files
// of sessions.
func stateFiles(t *testing.T, s *harness.Server) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	root := s.Settings["STATE_DIR"]
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, root+"/")] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The files of the embedded store.
const (
	recordsFile = "executions.db"
	archiveFile = "executions.db.journals"
)

// keptInBuckets returns the contents of the buckets of a file of the embedded store. The server that
// wrote it has ended.
func keptInBuckets(t *testing.T, path string) map[string]string {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				all[string(name)] += fmt.Sprintf("%s %s\n", key, value)
				return nil
			})
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// keysIn returns what Redis keeps under each key.
func keysIn(t *testing.T, r *harness.Redis) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys := r.Client.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		key := keys.Val()
		kind := r.Client.Type(t.Context(), key).Val()
		var value any
		var err error
		switch kind {
		case "string":
			value, err = r.Client.Get(t.Context(), key).Result()
		case "stream":
			value, err = r.Client.XRange(t.Context(), key, "-", "+").Result()
		case "zset":
			value, err = r.Client.ZRange(t.Context(), key, 0, -1).Result()
		case "hash":
			value, err = r.Client.HGetAll(t.Context(), key).Result()
		case "set":
			value, err = r.Client.SMembers(t.Context(), key).Result()
		default:
			t.Fatalf("Redis has a %s under %s", kind, key)
		}
		if err != nil {
			t.Fatalf("%s %s: %v", kind, key, err)
		}
		all[key] = fmt.Sprint(value)
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// overStores runs a test over the process sandbox with the embedded store, for which redis is nil,
// and with a Redis of the test's own.
func overStores(t *testing.T, test func(t *testing.T, s harness.Setup, redis *harness.Redis)) {
	t.Helper()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, harness.Setup{Name: "file", Settings: harness.With(harness.Common, harness.Quick(t))}, nil)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redis := harness.RedisAlone(t)
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		all := harness.With(harness.Common, harness.Quick(t), harness.Settings{"REDIS_URL": redis.URL()})
		test(t, harness.Setup{Name: "redis", Settings: all}, redis)
	})
}

// TestL22Modes checks that neither a route nor the store tells what the mode of a journal forbids,
// also if the next server has another setting. The record of an execution is no part of its journal:
// it keeps the pending calls and the answer for clients that repeat a request.
func TestL22Modes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"full", "calls", "off"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			overStores(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) { testMode(t, s, redis, mode) })
		})
	}
}

func testMode(t *testing.T, setup harness.Setup, redis *harness.Redis, mode string) {
	s := harness.ServeAlone(t, setup, harness.Settings{"JOURNAL": mode})
	c := s.Alice()
	whole := c.Pause(t, canaries)
	wholeID := whole.Header.Get("Fermata-Execution")
	tellCanaries(t, c, whole)
	paused := c.Pause(t, canaries)
	id := paused.Header.Get("Fermata-Execution")
	checkMode(t, c, id, mode, false)
	checkMode(t, c, wholeID, mode, true)
	if mode == "off" {
		a := run(t, c, canaries)
		if len(a.Events) > 0 {
			t.Errorf("a live answer: %s, want the answer alone", names(a.Events))
		}
		tellCanaries(t, c, a.Answer)
	}

	// The next server has another setting, and goes on with an execution of this one.
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	s.Settings["JOURNAL"] = map[string]string{"full": "off", "calls": "full", "off": "full"}[mode]
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	tellCanaries(t, c, paused)
	for _, id := range []string{id, wholeID} {
		checkMode(t, c, id, mode, true)
	}
	checkKept(t, s, redis, mode)
}

// checkMode checks what the routes tell of an execution with a journal of this mode.
func checkMode(t *testing.T, c harness.Client, id, mode string, hasEnded bool) {
	t.Helper()
	told := views(t, c, id)
	if hasEnded {
		for _, stream := range []struct{ form, query string }{{eventStream, ""}, {ndjson, ""}, {eventStream, "?view=tool_calls"}} {
			status, body := ended(t, c, id, stream.form, stream.query)
			told["/events"+stream.query+" as "+stream.form] = fmt.Sprint(status, " ", body)
		}
	}
	found := map[string]bool{}
	for route, body := range told {
		for _, canary := range named(body, valueCanaries) {
			found[canary] = true
			if mode != "full" {
				t.Errorf("%s of a journal with the mode %s tells %s: %s", route, mode, canary, body)
			}
		}
		want := "200 "
		if mode == "off" && (strings.Contains(route, "/events") || strings.HasSuffix(route, id+"/calls")) {
			want = "404 "
		}
		if !strings.HasPrefix(body, want) {
			t.Errorf("%s of a journal with the mode %s: %s, want %s", route, mode, body, want)
		}
	}
	// Otherwise the test looks for the wrong texts.
	if mode == "full" && hasEnded && len(found) != len(valueCanaries) {
		t.Errorf("the routes tell %v, want all of %v", found, valueCanaries)
	}
	if mode == "calls" && hasEnded && !strings.Contains(told["/executions/"+id+"/calls"], `"call_002"`) {
		t.Errorf("the records of calls are missing: %s", told["/executions/"+id+"/calls"])
	}
}

// checkKept checks what the store of a server has. With the mode full it must find what it looks for
// with the others.
func checkKept(t *testing.T, s *harness.Server, redis *harness.Redis, mode string) {
	t.Helper()
	var k kept
	if redis != nil {
		k.readRedis(t, redis, mode)
	} else {
		k.readFiles(t, s, mode)
	}
	found := named(k.journals.String(), valueCanaries)
	switch {
	case mode == "full" && len(found) != len(valueCanaries):
		t.Errorf("the store has %v, want all of %v", found, valueCanaries)
	case mode != "full" && len(found) > 0:
		t.Errorf("with the mode %s the store keeps %v of journals", mode, found)
	}
	// Records have never held these.
	if found := named(k.records.String(), []string{codeCanary, resultCanary}); mode != "full" && len(found) > 0 {
		t.Errorf("with the mode %s the store keeps %v in records", mode, found)
	}
}

// kept is what a store has of journals, and of all the rest.
type kept struct{ journals, records strings.Builder }

func (k *kept) readRedis(t *testing.T, redis *harness.Redis, mode string) {
	t.Helper()
	for key, value := range keysIn(t, redis) {
		to := &k.records
		if strings.HasSuffix(key, ":journal") || strings.HasSuffix(key, ":summary") || strings.HasPrefix(key, "fermata-index") {
			to = &k.journals
		}
		to.WriteString(key + " " + value + "\n")
		if mode == "off" && strings.HasSuffix(key, ":journal") {
			t.Errorf("Redis has a journal: %s", key)
		}
	}
}

// readFiles reads the files of the embedded store, with their free pages: those of the file of
// records may have what records have had. Meanwhile the server does not run.
func (k *kept) readFiles(t *testing.T, s *harness.Server, mode string) {
	t.Helper()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, text := range keptInBuckets(t, filepath.Join(s.Settings["STATE_DIR"], recordsFile)) {
		to := &k.journals
		if name == "records" {
			to = &k.records
		}
		to.WriteString(text)
	}
	if text := keptInBuckets(t, filepath.Join(s.Settings["STATE_DIR"], archiveFile))["chapters"]; mode == "off" && text != "" {
		t.Errorf("the archive has events: %q", text)
	}
	for name, text := range stateFiles(t, s) {
		to := &k.journals
		if name == recordsFile {
			to = &k.records
		}
		to.Write(text)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
}
