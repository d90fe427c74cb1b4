package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/outputs"
)

// What servers say to each other, with every member set somewhere.
var (
	resume = engine.Resume{
		Principal: "jwt:acme:ada", Token: "t.o/k", Request: "5f", RequestID: "0123456789abcdef",
		Results: []core.Result{
			{CallID: "call_001", Value: json.RawMessage(`{"b":1.0,"a":12345678901234567890,"s":"\ud800<>é"}`), Message: json.RawMessage("null")},
			{CallID: "call_002", Value: json.RawMessage("null"), Failed: true, Message: json.RawMessage(`"no \u0041"`)},
		},
	}
	paused = core.Outcome{
		State: core.Paused, Session: "abcdefghijklmnopqrstu", Token: "t.o/k", RoundsLeft: new(7),
		Calls: []core.Call{{ID: "call_001", Name: "get-weather", Input: json.RawMessage(`{"b":1.0,"s":"\ud800<>"}`)}},
		Step:  core.Step{Round: 2, Calls: 3, Ran: 4 * time.Millisecond, Waited: 5 * time.Millisecond, Repeated: true},
	}
	ended = core.Outcome{
		State: core.Failed, Session: "abcdefghijklmnopqrstu", Stdout: "a\n\x00é<", Stderr: "warning",
		Reason: core.ExitedCode, Detail: "d", Code: -9, Value: json.RawMessage(`{"v":1.0}`), Ran: 1500 * time.Millisecond,
		Files: []core.OutputFile{
			{Session: "s1", ID: "f1", Name: "a.csv", Inherited: true, Input: &core.InputFile{
				Session: "s1", ID: "f1", Name: "a.csv", Size: 4, SHA256: "5f", Type: "text/csv", ReadOnly: true, Kind: "skill", Resource: "r", Version: 2,
			}},
			{Session: "s2", ID: "f2", Name: "b", Size: 5, Type: "image/png"},
		},
		Deleted: []string{"c"}, Skipped: core.Skipped{Reasons: map[string]int{"size": 1}, Names: []string{"d"}}, Undelivered: 3,
		Outputs: []outputs.Judged{
			{Path: "b", State: outputs.TooSmall, ID: "f2", Size: 5, Type: "image/png", Error: "file has 5 bytes, at least 6 were expected"},
			{Path: "turn_1/files/e", State: outputs.Missing, Error: "file not produced"},
		},
		Report: "Runtime error: execution_failed — d",
	}
)

