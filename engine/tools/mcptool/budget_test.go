package mcptool

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/outgoing"
	"fermata/engine/tools/source"
)

// large is an input that the tool echo returns.
var large = `{"a":"` + strings.Repeat("x", 1<<18) + `"}`

// fill takes a whole budget of 1 MiB, and returns what gives it back. It reports false if some of it is taken.
func fill(b *outgoing.Budget) (release func(), whole bool) {
	all := []*outgoing.Holding{b.Hold("one"), b.Hold("two"), b.Hold("three")}
	whole = true
	for i, h := range all {
		whole = h.Grow([]int64{512 << 10, 256 << 10, 256 << 10}[i]) && whole
	}
	return func() {
		for _, h := range all {
			h.Release()
		}
	}, whole
}

// TestMemoryOfAnswersOverHTTP shows that a call fails for whose answer there is no memory, and nothing else does.
func TestMemoryOfAnswersOverHTTP(t *testing.T) {
	for name, o := range map[string]*mcp.StreamableHTTPOptions{"stream": {}, "JSON": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			budget := outgoing.NewBudget(1 << 20)
			s := webSource(t, sdkServer(o), func(o *Options) { o.Budget = budget })
			if _, err := call(t, s, "alice", "echo", large); err != nil {
				t.Fatal(err)
			}
			before, err := s.session(t.Context(), "alice")
			if err != nil {
				t.Fatal(err)
			}
			release, whole := fill(budget)
			if !whole {
				t.Error("the memory of an answer was not given back")
			}
			_, err = call(t, s, "alice", "echo", large)
			wantFailure(t, err, true, string(outgoing.Busy))
			release()
			if got, err := call(t, s, "alice", "echo", large); len(got) < 1<<18 || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if after, err := s.session(t.Context(), "alice"); after != before || err != nil {
				t.Errorf("the session has ended, %v", err)
			}
			if _, whole := fill(budget); !whole {
				t.Error("the memory of a failed call was not given back")
			}
		})
	}
}

// TestMemoryOfAnswersOfProcesses shows that a process waits for the memory of an answer, but not for ever.
func TestMemoryOfAnswersOfProcesses(t *testing.T) {
	budget := outgoing.NewBudget(1 << 20)
	s := hostileSource(t, "", func(o *Options) {
		o.Budget = budget
		o.times.room = 500 * time.Millisecond
	})
	release, _ := fill(budget)
	time.AfterFunc(100*time.Millisecond, release)
	if got, err := call(t, s, "alice", "echo", large); len(got) < 1<<18 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	release, whole := fill(budget)
	if !whole {
		t.Error("the memory of an answer was not given back")
	}
	defer release()
	_, err := call(t, s, "alice", "echo", large)
	wantFailure(t, err, true, string(errNoRoom))
	if got, err := call(t, s, "bob", "echo", `{}`); got != `{}` || err != nil {
		t.Errorf("a small answer needs memory: %s, %v", got, err)
	}
}

// TestLimitOfResults shows that the limit is for the value, and not for what the server sends beside it.
func TestLimitOfResults(t *testing.T) {
	s := hostileSource(t, "", nil)
	for limit, fits := range map[int64]bool{int64(len(large)): true, int64(len(large)) - 1: false} {
		if _, err := callFor(t, s, source.Call{Tool: "echo", Input: json.RawMessage(large), Principal: "alice", MaxResult: limit}); (err == nil) != fits {
			t.Errorf("a result of %d bytes with the limit %d: %v", len(large), limit, err)
		}
	}
}

// TestMemoryOfSeveralAnswers shows that an exchange gives the memory of each of its answers back, and that one which
// nobody ends keeps none.
func TestMemoryOfSeveralAnswers(t *testing.T) {
	budget := outgoing.NewBudget(1 << 20)
	_, x := withExchange(t.Context(), nil)
	for _, one := range []*exchange{x, x, exchangeOf(t.Context())} {
		line := budget.Hold("alice")
		if !line.Grow(1 << 18) {
			t.Fatal("an earlier answer has all memory")
		}
		one.keep(line)
	}
	x.end()
	if _, whole := fill(budget); !whole {
		t.Error("the memory of an answer was not given back")
	}
}
