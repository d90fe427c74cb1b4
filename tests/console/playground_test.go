package console

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"fermata/tests/harness"
)

// reload loads the page again.
func reload(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Reload()) }

// playground opens the playground.
func (tb *tab) playground() {
	tb.Helper()
	tb.click("nav a", "Playground", `document.querySelector("#code")?.checkVisibility()`)
}

// program writes a program and its tools into the playground.
func (tb *tab) program(code, tools string) {
	tb.Helper()
	tb.write("#code", code)
	tb.write("#tools", tools)
}

// playOnce runs a program with one call in the playground, answers it and sees its end.
func playOnce(tb *tab) {
	tb.Helper()
	tb.playground()
	tb.program("print('got', await ask(n=1))\n", `[{"name":"ask"}]`)
	tb.click("button", "Run", `document.querySelector("#answer-0") !== null`)
	tb.write("#answer-0", `"an answer"`)
	tb.click("button", "Send the answer", found(".end h2", "Completed")+" !== undefined")
	tb.read(".output", "got an answer")
}

// TestPlayground writes a program, runs it, answers its calls and watches it go on.
func TestPlayground(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.playground()
	tb.program(harness.Py(`
		print("asking")
		first, second = await asyncio.gather(ask(n=1), ask(n=2), return_exceptions=True)
		print("first is", first)
		print("second is", second)
		print("third is", await ask(n=3))
	`), `[{"name": "ask", "parameters": {"properties": {"n": {"type": "integer"}}}}]`)
	tb.write("#name", "By hand")
	tb.click("button", "Run", `document.querySelector("#answer-1") !== null`)
	tb.see(".answers h2", "Waits for 2 calls")
	tb.read(".output", "asking")
	// The calls come with the answer to the request, and the line with the events, which may be later.
	tb.wait("line 2 is marked", `document.querySelector(".editor-colours [data-line]")?.dataset.line === "2"`)
	tb.shoot("answers")

	tb.write("#answer-0", "no JSON")
	tb.click("button", "Send the answers", reads(".failure", "This is not JSON"))
	// A number that JavaScript cannot hold goes through.
	tb.write("#answer-0", "12345678901234567890")
	tb.click("input[name='answer-1-kind'][value='error']", "", `document.querySelector("input[name='answer-1-kind'][value='error']").checked`)
	tb.write("#answer-1", "out of order")
	tb.click("button", "Send the answers", reads(".output", "first is"))
	tb.read(".output", "first is 12345678901234567890")
	tb.read(".output", "second is out of order")

	tb.see(".answers h2", "Waits for 1 call")
	tb.write("#answer-0", `"done"`)
	tb.click("button", "Send the answer", found(".end h2", "Completed")+" !== undefined")
	tb.read(".output", "third is done")
	tb.shoot("ended")

	// The view goes on out of sight, and the list has it as well.
	tb.click("nav a", "Executions", found("a", "By hand")+" !== undefined")
	tb.click("nav a", "Playground", found(".end h2", "Completed")+" !== undefined")
	tb.click("a", "Open it in the list", found("h1", "By hand")+" !== undefined")
	tb.see(".pill", "Completed")

	if got := ask[string](tb, "location.href + document.cookie + JSON.stringify(localStorage)"); strings.Contains(got, "key-a") || strings.Contains(got, "asking") {
		t.Errorf("the browser keeps %s", got)
	}
	tb.clean()
}

// TestLater answers the calls of one pause one by one.
func TestLater(t *testing.T) {
	t.Parallel()
	tb := newTab(t, serve(t, nil).URL)
	tb.enter("key-a")
	tb.playground()
	tb.program("print(sum(await asyncio.gather(*(ask(n=i) for i in range(3)))))\n", `[{"name":"ask"}]`)
	tb.click("button", "Run", `document.querySelector("#answer-2") !== null`)
	for left := 3; left > 0; left-- {
		tb.wait("the rest waits", `document.querySelectorAll("fieldset.answer").length === `+string(rune('0'+left))+` && !document.querySelector(".answers button[type=submit]").disabled`)
		tb.write("#answer-0", "14")
		for i := 1; i < left; i++ {
			box := "input[name='answer-" + string(rune('0'+i)) + "-kind'][value='later']"
			tb.click(box, "", "document.querySelector("+quote(box)+").checked")
		}
		tb.press("Control+Enter")
	}
	tb.see(".end h2", "Completed")
	tb.read(".output", "42")
	tb.clean()
}

// TestPlaygroundCancel ends programs that run and that wait.
func TestPlaygroundCancel(t *testing.T) {
	t.Parallel()
	tb := newTab(t, serve(t, nil).URL)
	tb.enter("key-a")
	tb.playground()
	tb.program("print('begun')\nawait asyncio.sleep(60)\n", "[]")
	tb.click("button", "Run", reads(".output", "begun"))
	tb.click("button", "Cancel", found(".end h2", "Cancelled")+" !== undefined || "+found(".end h2", "Failed")+" !== undefined")
	tb.program("await ask()\n", `[{"name":"ask"}]`)
	tb.click("button", "Run", `document.querySelector("#answer-0") !== null`)
	tb.click("button", "Cancel", `document.querySelector("#answer-0") === null`)
	tb.see(".end h2", "Cancelled")
	tb.wait("one can run another one", `!document.querySelector("#run").disabled`)
	// A mistake of the person is told.
	tb.program("print(1)\n", "{")
	tb.click("button", "Run", reads(".failure", "The tools are no JSON list"))
	tb.program("print(1)\n", `[{"name": 7}]`)
	tb.click("button", "Run", `document.querySelector(".end-error")?.checkVisibility()`)
	tb.clean()
}

