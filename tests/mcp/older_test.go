package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

const (
	older = "2025-06-18"
	// asking begins a session of a client that can ask a person.
	asking = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	// paying runs a program that makes a call which needs approval.
	paying = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_program","arguments":` +
		`{"code":"from fermata_tools.shop import Shop\nShop.pay(amount=3)","toolsets":["shop.pay"]}}}`
)

// begin begins a session as older clients do, and returns the headers of its requests.
func begin(t *testing.T, c harness.Client, initialize string) map[string]string {
	t.Helper()
	session := must(t, c, nil, initialize).header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("there is no session id")
	}
	header := map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": older}
	if r := must(t, c, header, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.status != http.StatusAccepted {
		t.Fatalf("the session begins: %+v", r)
	}
	return header
}

// A sent is a message of the server.
type sent struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Message   string
		RequestID string
		Schema    struct{ Required []string } `json:"requestedSchema"`
	}
	Result struct {
		IsError           bool
		StructuredContent result
	}
}

// opened posts a message and returns what the server sends in the answer, which ends with the test.
func opened(t *testing.T, c harness.Client, header map[string]string, message string) <-chan sent {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/mcp", strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	c.Authorize(r)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	a, err := http.DefaultClient.Do(r) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	messages, ended := make(chan sent, 16), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(messages)
		defer func() { _ = a.Body.Close() }()
		for lines := bufio.NewScanner(a.Body); lines.Scan(); {
			var m sent
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found && json.Unmarshal([]byte(data), &m) == nil {
				messages <- m
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		for range messages { // The rest is not of interest.
		}
		<-ended
	})
	return messages
}

// next returns the next message of the server.
func next(t *testing.T, messages <-chan sent) sent {
	t.Helper()
	select {
	case m, more := <-messages:
		if !more {
			t.Fatal("the answer has ended")
		}
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("the server sends nothing")
	}
	return sent{}
}

// question returns the question of the server, which must come next.
func question(t *testing.T, messages <-chan sent) sent {
	t.Helper()
	q := next(t, messages)
	if q.Method != "elicitation/create" || !strings.Contains(q.Params.Message, `shop.pay with this input:`+"\n"+`{"amount":3}`) || len(q.Params.Schema.Required) != 1 {
		t.Fatalf("the server asks %+v", q)
	}
	return q
}

// answerTo returns the message that answers a question.
func answerTo(q sent, answer string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer)
}

const (
	yes = `"result":{"action":"accept","content":{"approve":true,"reason":"as I like"}}`
	no  = `"result":{"action":"accept","content":{"approve":false,"reason":"as I like"}}`
)

// ended returns the result of a program, whose answer has to end now. The question is withdrawn before.
func ended(t *testing.T, messages <-chan sent, q sent) result {
	t.Helper()
	if w := next(t, messages); w.Method != "notifications/cancelled" || `"`+w.Params.RequestID+`"` != string(q.ID) {
		t.Fatalf("the question is not withdrawn: %+v", w)
	}
	m := next(t, messages)
	m.Result.StructuredContent.Failed = m.Result.IsError
	return m.Result.StructuredContent
}

// shop returns a server with the toolset shop.
func shop(t *testing.T, s harness.Setup) *harness.Server {
	t.Helper()
	return harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, harness.NewUpstream(t), toolsetsFile)})
}

// TestOlderApproval asks clients of older versions of the protocol for approval over HTTP.
func TestOlderApproval(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := shop(t, s)
		c := server.Alice()
		mine := begin(t, c, asking)
		for name, x := range map[string]struct{ answer, status, text string }{
			"approved":   {yes, "completed", ""},
			"refused":    {no, "error", "refused: as I like"},
			"declined":   {`"result":{"action":"decline"}`, "error", "refused: the person declined"},
			"not asked":  {`"error":{"code":-32603,"message":"no screen"}`, "error", "refused: the client could not ask a person"},
			"incomplete": {`"result":{"action":"accept"}`, "error", "refused"},
		} {
			messages := opened(t, c, mine, paying)
			q := question(t, messages)
			if r := must(t, c, mine, answerTo(q, x.answer)); r.status != http.StatusAccepted {
				t.Fatalf("%s: the answer is answered with %d %s", name, r.status, r.body)
			}
			if r := ended(t, messages, q); r.Status != x.status || !strings.Contains(r.Error, x.text) || r.Failed != (x.status != "completed") {
				t.Errorf("%s: %+v", name, r)
			}
			if r := must(t, c, mine, answerTo(q, yes)); r.status < 400 {
				t.Errorf("%s: a second answer is answered with %d %s", name, r.status, r.body)
			}
		}
	})
}

// TestOlderWithoutElicitation runs programs for clients that cannot ask anybody: the call fails and says
// so, and nothing waits.
func TestOlderWithoutElicitation(t *testing.T) {
	server := shop(t, harness.ProcessSetup())
	c := server.Alice()
	for name, header := range map[string]map[string]string{
		"no elicitation": begin(t, c, initialize),
		"only addresses": begin(t, c, strings.Replace(asking, `"elicitation":{}`, `"elicitation":{"url":{}}`, 1)),
		"no session":     {"Mcp-Protocol-Version": older},
	} {
		if r := must(t, c, header, paying); !strings.Contains(r.body, "this tool needs approval and the client cannot ask for it") {
			t.Errorf("%s: %s", name, r.body)
		}
	}
}

