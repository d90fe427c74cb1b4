package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"fermata/tests/harness"
)

const (
	// patience is how long the page may take to show something.
	patience = 30 * time.Second
	// glance is how long a click may take to have its effect before it is tried again.
	glance = 2 * time.Second
)

// watch is run in each document before its own scripts. It notes what the browser forbids the page,
// and whether a text of a stranger has run: each of our hostile texts sets the canary.
const watch = `
	window.seen = {forbidden: []};
	document.addEventListener("securitypolicyviolation", (e) =>
		window.seen.forbidden.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));`

// finder is the source of a function that returns the first element in sight that fits a selector
// and, unless it is empty, has this text or label.
const finder = `((selector, text) => [...document.querySelectorAll(selector)].find((e) =>
	e.checkVisibility() && (text === "" || e.textContent.trim() === text || e.getAttribute("aria-label") === text)))`

// A tab is a tab of a browser that nothing else uses.
type tab struct {
	testing.TB
	ctx    context.Context
	server string

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// newTab starts a browser with one tab. When the test has ended, it must not have complained.
func newTab(t testing.TB, server string) *tab {
	t.Helper()
	allocator, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), // a failed test has a last look at the page
		chromedp.ExecPath(harness.Chromium(t)), chromedp.Headless, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU,
		// Chromium does not start its own sandbox for root, nor in most containers.
		chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
	)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf))
	tb := &tab{TB: t, ctx: ctx, server: server}
	t.Cleanup(func() {
		if t.Failed() {
			tb.shoot("failed")
		}
		leave()
		for _, c := range tb.complaints {
			t.Errorf("the browser complains: %s", c)
		}
	})
	if err := chromedp.Listen(ctx, tb.listen); err != nil {
		t.Fatal(err)
	}
	tb.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
		return err
	})
	tb.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
		return err
	})
	tb.resize(1280, 900)
	return tb
}

// listen notes the requests of the page, and its mistakes.
func (tb *tab) listen(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		tb.requests = append(tb.requests, e.Request.Method+" "+e.Request.URL)
	case *runtime.EventExceptionThrown:
		tb.complaints = append(tb.complaints, fmt.Sprintf("%s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		// An answer that is no success is logged by the browser as an error of the network.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			tb.complaints = append(tb.complaints, e.Entry.Text)
		}
	}
}

// call does something with the tab, and fails the test if that fails or takes too long.
func (tb *tab) call(do func(ctx context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	if err := do(ctx); err != nil {
		tb.Fatal(err)
	}
}

// open opens the console and waits for its first view.
func (tb *tab) open() {
	tb.Helper()
	tb.visit("/console")
	tb.wait("the console has begun", `document.querySelector("h1") !== null`)
}

// visit opens a path of the server.
func (tb *tab) visit(path string) {
	tb.Helper()
	tb.call(func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Navigate(tb.server+path)) })
}

// enter signs in with a key.
func (tb *tab) enter(key string) {
	tb.Helper()
	tb.open()
	tb.write("#key", key)
	tb.press("Enter")
	tb.see("h1", "Executions")
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](tb *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// ask is evaluate for expressions that must have a value.
func ask[T any](tb *tab, expression string) T {
	tb.Helper()
	v, err := evaluate[T](tb, expression)
	if err != nil {
		tb.Fatalf("%s: %v", expression, err)
	}
	return v
}

// holds returns nil if a condition holds.
func (tb *tab) holds(condition string) error {
	is, err := evaluate[bool](tb, "Boolean("+condition+")")
	if err == nil && !is {
		err = errors.New("it does not")
	}
	return err
}

// wait waits until a condition holds.
func (tb *tab) wait(what, condition string) {
	tb.Helper()
	if err := harness.Within(patience, func() error { return tb.holds(condition) }); err != nil {
		tb.Fatalf("waiting until %s: %v\n%s", what, err, tb.text())
	}
}

// text returns what is on the screen.
func (tb *tab) text() string {
	text, err := evaluate[string](tb, "document.body.innerText")
	if err != nil {
		return err.Error()
	}
	return text[:min(len(text), 3000)]
}

// quote returns a text as JavaScript.
func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always JSON
	}
	return string(raw)
}

// found returns an expression for the element in sight with this selector and text.
func found(selector, text string) string {
	return finder + "(" + quote(selector) + "," + quote(text) + ")"
}

// see waits until an element with this selector and text is in sight.
func (tb *tab) see(selector, text string) {
	tb.Helper()
	tb.wait(fmt.Sprintf("there is a %s %q", selector, text), found(selector, text)+" !== undefined")
}

// reads returns a condition: the text of the elements in sight with this selector contains part.
func reads(selector, part string) string {
	return "[...document.querySelectorAll(" + quote(selector) + ")].filter((e) => e.checkVisibility()).map((e) => e.innerText).join('\\n').includes(" + quote(part) + ")"
}

// read waits until the text of the elements in sight with this selector contains part.
func (tb *tab) read(selector, part string) {
	tb.Helper()
	tb.wait(fmt.Sprintf("%s reads %q", selector, part), reads(selector, part))
}

// A point is a place on the screen.
type point struct{ X, Y float64 }

