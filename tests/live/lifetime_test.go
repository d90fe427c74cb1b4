package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestL24Files checks that nobody but the server's user can read what it keeps.
func TestL24Files(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Quick(t))
	c := s.Alice()
	tellCanaries(t, c, c.Pause(t, canaries))
	root := s.Settings["STATE_DIR"]
	err := harness.Within(harness.AtOnce, func() error {
		if text := stateFiles(t, s)[archiveFile]; !bytes.Contains(text, []byte(resultCanary)) {
			return errors.New("the archive does not have the journal")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		kept := strings.HasPrefix(filepath.Base(path), recordsFile)
		if open := info.Mode().Perm() & 0o077; open != 0 && (kept || path == root) {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if kept && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, want 0600", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestL24Redis checks that a dump of Redis tells nothing if the server has a secret for it.
func TestL24Redis(t *testing.T) {
	t.Parallel()
	redis := harness.RedisAlone(t, "--rdbcompression", "no")
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	canaries := canaries
	texts := append(slices.Clone(valueCanaries), "canary-in-title", "canary-in-label", "canary_tool", "alice", "execution.started", `"seq"`, "programmatic")
	canaries.Tools = append(slices.Clone(canaries.Tools), harness.Tools("canary_tool")...)
	request := map[string]any{
		"code": canaries.Code, "tools": canaries.Tools, "title": "canary-in-title", "labels": map[string]string{"about": "canary-in-label"},
	}
	for _, secret := range []string{"", "tests-of-a-secret-for-redis-0123456789"} {
		s, err := harness.StartServer(harness.With(harness.Common, harness.Quick(t), harness.Settings{
			"REDIS_URL": redis.URL(), "REDIS_SECRET": secret,
		}))
		if err != nil {
			t.Fatal(err)
		}
		c := s.Alice()
		tellCanaries(t, c, c.Pause(t, request))
		live := c.Pause(t, request)
		if err := redis.Client.Save(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		dump, err := os.ReadFile(filepath.Join(redis.Dir, "dump.rdb"))
		if err != nil {
			t.Fatal(err)
		}
		found := named(string(dump), texts)
		if secret == "" && len(found) != len(texts) {
			t.Errorf("without a secret the dump has %v, want all of %v", found, texts)
		}
		if secret != "" && len(found) > 0 {
			t.Errorf("with a secret the dump has %v", found)
		}
		tellCanaries(t, c, live)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := redis.Client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestL24Gone checks that a journal is gone from every route when its time has come, and after
// DELETE; and that Redis and the archive have none of it either.
func TestL24Gone(t *testing.T) {
	t.Parallel()
	for name, life := range map[string]string{"life": "3s", "delete": "1h"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overStores(t, func(t *testing.T, setup harness.Setup, redis *harness.Redis) {
				s := harness.ServeAlone(t, setup, harness.Settings{"JOURNAL_LIFE": life})
				testGone(t, s, redis, life)
			})
		})
	}
}

func testGone(t *testing.T, s *harness.Server, redis *harness.Redis, life string) {
	c := s.Alice()
	paused := c.Pause(t, canaries)
	id := paused.Header.Get("Fermata-Execution")
	following := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil)
	tellCanaries(t, c, paused)
	began := time.Now()
	following.until(t, "execution.ended")
	if life == "1h" {
		if status, _, body := get(t, c, http.MethodDelete, "/executions/"+id, nil); status != http.StatusNoContent {
			t.Fatalf("DELETE: got %d %s, want 204", status, body)
		}
		checkGone(t, c, id)
	} else {
		if status, body := ended(t, c, id, ndjson, ""); status != http.StatusOK || len(named(body, valueCanaries)) != len(valueCanaries) {
			t.Fatalf("%v after its end: got %d %s", time.Since(began), status, body)
		}
		// A reader that asks at the right moment gets the journal or nothing of it.
		err := harness.Within(30*time.Second, func() error {
			if status, _ := ended(t, c, id, ndjson, ""); status != http.StatusNotFound {
				return fmt.Errorf("the journal is there %v after its end", time.Since(began))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("the journal has gone after %v, too early", took)
		}
		checkGone(t, c, id)
	}
	// The next execution that ends makes the store clear up.
	c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	if redis != nil {
		err := harness.Within(harness.AtOnce, func() error {
			for key, value := range keysIn(t, redis) {
				index := strings.HasPrefix(key, "fermata-index")
				if !index && strings.Contains(key, id+"}:") || index && strings.Contains(value, id) {
					return fmt.Errorf("Redis has the execution in %s: %s", key, value)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return
	}
	time.Sleep(2 * time.Second)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{archiveFile, recordsFile} {
		for bucket, text := range keptInBuckets(t, filepath.Join(s.Settings["STATE_DIR"], file)) {
			if bucket != "records" && strings.Contains(text, id) {
				t.Errorf("%s of %s has the execution", bucket, file)
			}
		}
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	checkGone(t, s.Alice(), id)
}

// checkGone checks that no route knows an execution any more.
func checkGone(t *testing.T, c harness.Client, id string) {
	t.Helper()
	for route, told := range views(t, c, id) {
		switch {
		case strings.Contains(route, id) && told != `404 {"error":"Execution not found"}`:
			t.Errorf("%s: got %s, want 404", route, told)
		case strings.Contains(told, id), len(named(told, valueCanaries)) > 0:
			t.Errorf("%s tells of it: %s", route, told)
		}
	}
	for _, form := range []string{eventStream, ndjson} {
		if status, body := ended(t, c, id, form, ""); status != http.StatusNotFound {
			t.Errorf("%s: got %d %s, want 404", form, status, body)
		}
	}
}

// TestL10Space fills the space of journals with those of many principals. The oldest ended ones go,
// whoever has them; small ones count 4 KiB; and those of live executions stay.
func TestL10Space(t *testing.T) {
	t.Parallel()
	const principals, each, quota, space = 8, 6, 96 << 10, 384 << 10
	overStores(t, func(t *testing.T, setup harness.Setup, _ *harness.Redis) {
		var keys []string
		for i := range principals {
			keys = append(keys, fmt.Sprintf("user%d:key-%d", i, i))
		}
		s := harness.ServeAlone(t, setup, harness.Settings{
			"API_KEYS": strings.Join(keys, ","), "OPERATOR_KEYS": "watch:key-of-the-operator",
			"JOURNAL_QUOTA": strconv.Itoa(quota), "JOURNAL_SPACE": strconv.Itoa(space),
		})
		operator := harness.Client{URL: s.URL, Key: "key-of-the-operator"}
		client := func(i int) harness.Client { return harness.Client{URL: s.URL, Key: fmt.Sprintf("key-%d", i)} }
		print30 := harness.Program{Code: "print('x' * 30_000)"}
		// A live journal that is larger than its principal's quota harms nobody, least of all itself.
		live := client(0).Pause(t, harness.Program{Code: "print('y' * 200_000)\nprint(await ask())", Tools: harness.Tools("ask")})
		liveID := live.Header.Get("Fermata-Execution")
		last := make([][]string, principals)
		for range each {
			for i := range principals {
				a := client(i).Post(t, print30)
				a.Completes(t, strings.Repeat("x", 30_000)+"\n")
				last[i] = append(last[i], a.Header.Get("Fermata-Execution"))
			}
		}
		err := harness.Within(20*time.Second, func() error {
			total := 0
			for i := range principals {
				n := sizeOfJournals(t, client(i))
				if most := quota; i > 0 && n > most {
					return fmt.Errorf("the journals of principal %d have %d bytes, want at most %d", i, n, most)
				}
				total += n
			}
			if total > space {
				return fmt.Errorf("all journals have %d bytes, want at most %d", total, space)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		all := pages[summary](t, operator, "/executions", 200)
		if len(all) < 4 || len(all) > 2+(space-200_000)/30_000 {
			t.Errorf("%d executions are listed", len(all))
		}
		// What has gone is gone from every route, and the newest of those that came last are there.
		checkGone(t, client(1), last[1][0])
		if status, _ := ended(t, client(principals-1), last[principals-1][each-1], ndjson, ""); status != http.StatusOK {
			t.Errorf("the newest journal: got %d", status)
		}
		if printed := printedBy(t, client(0), liveID); printed != strings.Repeat("y", 200_000)+"\n" {
			t.Errorf("the live journal has %d bytes of output", len(printed))
		}
		client(0).Post(t, live.Continue(harness.Value("1"))).Completes(t, strings.Repeat("y", 200_000)+"\n1\n")

		// Journals are counted, not only their bytes: so many small ones have no room.
		for range quota/4096 + 10 {
			client(2).Post(t, harness.Program{Code: "1"}).Completes(t, "")
		}
		err = harness.Within(20*time.Second, func() error {
			if n := len(pages[summary](t, client(2), "/executions", 200)); n > quota/4096 {
				return fmt.Errorf("%d small journals are kept, want at most %d", n, quota/4096)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// printedBy returns what the events tell that an execution has printed to stdout.
func printedBy(t *testing.T, c harness.Client, id string) string {
	t.Helper()
	var page struct{ Data []event }
	look(t, c, "/executions/"+id+"/events", &page)
	var printed strings.Builder
	for _, e := range page.Data {
		if e.Stream == "stdout" {
			printed.WriteString(e.Text)
		}
	}
	return printed.String()
}

// sizeOfJournals returns how many bytes the events of all executions that a client sees have, each
// journal counted as at least 4 KiB.
func sizeOfJournals(t *testing.T, c harness.Client) (total int) {
	t.Helper()
	for _, x := range pages[summary](t, c, "/executions", 200) {
		var page struct{ Data []json.RawMessage }
		status, _, body := get(t, c, http.MethodGet, "/executions/"+x.ID+"/events", nil)
		if status == http.StatusNotFound {
			continue // It has gone in between.
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		size := 0
		for _, e := range page.Data {
			size += len(e)
		}
		total += max(size, 4096)
	}
	return total
}
