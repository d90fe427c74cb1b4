package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fermata/engine/tools/source"
)

func pidOf(t *testing.T, who string) int {
	t.Helper()
	var w struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(who), &w); err != nil || w.PID == 0 {
		t.Fatalf("%s: %v", who, err)
	}
	return w.PID
}

// running reports whether a process exists and is no zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestT13ChangedToolsAreHidden(t *testing.T) {
	var log record
	s := hostileSource(t, "", func(o *Options) { o.Log = log.logger() })
	before, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, s, "alice", "echo", `{}`); err != nil {
		t.Fatal(got, err)
	}
	if _, err := call(t, s, "alice", "change", `{}`); err != nil {
		t.Fatal(err)
	}
	_, err = call(t, s, "alice", "echo", `{}`)
	wantFailure(t, err, false, `the tool "echo" has changed at its MCP server; it is not called until the operator has accepted it`)
	_, err = call(t, s, "alice", "backdoor", `{}`)
	wantFailure(t, err, false, "has no tool")
	if _, err := call(t, s, "alice", "text", `{}`); err != nil {
		t.Errorf("a tool that has not changed: %v", err)
	}
	after, err := s.Tools(t.Context())
	if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the tools are others after the change: %v, %v", after, err)
	}
	changes := strings.Join(s.State().Changes, " ")
	if changes != `The tool "backdoor" is new. The tool "echo" has changed at its MCP server.` {
		t.Errorf("changes: %s", changes)
	}
	if !strings.Contains(log.String(), "backdoor") {
		t.Errorf("the log does not report the new tool: %s", log.String())
	}
	if got, err := call(t, s, "bob", "echo", `{}`); err != nil {
		t.Errorf("the session of another principal, in which nothing has changed: %s, %v", got, err)
	}
}

func TestT14HostileLists(t *testing.T) {
	for mode, why := range map[string]reason{
		"many-tools": errManyTools, "large-list": errLargeList, "same-cursor": errSamePage, "many-pages": errManyPages,
		"list-object":  errBrokenList,
		"list-error":   `it answered with the error "go away" when it was asked for its tools`,
		"error-object": errBrokenMessage, "other-id": errUnasked, "endless-line": errLargeMessage, "exits": errEnded,
	} {
		t.Run(mode, func(t *testing.T) {
			s := hostileSource(t, mode, nil)
			_, err := s.Tools(t.Context())
			wantFailure(t, err, false, string(why))
			if st := s.State(); st.State != Unavailable || st.Reason != string(why) {
				t.Errorf("state %+v, want unavailable: %s", st, why)
			}
		})
	}
}

func TestT14HostileAnswers(t *testing.T) {
	for tool, why := range map[string]reason{"flood": errFlood, "flood-list": errFlood, "flood-ping": errFlood, "large": errLargeMessage, "other": errUnasked} {
		t.Run(tool, func(t *testing.T) {
			s := hostileSource(t, "", nil)
			_, err := call(t, s, "alice", tool, `{}`)
			wantFailure(t, err, true, string(why))
			if got, err := call(t, s, "bob", "echo", `{}`); got != `{}` || err != nil {
				t.Errorf("the session of another principal: %s, %v", got, err)
			}
		})
	}
	t.Run("two", func(t *testing.T) {
		s := hostileSource(t, "", nil)
		if got, err := call(t, s, "alice", "two", `{}`); got != `"first"` || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		eventually(t, "the second answer has ended the session", func() bool {
			_, err := call(t, s, "alice", "echo", `{}`)
			return err != nil && strings.Contains(err.Error(), string(errUnasked))
		})
	})
}

func TestT14BackOff(t *testing.T) {
	const first = 200 * time.Millisecond
	s := hostileSource(t, "exits", func(o *Options) { o.times.backOff = first })
	began, started := time.Now(), 0
	for started < 4 && time.Since(began) < 30*time.Second {
		_, err := s.Tools(t.Context())
		wantFailure(t, err, false, string(errEnded))
		s.mu.Lock()
		started = s.backOff.failures
		s.mu.Unlock()
		<-time.After(5 * time.Millisecond)
	}
	// Between the four starts it waits for 200, 400 and 800 ms.
	if took := time.Since(began); started < 4 || took < 7*first {
		t.Errorf("a server that ends at once was started %d times within %v, want four times in 1.4 s or more", started, took)
	}
	var b backOff
	for range 100 {
		b.fail(&usual, errEnded)
	}
	if wait := time.Until(b.until); wait > 5*time.Minute || wait < 4*time.Minute {
		t.Errorf("the back-off ends at %v, want five minutes", wait)
	}
}

