package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// A start is a program with what the console shows of it.
type start struct {
	harness.Program
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// runs starts a program that nobody waits for. It is cancelled when the test ends.
func runs(t *testing.T, c harness.Client, s start) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Send(ctx, s) // It is cancelled, or ends.
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// pauses starts a program that pauses, and returns its pause and the id of its execution.
func pauses(t *testing.T, c harness.Client, s start) (harness.Answer, string) {
	t.Helper()
	a := c.Pause(t, s)
	return a, executionOf(t, a)
}

// executionOf returns the id of the execution that an answer belongs to.
func executionOf(t *testing.T, a harness.Answer) string {
	t.Helper()
	id := a.Header.Get("Fermata-Execution")
	if id == "" {
		t.Fatalf("the answer does not name its execution: %v", a.Header)
	}
	return id
}

// serve returns a server that the tests of this folder share.
func serve(t *testing.T, changes harness.Settings) *harness.Server {
	t.Helper()
	return harness.Serve(t, harness.ProcessSetup(), changes)
}

// dinner is a program that prints and then waits in its fifth line.
var dinner = harness.Program{
	Code: harness.Py(`
		print("looking for a table")
		import sys
		print("\x1b[31mno table\x1b[0m yet", file=sys.stderr)

		booking = await book_table(city="Lisbon", people=4, number=12345678901234567890)
		print("booked", booking["reference"])
	`),
	Tools: harness.Tools("book_table"),
}

// TestWatch signs in, follows a program while it prints, and cancels it.
func TestWatch(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	runs(t, server.Alice(), start{Program: harness.Program{Code: "for i in range(10_000):\n    print('tick', i)\n    await asyncio.sleep(0.1)\n"}, Title: "Ticking", Labels: map[string]string{"team": "clocks"}})
	tb := newTab(t, server.URL)
	tb.open()
	tb.see("h1", "Sign in")
	tb.write("#key", "no-such-key")
	tb.click("button", "Open the console", reads(".failure", "Invalid or missing API key"))
	tb.write("#key", "key-a")
	tb.click("button", "Open the console", found("h1", "Executions")+" !== undefined")

	tb.see(".execution a", "Ticking")
	tb.see(".tag", "team: clocks")
	tb.click("a", "Ticking", found("h1", "Ticking")+" !== undefined")
	tb.see(".pill", "Running")
	tb.read(".output", "tick ")
	const last = `Number([...document.querySelectorAll(".output .row")].at(-1).innerText.split(" ")[1])`
	seen := ask[int](tb, last)
	tb.wait("more comes", fmt.Sprintf("%s > %d", last, seen+10))
	tb.shoot("running")

	tb.click("button", "Cancel", `document.querySelector("dialog") !== null`)
	tb.click("dialog button", "Keep it", `document.querySelector("dialog") === null`)
	tb.see(".pill", "Running")
	tb.click("button", "Cancel", `document.querySelector("dialog") !== null`)
	tb.click("dialog button", "Cancel the execution", found(".pill", "Cancelled")+" !== undefined")
	tb.see(".end h2", "Cancelled")

	tb.click("button", "Forget", `document.querySelector("dialog") !== null`)
	tb.click("dialog button", "Forget it", found("h1", "Executions")+" !== undefined")
	tb.wait("the list has forgotten it", found("a", "Ticking")+" === undefined")
	tb.clean()
}

// TestPause looks at a program that waits, while its client answers it.
func TestPause(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	a, id := pauses(t, server.Alice(), start{Program: dinner, Title: "Dinner"})
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.see(".execution .pill", "Paused")
	tb.click("a", "Dinner", found("h1", "Dinner")+" !== undefined")
	tb.see(".waiting h2", "Waits for 1 call")
	tb.read(".waiting h3", "book_table")
	// JavaScript's numbers would change it.
	tb.read(".waiting .value", "12345678901234567890")
	tb.see(".mark", "waits for book_table")
	if line := ask[string](tb, `document.querySelector("[data-line]").dataset.line`); line != "5" {
		t.Errorf("line %s is marked, want 5", line)
	}
	tb.read(".output .of-stdout", "looking for a table")
	tb.read(".output .of-stderr", `\x1b[31mno table\x1b[0m yet`)
	tb.shoot("paused")

	server.Alice().Post(t, a.Continue(harness.Value(`{"reference":"LX-7"}`))).Completes(t, "looking for a table\nbooked LX-7\n")
	tb.see(".pill", "Completed")
	tb.read(".output", "booked LX-7")
	tb.click(".calls .tool", "book_table", `document.querySelector(".call-detail h3")?.checkVisibility()`)
	tb.read(".call-detail", "LX-7")
	tb.shoot("completed")
	if got := ask[string](tb, "location.hash"); got != "#/executions/"+id {
		t.Errorf("the address is %s", got)
	}
	// The same view once more, of a past execution.
	tb.call(reload)
	tb.see(".pill", "Completed")
	tb.read(".output", "booked LX-7")
	tb.clean()
}

// TestFilters narrows the list down.
func TestFilters(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	alice := server.Alice()
	for i := range 60 {
		alice.Post(t, start{Program: harness.Program{Code: "print(1)"}, Title: fmt.Sprintf("Number %d", i), Labels: map[string]string{"parity": []string{"even", "odd"}[i%2]}}).Completes(t, "1\n")
	}
	alice.Post(t, start{Program: harness.Program{Code: "1/0"}, Title: "Broken"})
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.wait("a page is full", `document.querySelectorAll(".execution").length === 50`)
	tb.click("button", "Older", found("a", "Number 0")+" !== undefined")
	tb.click("button", "Newer", found("a", "Broken")+" !== undefined")
	tb.click("button.chip", "Failed", `document.querySelectorAll(".execution").length === 1`)
	tb.see("a", "Broken")
	tb.click("button.chip", "Failed", `document.querySelectorAll(".execution").length === 50`)
	tb.write("#search", "number 59")
	tb.wait("one title is left", `document.querySelectorAll(".execution").length === 1`)
	tb.write("#search", "")
	tb.click(".execution .tag", "parity: even", `document.querySelectorAll(".execution").length === 30`)
	tb.click("button.chip", "Remove the label parity:even", `document.querySelectorAll(".execution").length === 50`)
	tb.write("#search", "no such title")
	tb.see("h2", "Nothing matches")
	tb.click("button", "Clear the filters", `document.querySelectorAll(".execution").length === 50`)
	tb.clean()
}

// TestCutOff kills the server under the eyes of the reader.
func TestCutOff(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	a, _ := pauses(t, server.Alice(), start{Program: dinner, Title: "Dinner"})
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.click("a", "Dinner", found("h1", "Dinner")+" !== undefined")
	tb.see(".pill", "Paused")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	tb.read(".notice", "The stream broke off")
	tb.shoot("cut-off")
	server.Settings["ADDR"] = strings.TrimPrefix(server.URL, "http://")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	tb.click("button", "Try now", `document.querySelector(".execution-view").dataset.link === "live"`)
	server.Alice().Post(t, a.Continue(harness.Value(`{"reference":"LX-7"}`)))
	tb.see(".pill", "Completed")
	tb.wait("nothing is missing, and nothing is there twice", `[...document.querySelectorAll(".output .of-stdout")].map((e) => e.innerText).join("|") === "looking for a table|booked LX-7"`)
	tb.clean()
}

// TestWithoutEvents looks at executions of servers that keep less.
func TestWithoutEvents(t *testing.T) {
	t.Parallel()
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		server := serve(t, harness.Settings{"JOURNAL": "off"})
		pauses(t, server.Alice(), start{Program: dinner, Title: "Dinner"})
		tb := newTab(t, server.URL)
		tb.enter("key-a")
		tb.click("a", "Dinner", found("h1", "Dinner")+" !== undefined")
		tb.read(".notice", "its summary alone")
		tb.see(".pill", "Paused")
		playOnce(tb)
		tb.clean()
	})
	t.Run("calls", func(t *testing.T) {
		t.Parallel()
		server := serve(t, harness.Settings{"JOURNAL": "calls"})
		a, _ := pauses(t, server.Alice(), start{Program: dinner, Title: "Dinner"})
		server.Alice().Post(t, a.Continue(harness.Value(`{"reference":"LX-7"}`)))
		tb := newTab(t, server.URL)
		tb.enter("key-a")
		tb.click("a", "Dinner", found("h1", "Dinner")+" !== undefined")
		tb.see(".calls .tool", "book_table")
		tb.see(".nothing", "The server keeps no code.")
		tb.see(".nothing", "The server keeps no output.")
		tb.clean()
	})
}

