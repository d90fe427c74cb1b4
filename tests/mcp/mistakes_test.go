package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestArgumentsInStrings sends lists and numbers as some clients do: as strings, or with a decimal point.
func TestArgumentsInStrings(t *testing.T) {
	c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	for _, arguments := range []string{`"toolsets":"[]"`, `"timeout":"5000"`, `"timeout":5000.0`} {
		r := must(t, c, nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_program","arguments":{"code":"print(6*7)",`+arguments+`}}}`)
		if !strings.Contains(r.body, `42\\n`) && !strings.Contains(r.body, `"42`) || strings.Contains(r.body, `"isError":true`) {
			t.Errorf("%s: got %.500s", arguments, r.body)
		}
	}
}

// TestWrongArguments makes the mistakes that models make with arguments. The answer names the argument, and
// what is allowed.
func TestWrongArguments(t *testing.T) {
	server := harness.Serve(t, harness.ProcessSetup(), nil)
	for arguments, want := range map[string]string{
		`[]`:                                     "the arguments must be an object",
		`"print(1)"`:                             "the arguments must be an object",
		`{"code":5}`:                             "code must be a string",
		`{"code":"","lang":"bash"}`:              "lang is not an argument of this tool",
		`{"code":"1","timeout":"5s"}`:            "timeout must be a whole number without a decimal point",
		`{"code":"1","timeout":1.5}`:             "timeout must be a whole number without a decimal point",
		`{"code":"1","toolsets":"weather, a"}`:   "toolsets must be a list",
		`{"code":"1","toolsets":["weather",{}]}`: "toolsets.1 must be a string",
	} {
		r := must(t, server.Alice(), nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_program","arguments":`+arguments+`}}`)
		var message struct {
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
		}
		if err := json.Unmarshal([]byte(data(r.body)), &message); err != nil || len(message.Result.Content) != 1 {
			t.Errorf("%s: got %.500s, %v, want a result", arguments, r.body, err)
			continue
		}
		if got := message.Result; !got.IsError || got.Content[0].Text != want {
			t.Errorf("%s: got %+v, want the error %q", arguments, got, want)
		}
	}
}

// TestWrongMessages sends what is no message of JSON-RPC, or has an id that would not come back as it was.
func TestWrongMessages(t *testing.T) {
	server := harness.Serve(t, harness.ProcessSetup(), nil)
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:              "id must be a string or a whole number",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:             "id must be a string or a whole number",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:               "id must be a string or a whole number",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`: "id must be a string or a whole number",
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                "jsonrpc must be ",
		`{"id":1,"method":"ping"}`:                                "jsonrpc must be ",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:    "is not a message of JSON-RPC",
	} {
		if r := must(t, server.Alice(), nil, message); r.status != 400 || !strings.Contains(r.body, want) {
			t.Errorf("%s: got %d %.300s, want 400 and %q", message, r.status, r.body, want)
		}
	}
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"a","method":"nonsense"}`: `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"there is no method \"nonsense\""}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`: `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"invalid request: missing required \"params\""}}`,
	} {
		if r := must(t, server.Alice(), nil, message); r.status != 400 || r.body != want {
			t.Errorf("%s: got %d %.300s, want 400 and %s", message, r.status, r.body, want)
		}
	}
	if r := must(t, server.Alice(), nil, list); strings.Contains(r.body, `"public"`) || !strings.Contains(r.body, `"cacheScope":"private"`) {
		t.Errorf("got %.300s, want a list that is for this client only", r.body)
	}
}

// TestWrongLines sends lines to fermata mcp that are no messages: each is answered with an error, and what
// follows is heard.
func TestWrongLines(t *testing.T) {
	server := harness.Serve(t, harness.ProcessSetup(), nil)
	const broken, refused = -32700, -32600
	wrong := []struct {
		line, id string
		code     int
	}{
		{"nonsense", "null", broken},
		{`{"jsonrpc":"2.0","id":2,"method":"ping"`, "null", broken},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":5}}`, "3", broken},
		{`{"jsonrpc":"2.0","id":"4","method":5}`, `"4"`, broken},
		{`{"jsonrpc":"2.0","id":7,"method":"nonsense"}`, "7", -32601},
		{"[" + list + "]", "null", refused},
		{`{"jsonrpc":"1.0","id":5,"method":"ping"}`, "5", refused},
		{`{"jsonrpc":"2.0","id":6.5,"method":"ping"}`, "null", refused},
		{strings.Repeat("x", 5<<20), "null", refused},
	}
	for name, environ := range map[string][]string{
		"own programs": nil,
		"a server":     {"FERMATA_URL=" + server.URL + "/mcp", "FERMATA_API_KEY=key-a"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := agent(t, environ...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdin, stdout := startPiped(t, cmd)
			hangs := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer hangs.Stop()
			lines := []string{initialize, "\r"}
			for _, w := range wrong {
				lines = append(lines, w.line)
			}
			text := strings.Join(append(lines, list, ""), "\n")
			writing := make(chan error, 1)
			go func() {
				_, err := io.WriteString(stdin, text)
				writing <- err
			}()
			got := map[string]int{}
			answers := 0
			for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
				var message struct {
					ID    json.RawMessage
					Error struct{ Code int }
				}
				if err := json.Unmarshal(scanner.Bytes(), &message); err != nil {
					t.Errorf("stdout has %.300q", scanner.Text())
				}
				got[fmt.Sprint(string(message.ID), " ", message.Error.Code)]++
				if answers++; answers == len(wrong)+2 {
					_ = stdin.Close() // It may have ended already.
				}
			}
			if err := <-writing; err != nil {
				t.Errorf("it does not read: %v", err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v\n%.2000s", err, stderr.String())
			}
			want := map[string]int{"0 0": 1, "1 0": 1}
			for _, w := range wrong {
				want[fmt.Sprint(w.id, " ", w.code)]++
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the answers by id and code are %v, want %v\n%.2000s", got, want, stderr.String())
			}
		})
	}
}