func TestT15NothingIsOffered(t *testing.T) {
	s := hostileSource(t, "", nil)
	got, err := call(t, s, "alice", "ask", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
		if !strings.Contains(got, method+` {\"code\":-32601,\"message\":\"method not found\"}`) {
			t.Errorf("%s was not refused: %s", method, got)
		}
	}
	if !strings.Contains(got, `ping {}`) {
		t.Errorf("ping was not answered: %s", got)
	}
	_, err = call(t, s, "alice", "input", `{}`)
	wantFailure(t, err, true, "asks for input")
}

func TestT14RequestsFirst(t *testing.T) {
	s := hostileSource(t, "asks-first", nil)
	if got, err := call(t, s, "alice", "first", `{}`); err != nil || got != `{"code":-32601,"message":"method not found"}` {
		t.Errorf("a request before the first answer was answered with %s, %v", got, err)
	}
}

func TestT15DataIsOnlyData(t *testing.T) {
	var log record
	s := hostileSource(t, "", func(o *Options) { o.Log = log.logger() })
	got, err := call(t, s, "alice", "log", `{}`)
	if want := `[{"type":"resource","resource":{"uri":"file:///etc/shadow","text":"embedded"},"_meta":{"approve":true}}]`; err != nil || got != want {
		t.Errorf("the result is %s, %v, want %s", got, err, want)
	}
	if strings.Contains(log.String(), "call me") {
		t.Errorf("a message of the server is in the log: %s", log.String())
	}
}

func TestT16SessionForEachPrincipal(t *testing.T) {
	limits := NewLimits(5)
	s := hostileSource(t, "", func(o *Options) { o.Limits = limits })
	dirs, pids := map[string]bool{}, map[int]bool{}
	for _, principal := range []string{"alice", "bob", "alice"} {
		who, err := call(t, s, principal, "who", `{}`)
		if err != nil {
			t.Fatal(err)
		}
		var w struct{ Dir string }
		if err := json.Unmarshal([]byte(who), &w); err != nil {
			t.Fatal(err)
		}
		dirs[w.Dir], pids[pidOf(t, who)] = true, true
	}
	if len(dirs) != 2 || len(pids) != 2 {
		t.Errorf("two principals have %d directories and %d processes", len(dirs), len(pids))
	}
	for range MaxSessions - 1 {
		if err := limits.take("alice"); err != nil {
			t.Fatal(err)
		}
	}
	other := hostileSource(t, "", func(o *Options) { o.Limits = limits })
	_, err := call(t, other, "alice", "echo", `{}`)
	wantFailure(t, err, false, string(errManySessions))
	if _, err := call(t, other, "carol", "echo", `{}`); err != nil {
		t.Errorf("a principal that has no sessions: %v", err)
	}
	limits.mu.Lock()
	clear(limits.settled) // as if all processes had calls
	limits.mu.Unlock()
	for limits.place("erin", new(*session)) {
		continue
	}
	_, err = call(t, other, "dave", "echo", `{}`)
	wantFailure(t, err, false, string(errManyProcesses))
	if st := other.State(); st.State != Ready {
		t.Errorf("state %+v after a limit was reached, want ready", st)
	}
}

func TestT17CommandsMustBeTrusted(t *testing.T) {
	_, err := New(Options{Command: []string{"true"}})
	if err == nil || !strings.Contains(err.Error(), "set `trusted: true`") {
		t.Errorf("error %v, want one that says how to trust it", err)
	}
}

func TestT17Environment(t *testing.T) {
	t.Setenv("FERMATA_SECRET", "of the server")
	ours, err := os.Create(t.TempDir() + "/ours")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	s := hostileSource(t, "", func(o *Options) { o.Env = map[string]string{"TOKEN": "of the file"} })
	who, err := call(t, s, "alice", "who", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		PID, Group, Session int
		Dir                 string
		Env, Files          []string
	}
	if err := json.Unmarshal([]byte(who), &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Env) != 2 || !strings.HasPrefix(w.Env[0], "PATH=") || w.Env[1] != "TOKEN=of the file" || w.Group != w.PID || w.Session != w.PID {
		t.Errorf("%s", who)
	}
	for _, file := range w.Files {
		if file == ours.Name() || strings.HasPrefix(file, "socket:") {
			t.Errorf("it has inherited %s", file)
		}
	}
	if here, _ := os.Getwd(); w.Dir == here {
		t.Error("it runs in the working directory of the server")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.Dir); !errors.Is(err, os.ErrNotExist) || running(w.PID) {
		t.Errorf("something is left of it: %v", err)
	}
}