// TestPicture plots, sees the picture, and downloads it.
func TestPicture(t *testing.T) {
	t.Parallel()
	if !harness.HasLibraries() {
		t.Skipf("%s has no numpy", harness.Python())
	}
	tb := newTab(t, serve(t, harness.ProcessSetup().Libraries()).URL)
	folder := t.TempDir()
	tb.call(func(ctx context.Context) error {
		_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder})
		return err
	})
	tb.enter("key-a")
	tb.playground()
	tb.program(harness.Py(`
		x = np.linspace(0, 12, 300)
		plt.plot(x, np.sin(x))
		plt.savefig("waves.png")
		open("page.png", "w").write("<html><script>canary = 1</script>")
		open("drawing.gif", "w").write("<svg xmlns='http://www.w3.org/2000/svg' onload='canary = 1'/>")
		open("huge.png", "wb").write(bytes.fromhex("89504e470d0a1a0a0000000d49484452000fffff000fffff0806000000"))
		open("script.js", "w").write("canary = 1")
		import base64
		for name, text in {
		    "dot.gif": "R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==",
		    "dot.webp": "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==",
		    "dot.jpg": "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=",
		}.items():
		    open(name, "wb").write(base64.b64decode(text))
	`), "[]")
	tb.click("button", "Run", found(".end h2", "Completed")+" !== undefined")
	tb.wait("the pictures are drawn", `[...document.querySelectorAll("img")].map((i) => i.naturalWidth).join() === "1,1,1,640"`)
	if !ask[bool](tb, `[...document.querySelectorAll("img")].every((i) => i.src.startsWith("blob:"))`) {
		t.Error("not all pictures are blobs")
	}
	tb.read(".files", "not a picture, in spite of its name")
	tb.read(".files", "too many to show")
	tb.call(func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.ScrollIntoView(chromedp.CSS(".files-panel")))
	})
	tb.shoot("picture")
	tb.click("button", "Download script.js", "")
	if err := harness.Within(patience, func() error {
		_, err := os.Stat(filepath.Join(folder, "script.js"))
		return err
	}); err != nil {
		t.Error(err)
	}
	tb.clean()
}

// TestNothingFromTheAddress opens addresses that ask the console to do something.
func TestNothingFromTheAddress(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	tb := newTab(t, server.URL)
	for _, address := range []string{
		"/console?code=print(1)&tools=[]&key=key-a#/playground", "/console#/playground?code=print(1)&run=1", "/console#key=key-a",
		"/console#/executions/%3Cimg%20src%3Dx%20onerror%3Dcanary%3D1%3E", "/console#/executions/../../health",
	} {
		tb.visit(address)
		tb.see("h1", "Sign in")
		tb.write("#key", "key-a")
		tb.press("Enter")
		tb.wait("the console is open", `document.querySelector("nav").checkVisibility()`)
		tb.wait("a view is there", `document.querySelector(".view h1") !== null`)
		tb.click("button", "Sign out", found("h1", "Sign in")+" !== undefined")
	}
	tb.clean()
	for _, r := range tb.requests {
		if strings.HasPrefix(r, http.MethodPost) {
			t.Errorf("the console has sent %s", r)
		}
	}
	a, err := server.Alice().Request(t.Context(), http.MethodGet, "/executions", nil, nil)
	if err != nil || !strings.Contains(a.Raw, `"data":[]`) {
		t.Errorf("something has run: %v %v", a, err)
	}
}

// TestPlaygroundApprovals decides on the calls of a program of the playground that wait for approval, and
// answers the one that was approved.
func TestPlaygroundApprovals(t *testing.T) {
	t.Parallel()
	path := harness.WriteToolsets(t, harness.NewUpstream(t), shop)
	tb := newTab(t, serve(t, harness.Settings{"TOOLSETS": path}).URL)
	tb.enter("key-a")
	tb.playground()
	tb.program("print(await asyncio.gather(pay(euros=1), pay(euros=1000), return_exceptions=True))\n", `[{"name": "pay", "approval": "always"}]`)
	tb.click("button", "Run", `document.querySelector("#answer-1") !== null`)
	tb.see(".answers h2", "Waits for 2 calls")
	tb.read(".answer", "It is not made before somebody approves it.")
	tb.click("button", "Send the answers", reads(".failure", "at least one call")) // Nothing is chosen for a person.
	choose := func(name, kind string) {
		t.Helper()
		box := "input[name='" + name + "-kind'][value='" + kind + "']"
		tb.click(box, "", "document.querySelector("+quote(box)+").checked")
	}
	choose("answer-0", "approve")
	choose("answer-1", "refuse")
	tb.write("#answer-1", "too dear")
	tb.shoot("approvals")
	tb.click("button", "Send the answers", found(".answers h2", "Waits for 1 call")+" !== undefined")

	// It is the client's tool, so that its result is asked for next.
	tb.write("#answer-0", "5")
	tb.click("button", "Send the answer", found(".end h2", "Completed")+" !== undefined")
	tb.read(".output", "[5, ToolExecutionError('refused: too dear')]")

	// A tool of the server is called when it is approved.
	tb.program("from fermata_tools.shop import Shop\nprint('paid', Shop.pay(amount=3))\n", "[]")
	tb.write("#toolsets", "shop.pay")
	tb.click("button", "Run", `document.querySelector("#answer-0") !== null`)
	choose("answer-0", "approve")
	tb.click("button", "Send the answer", found(".end h2", "Completed")+" !== undefined")
	tb.read(".output", "paid")
	tb.clean()
}

// shop is a toolset with a tool that needs approval.
const shop = `
toolsets:
  shop:
    title: Shop
    private: true
    http:
      base_url: URL
      tools: [{name: pay, method: POST, path: /echo, approval: always, parameters: {type: object, properties: {amount: {type: integer}}}}]
`