// TestWire compares what is sent and what is read with the files in testdata, and what is
// read with testdata/older, which is what earlier versions sent. A change that breaks this
// test breaks servers of two versions that run side by side.
func TestWire(t *testing.T) {
	handedOver := resume
	handedOver.HandedOver = true
	cancelled := cancelRequest{Principal: "ada", RequestID: "0123456789abcdef"}
	over := &core.ExpiredError{Reason: "expired", Detail: "The pause ran out after 300 s"}
	decision := approveRequest{"ada", true, "5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f", "call_003", true, "fine"}
	unfit := &core.ApprovalError{CallID: "call_003", Problem: "does not wait for approval"}
	execution := cancelRequest{Execution: "5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f"}
	session := cancelRequest{Principal: "ada", Session: "abcdefghijklmnopqrstu"}
	outcomes := map[string]engine.Cancelling{"5d2e5e9b-0b7e-4b6c-9d4e-0a1b2c3d4e5f": engine.CancelDone}
	for _, c := range []struct {
		name string
		sent any
		// read decodes a file into what the receiver makes of it.
		read func(t *testing.T, body []byte) any
		want any
	}{
		{"resume", resumeRequestOf(resume), func(t *testing.T, body []byte) any { return decoded[resumeRequest](t, body).resume() }, handedOver},
		{"cancel", cancelled, func(t *testing.T, body []byte) any { return decoded[cancelRequest](t, body) }, cancelled},
		{"cancel_execution", execution, func(t *testing.T, body []byte) any { return decoded[cancelRequest](t, body) }, execution},
		{"cancel_session", session, func(t *testing.T, body []byte) any { return decoded[cancelRequest](t, body) }, session},
		{"session_cancelled", answer{Session: outcomes}, func(t *testing.T, body []byte) any { return decoded[answer](t, body).Session }, outcomes},
		{"approve", decision, func(t *testing.T, body []byte) any { return decoded[approveRequest](t, body) }, decision},
		{"approval_error", refused(t, unfit), func(t *testing.T, body []byte) any { return decoded[answer](t, body).err() }, unfit},
		{"decided", refused(t, engine.ErrDecided), errorIn, engine.ErrDecided.Error()},
		{"paused", answer{Outcome: outcomeOf(paused)}, outcomeIn, paused},
		{"ended", answer{Outcome: outcomeOf(ended)}, outcomeIn, ended},
		{"cancelling", answer{Cancelling: engine.CancelRequested}, func(t *testing.T, body []byte) any { return decoded[answer](t, body).Cancelling }, engine.CancelRequested},
		{"error", refused(t, engine.ErrInFlight), errorIn, engine.ErrInFlight.Error()},
		{"expired", refused(t, over), func(t *testing.T, body []byte) any { return decoded[answer](t, body).err() }, over},
		{"result_error", refused(t, &core.ResultError{CallID: "call_999"}), errorIn, (&core.ResultError{CallID: "call_999"}).Error()},
		{"results_error", refused(t, &core.ResultsError{Size: 12001, Limit: 12000}), errorIn, (&core.ResultsError{Size: 12001, Limit: 12000}).Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			golden, err := os.ReadFile(filepath.Join("testdata", c.name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			sent, err := api.Encode(c.sent)
			if err != nil || string(sent) != strings.TrimSuffix(string(golden), "\n") {
				t.Errorf("sent is\n%s (%v)\nwant\n%s", sent, err, golden)
			}
			bodies := [][]byte{golden}
			if older, err := os.ReadFile(filepath.Join("testdata", "older", c.name+".json")); err == nil {
				bodies = append(bodies, older)
			}
			for _, body := range bodies {
				if diff := cmp.Diff(c.want, c.read(t, body)); diff != "" {
					t.Errorf("read of %s (-want +got):\n%s", body, diff)
				}
			}
		})
	}
}

func decoded[T any](t *testing.T, body []byte) (v T) {
	t.Helper()
	if err := decode(body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func outcomeIn(t *testing.T, body []byte) any { return decoded[answer](t, body).Outcome.outcome() }

func errorIn(t *testing.T, body []byte) any { return decoded[answer](t, body).err().Error() }

func refused(t *testing.T, err error) answer {
	t.Helper()
	a, ok := refusal(err)
	if !ok {
		t.Fatalf("%v is not known", err)
	}
	return a
}

// TestKnownErrors checks that each error arrives as itself, and how an error is named that
// wraps two.
func TestKnownErrors(t *testing.T) {
	for _, known := range knownErrors {
		if got := refused(t, fmt.Errorf("a test: %w", known.err)); got.Error != known.name || !errors.Is(got.err(), known.err) {
			t.Errorf("%v is sent as %+v, which is read as %v", known.err, got, got.err())
		}
	}
	both := fmt.Errorf("%w: %w", engine.ErrOwnerAway, continuation.ErrUnavailable)
	for range 100 {
		if got := refused(t, both).Error; got != "unavailable" {
			t.Fatalf("an error that wraps two is sent as %q, want the first in the table", got)
		}
	}
	if a, ok := refusal(errors.New("a test")); ok {
		t.Errorf("an unknown error is sent as %+v", a)
	}
}

// refuses is an Executions that answers every request with an error.
type refuses struct {
	Executions
	err error
}

func (r refuses) Cancel(context.Context, engine.Cancel) (engine.Cancelling, error) {
	return "", r.err
}

// TestRefusalsInTheLog checks that the log of a server tells apart what the client has done
// wrong from what is wrong with the server.
func TestRefusalsInTheLog(t *testing.T) {
	k := peerKey(t, firstSecret)
	for err, level := range map[error]string{
		engine.ErrInFlight:                  "INFO",
		core.ErrExpired:                     "INFO",
		&core.ResultError{CallID: "call_1"}: "INFO",
		continuation.ErrUnavailable:         "ERROR",
		errors.New("a test"):                "ERROR",
	} {
		var log bytes.Buffer
		r := api.New(api.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		Register(r, refuses{err: err}, k, Limits{Body: 1000})
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, cancelPath, strings.NewReader(`{}`))
		request.Header.Set(signatureHeader, k.sign(time.Now(), cancelPath, hexHash([]byte(`{}`))))
		r.ServeHTTP(httptest.NewRecorder(), request)
		if got := log.String(); !strings.Contains(got, "level="+level) {
			t.Errorf("%v is logged as %q, want level %s", err, got, level)
		}
	}
}

// TestSilentServers asks servers that accept a connection and say nothing.
func TestSilentServers(t *testing.T) {
	k := peerKey(t, firstSecret)
	for name, c := range map[string]struct {
		address string
		ask     func(context.Context, *Client, string) error
		want    time.Duration
	}{
		"resume": {"http://x", func(ctx context.Context, c *Client, address string) error {
			_, err := c.Resume(ctx, address, resume)
			return err
		}, resumeTimeout},
		"cancel": {"http://x", func(ctx context.Context, c *Client, address string) error {
			_, err := c.Cancel(ctx, address, engine.Cancel{})
			return err
		}, cancelTimeout},
		"TLS": {"https://x", func(ctx context.Context, c *Client, address string) error {
			_, err := c.Resume(ctx, address, resume)
			return err
		}, dialTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := NewClient(k, 500)
				client.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
					here, there := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, there) }()
					return here, nil
				}
				began := time.Now()
				err := c.ask(t.Context(), client, c.address)
				if took := time.Since(began); !errors.Is(err, engine.ErrOwnerAway) || took != c.want {
					t.Errorf("got %v after %v, want ErrOwnerAway after %v", err, took, c.want)
				}
			})
		})
	}
}

// TestWireIncludes: an answer that is to carry the timeline carries it behind another server, too.
func TestWireIncludes(t *testing.T) {
	for _, include := range []bool{false, true} {
		body, err := api.Encode(answer{Outcome: outcomeOf(core.Outcome{State: core.Completed, Include: include})})
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded[answer](t, body).Outcome.outcome(); got.Include != include {
			t.Errorf("read of %s: include is %v", body, got.Include)
		}
	}
}