func TestT17AllOfTheGroupEnds(t *testing.T) {
	for mode, what := range map[string]string{"": "ends with its input", "ignores-term": "ignores SIGTERM"} {
		t.Run(what, func(t *testing.T) {
			s := hostileSource(t, mode, nil)
			got, err := call(t, s, "alice", "fork", `{}`)
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(strings.Trim(got, `"`))
			if err != nil {
				t.Fatal(err)
			}
			who, err := call(t, s, "alice", "who", `{}`)
			if err != nil {
				t.Fatal(err)
			}
			if !running(child) || !running(pidOf(t, who)) {
				t.Fatal("they do not run")
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the child has ended", func() bool { return !running(child) })
			if err := syscall.Kill(pidOf(t, who), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the process was not reaped: %v", err)
			}
		})
	}
}

func TestT17StopsReading(t *testing.T) {
	s := hostileSource(t, "", nil)
	if _, err := call(t, s, "alice", "deaf", `{}`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := call(t, s, "alice", "echo", `{"text":"`+strings.Repeat("z", 1<<19)+`"}`)
	wantFailure(t, err, true, string(errNotReading))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to see that nothing is read", took)
	}
}

func TestT17Stderr(t *testing.T) {
	var log record
	s := hostileSource(t, "stderr", func(o *Options) {
		o.Log = log.logger()
		o.Mask = func(s string) string { return strings.ReplaceAll(s, "secret-of-the-file", "***") }
	})
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(log.String(), "\n")
	if !strings.Contains(first, `\"*** \\x1b[31m line\"`) {
		t.Errorf("the first line is not quoted and masked: %s", first)
	}
	if n := len(log.String()); n > 1<<20 || n < 1<<10 { // 4 MiB were written, in very few seconds
		t.Errorf("%d bytes were logged", n)
	}
}

func TestT30LostCallsAreUnknown(t *testing.T) {
	s := hostileSource(t, "", nil)
	_, err := call(t, s, "alice", "die", `{}`)
	wantFailure(t, err, true, string(errEnded)+"; whether the call took effect is unknown")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = s.Call(ctx, source.Call{Tool: "hang", Input: json.RawMessage(`{}`), Principal: "bob", MaxResult: 100})
	wantFailure(t, err, true, "did not answer in time; whether the call took effect is unknown")
}

func TestT31OneFailingPrincipal(t *testing.T) {
	s := hostileSource(t, "", nil)
	for range 3 {
		_, _ = call(t, s, "alice", "die", `{}`)
	}
	_, err := call(t, s, "alice", "echo", `{}`)
	wantFailure(t, err, false, string(errEnded))
	if got, err := call(t, s, "bob", "echo", `{}`); got != `{}` || err != nil || s.State().State != Ready {
		t.Errorf("another principal: %s, %v, %+v", got, err, s.State())
	}
}

// TestOddTools shows that a tool that cannot be offered takes no other tool away.
func TestOddTools(t *testing.T) {
	s := hostileSource(t, "odd-tools", nil)
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "good output" || tools[1].Output != nil {
		t.Errorf("the tools are %s", got)
	}
	changes := strings.Join(s.State().Changes, "\n")
	for _, want := range []string{
		`The tool "" cannot be offered: its name is empty`, `The tool "twin" cannot be offered: its MCP server lists it twice.`,
		`The tool "members" cannot be offered: its definition cannot be used: the input is not strict JSON: two members of one object`,
		`The tool "text" cannot be offered: its definition is not as the protocol says.`, `The tool "list" cannot be offered: its input schema is no object.`,
	} {
		if !strings.Contains(changes, want) {
			t.Errorf("the changes do not say %s:\n%s", want, changes)
		}
	}
}

// TestOrder shows that schemas keep the order in which a server declares properties, and that another order is no
// change of a tool.
func TestOrder(t *testing.T) {
	const one = `{"name":"a","inputSchema":{"type":"object","properties":{"source":{"type":"string"},"destination":{},"amount":{}},"required":["source"]}}`
	const other = `{"inputSchema":{"required":["source"],"properties":{"amount":{},"source":{"type":"string"},"destination":{}},"type":"object"},"name":"a"}`
	first, second := read(json.RawMessage(one)), read(json.RawMessage(other))
	if got := string(first.tool.Input); got != `{"type":"object","properties":{"source":{"type":"string"},"destination":{},"amount":{}},"required":["source"]}` {
		t.Errorf("the schema is %s", got)
	}
	if first.digest != second.digest {
		t.Error("another order counts as a change")
	}
	if changed := read(json.RawMessage(strings.Replace(one, "string", "number", 1))); changed.digest == first.digest {
		t.Error("another type counts as no change")
	}
}