// TestOperator looks at the executions of two principals with an operator's key.
func TestOperator(t *testing.T) {
	t.Parallel()
	server := serve(t, harness.Settings{"OPERATOR_KEYS": "eve:key-operator"})
	pauses(t, server.Alice(), start{Program: dinner, Title: "Alice's dinner"})
	pauses(t, server.Bob(), start{Program: dinner, Title: "Bob's dinner"})
	tb := newTab(t, server.URL)
	tb.enter("key-operator")
	tb.see("a", "Alice's dinner")
	tb.read(".sub", "of bob")
	tb.write("#principal", "bob")
	tb.press("Enter")
	tb.wait("only Bob's are left", found("a", "Alice's dinner")+" === undefined && "+found("a", "Bob's dinner")+" !== undefined")
	tb.click("a", "Bob's dinner", found("h1", "Bob's dinner")+" !== undefined")
	tb.click("button", "Cancel", `document.querySelector("dialog") !== null`)
	tb.click("dialog button", "Cancel the execution", found(".pill", "Cancelled")+" !== undefined")
	tb.clean()
}

// TestConsoleOff checks that there is no console if the operator wants none, and that the console asks
// for no key where the server wants none.
func TestConsoleOff(t *testing.T) {
	t.Parallel()
	a, err := serve(t, harness.Settings{"CONSOLE": "off"}).Alice().Request(t.Context(), http.MethodGet, "/console", nil, nil)
	if err != nil || a.HTTPStatus != http.StatusNotFound {
		t.Errorf("GET /console: %v %v, want 404", a, err)
	}
	open := harness.With(harness.ProcessSetup().Settings, harness.Settings{"AUTH": "off"})
	delete(open, "API_KEYS")
	server := harness.Serve(t, harness.Setup{Name: "open", Settings: open}, nil)
	tb := newTab(t, server.URL)
	tb.open()
	tb.see("h1", "Executions")
	tb.see("h2", "No executions yet")
	tb.shoot("empty")
	tb.clean()
}