// click clicks an element, and tries again while the condition does not hold: the page may have
// drawn the element anew between the look and the click.
func (tb *tab) click(selector, text, until string) {
	tb.Helper()
	where := `(() => {
		const e = ` + found(selector, text) + `;
		if (e === undefined || e.disabled) return null;
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect();
		const x = r.x + r.width / 2, y = r.y + r.height / 2;
		const top = document.elementFromPoint(x, y);
		return e.contains(top) || top?.contains(e) ? {X: x, Y: y} : null;
	})()`
	err := harness.Within(patience, func() error {
		if until != "" && tb.holds(until) == nil {
			return nil
		}
		p, err := evaluate[*point](tb, where)
		switch {
		case err != nil:
			return err
		case p == nil:
			return errors.New("it cannot be clicked")
		}
		ctx, cancel := context.WithTimeout(tb.ctx, patience)
		defer cancel()
		if err := chromedp.Do(ctx, chromedp.MouseClickXY(p.X, p.Y)); err != nil || until == "" {
			return err
		}
		return harness.Within(glance, func() error { return tb.holds(until) })
	})
	if err != nil {
		tb.Fatalf("click %s %q until %s: %v\n%s", selector, text, cmp.Or(until, "nothing"), err, tb.text())
	}
}

// write replaces the text of a field.
func (tb *tab) write(selector, text string) {
	tb.Helper()
	tb.wait(selector+" has the focus", `(() => { const e = `+found(selector, "")+`; e?.focus(); e?.select(); return e !== undefined && document.activeElement === e; })()`)
	tb.insert(text)
	tb.wait(selector+" has the text", "document.querySelector("+quote(selector)+").value === "+quote(text))
}

// insert enters a text where the focus is, as one would paste it.
func (tb *tab) insert(text string) {
	tb.Helper()
	tb.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// keys are the keys that have names here.
var keys = map[string]string{
	"Enter": kb.Enter, "Tab": kb.Tab, "Escape": kb.Escape, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp, "End": kb.End, "Home": kb.Home, "Space": " ",
}

// press presses keys, which are named, or are single characters.
func (tb *tab) press(names ...string) {
	tb.Helper()
	for _, name := range names {
		var options []chromedp.KeyOption
		if rest, ok := strings.CutPrefix(name, "Control+"); ok {
			name, options = rest, append(options, chromedp.KeyModifiers(kb.ModifierCtrl))
		}
		if rest, ok := strings.CutPrefix(name, "Shift+"); ok {
			name, options = rest, append(options, chromedp.KeyModifiers(kb.ModifierShift))
		}
		key := cmp.Or(keys[name], name)
		tb.call(func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.KeyEvent(key, options...)) })
	}
}

// tabTo presses the tab key until an element has the focus, and checks that each element on the way
// shows that it has it.
func (tb *tab) tabTo(selector, text string) {
	tb.Helper()
	goal := "document.activeElement === " + found(selector, text)
	for range 200 {
		if tb.holds(goal) == nil {
			return
		}
		tb.press("Tab")
		const shows = `(() => {
			const e = document.activeElement;
			if (e === document.body || e === null) return "";
			const outlined = (x) => { const s = getComputedStyle(x); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2; };
			return outlined(e) || outlined(e.closest(".editor") ?? e) ? "" : e.outerHTML.slice(0, 200);
		})()`
		if hidden := ask[string](tb, shows); hidden != "" {
			tb.Errorf("nobody can see that this has the focus: %s", hidden)
		}
	}
	tb.Fatalf("the tab key does not reach %s %q\n%s", selector, text, tb.text())
}

// resize sets the size of the window.
func (tb *tab) resize(width, height int64) {
	tb.Helper()
	tb.call(func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.EmulateViewport(width, height)) })
}

// prefer sets what the person has chosen in the system, such as prefers-color-scheme: dark.
func (tb *tab) prefer(feature, value string) {
	tb.Helper()
	tb.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
		return err
	})
}

// shoot keeps a picture of the screen in the folder that FERMATA_TEST_SCREENSHOTS names.
func (tb *tab) shoot(name string) {
	folder := os.Getenv("FERMATA_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, strings.ReplaceAll(tb.Name(), "/", "-")+"-"+name+".png"), shot, 0o644))
	}
	if err != nil {
		tb.Logf("no picture of the screen: %v", err)
	}
}

// clean checks that the page has done nothing that its policy forbids, asked nobody but the server,
// and run none of the texts that it shows.
func (tb *tab) clean() {
	tb.Helper()
	if forbidden := ask[[]string](tb, "window.seen.forbidden"); len(forbidden) > 0 {
		tb.Errorf("the policy of the page has forbidden: %q", forbidden)
	}
	if ask[bool](tb, "'canary' in window || ({}).canary !== undefined") {
		tb.Error("a text has run as a script")
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, r := range tb.requests {
		_, url, _ := strings.Cut(r, " ")
		if !strings.HasPrefix(url, tb.server+"/") && !strings.HasPrefix(url, "blob:"+tb.server+"/") {
			tb.Errorf("the page has requested %s", r)
		}
	}
}