// TestOlderElsewhere decides on a call over another route while a client is asked.
func TestOlderElsewhere(t *testing.T) {
	server := shop(t, harness.ProcessSetup())
	c := server.Alice()
	messages := opened(t, c, begin(t, c, asking), paying)
	q := question(t, messages)
	execution := strings.Split(string(q.ID), ":")[1]
	reply, err := c.Request(t.Context(), http.MethodPost, "/executions/"+execution+"/approvals", nil, map[string]any{"call": "call_001", "approve": true})
	if err != nil || reply.HTTPStatus != http.StatusAccepted {
		t.Fatalf("the approval: %v, %v", reply, err)
	}
	if r := ended(t, messages, q); r.Status != "completed" {
		t.Errorf("the program: %+v", r)
	}
}

// TestOlderLeaves ends the program of a client that goes away while it is asked.
func TestOlderLeaves(t *testing.T) {
	server := shop(t, harness.ProcessSetup())
	c := server.Alice()
	mine := begin(t, c, asking)
	for name, leave := range map[string]func(stop func()){
		"it cancels": func(func()) {
			must(t, c, mine, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		},
		"its connection closes": func(stop func()) { stop() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = post(t, ctx, c, mine, paying) // Whether there is an answer is not of interest.
			}()
			if err := harness.Within(20*time.Second, func() error { return listed(t, c, "paused") }); err != nil {
				t.Fatal(err)
			}
			leave(stop)
			<-answered
			err := harness.Within(20*time.Second, func() error {
				if listed(t, c, "paused") == nil {
					return errors.New("the program still waits")
				}
				return listed(t, c, "cancelled")
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestForeignSessions uses ids of sessions that are not the client's, and answers what was not asked.
func TestForeignSessions(t *testing.T) {
	server := shop(t, harness.ProcessSetup())
	alice, bob := server.Alice(), server.Bob()
	mine := begin(t, alice, asking)
	messages := opened(t, alice, mine, paying)
	q := question(t, messages)
	id := mine["Mcp-Session-Id"]
	with := func(id string) map[string]string {
		return map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": older}
	}
	for name, x := range map[string]struct {
		client  harness.Client
		header  map[string]string
		message string
		status  int
	}{
		"another's session":           {bob, mine, list, 404},
		"a chosen one":                {alice, with("chosen-by-the-client"), list, 404},
		"one that is edited":          {alice, with(strings.Replace(id, "asks.", "mute.", 1)), list, 404},
		"a long one":                  {alice, with(strings.Repeat("a.", 2000)), list, 404},
		"without a key":               {harness.Client{URL: server.URL}, mine, list, 401},
		"its own":                     {alice, mine, list, 200},
		"another's question":          {bob, begin(t, bob, asking), answerTo(q, yes), 404},
		"another's, no session":       {bob, nil, answerTo(q, yes), 404},
		"a question never asked":      {alice, mine, `{"jsonrpc":"2.0","id":"approve:nosuch:call_001",` + yes + `}`, 404},
		"a call that is not there":    {alice, mine, strings.Replace(answerTo(q, yes), "call_001", "call_009", 1), 404},
		"the id of no question":       {alice, mine, `{"jsonrpc":"2.0","id":7,` + yes + `}`, 400},
		"neither request nor answer":  {alice, mine, `{"jsonrpc":"2.0","id":"approve:x:call_001"}`, 400},
		"a result of the wrong shape": {alice, mine, answerTo(q, `"result":[]`), 400},
	} {
		if r := must(t, x.client, x.header, x.message); r.status != x.status {
			t.Errorf("%s: %d %.300s, want %d", name, r.status, r.body, x.status)
		}
	}
	if r := must(t, alice, mine, answerTo(q, yes)); r.status != http.StatusAccepted {
		t.Fatalf("after all that the answer counts: %+v", r)
	}
	if r := ended(t, messages, q); r.Status != "completed" {
		t.Errorf("the program: %+v", r)
	}
}

// TestWithoutJournal waits for programs, and asks for approvals, where no events tell of them.
func TestWithoutJournal(t *testing.T) {
	path := harness.WriteToolsets(t, harness.NewUpstream(t), toolsetsFile)
	for _, mode := range []string{"off", "calls"} {
		t.Run(mode, func(t *testing.T) {
			server := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"TOOLSETS": path, "JOURNAL": mode})
			c := server.Alice()
			session := connect(t, c, nil)
			left := run(t, session, "run_program", map[string]any{"code": "import time\ntime.sleep(1)\n'value'", "wait_ms": 0})
			if left.Status != "running" || left.Execution == "" {
				t.Fatalf("a program that is left running: %+v", left)
			}
			if end := run(t, session, "wait_for_program", map[string]any{"execution": left.Execution}); end.Status != "completed" || string(end.Value) != `"value"` {
				t.Errorf("its end: %+v", end)
			}
			mine := begin(t, c, asking)
			messages := opened(t, c, mine, paying)
			q := question(t, messages)
			if r := must(t, c, mine, answerTo(q, yes)); r.status != http.StatusAccepted {
				t.Fatalf("the answer: %+v", r)
			}
			if r := ended(t, messages, q); r.Status != "completed" {
				t.Errorf("the program: %+v", r)
			}
		})
	}
}