// TestManyRows looks at an execution with 10,000 calls, a million lines and a line of a megabyte.
func TestManyRows(t *testing.T) {
	t.Parallel()
	server := serve(t, harness.Settings{"MAX_STORED": "256MiB"})
	a := server.Alice().Post(t, start{Title: "Many", Program: harness.Program{
		Code: harness.Py(`
			import sys
			print("y" * 1_000_000, file=sys.stderr)
			print("\n" * 1_000_000)
			await asyncio.gather(*(lookup(n=i) for i in range(10_000)))
		`),
		Tools: harness.Tools("lookup"),
	}})
	if len(a.Calls) != 10_000 {
		t.Fatalf("got %d calls", len(a.Calls))
	}
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.click("a", "Many", found("h1", "Many")+" !== undefined")
	tb.read(".calls-panel .hint", "10,000 calls")
	tb.see(".waiting h2", "Waits for 10,000 calls")
	tb.click(".calls .id", "call_001", `document.querySelector(".call-detail h3")?.checkVisibility()`)
	tb.press("End")
	tb.read(".call-detail h3", "call_10000")
	tb.shoot("many")
	if n := ask[int](tb, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("the page has %d elements", n)
	}
	// The longest that the tab does not react, over a second of frames.
	ask[int](tb, `(() => { window.longest = 0; let last = performance.now(); const end = last + 1000;
		const tick = (now) => { window.longest = Math.max(window.longest, now - last); last = now; if (now < end) requestAnimationFrame(tick); else window.longest += 1e6; };
		requestAnimationFrame(tick); return 0; })()`)
	tb.wait("a second has passed", "window.longest > 1e6")
	longest := ask[float64](tb, "window.longest - 1e6")
	if longest > 1000 {
		t.Errorf("the tab stood still for %.0f ms", longest)
	}
	tb.clean()
}
