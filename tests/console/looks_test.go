package console

import (
	"fmt"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// contrast returns what is hard to read: texts in sight with less than 4.5 to 1 between their colour and
// that behind them (3 to 1 for large ones). Disabled controls are exempt, as WCAG says.
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] / 255 + below[i] * (1 - top[3] / 255)).concat(255);
	const behind = (e) => { const layers = []; for (let x = e; x !== null; x = x.parentElement) { const c = rgba(getComputedStyle(x).backgroundColor); layers.push(c); if (c[3] === 255) break; }
		return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 255]); };
	const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const poor = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== "") || !e.checkVisibility({visibilityProperty: true}) || e.closest(":disabled, .unseen, .rows-probe, .editor textarea, option, noscript")) continue;
		const style = getComputedStyle(e);
		const back = behind(e);
		const [a, b] = [light(over(rgba(style.color), back)), light(back)].sort((x, y) => y - x);
		const size = parseFloat(style.fontSize);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < (size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5)) poor.push(e.className + " " + e.textContent.trim().slice(0, 40) + ": " + ratio.toFixed(2));
	}
	return poor;
})()`

// unnamed returns the controls in sight that have no name for those who do not see them.
const unnamed = `[...document.querySelectorAll("button, a, input, select, textarea, [role=region], [role=listbox]")]
	.filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length > 0))
	.map((e) => e.outerHTML.slice(0, 120))`

// TestLooks looks at each view in light and dark, narrow and wide: everything can be read, and nothing
// stands outside the window.
func TestLooks(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	alice := server.Alice()
	alice.Post(t, start{Program: harness.Program{Code: "print(rows[0]['email'])"}, Title: "Import the customers", Labels: map[string]string{"team": "sales"}})
	alice.Post(t, start{Program: harness.Program{Code: "import asyncio\nawait asyncio.sleep(30)", Timeout: 1000}, Title: "Wait for the train"})
	alice.Post(t, start{Program: harness.Program{Code: "print('done')"}, Title: "Nightly report", Labels: map[string]string{"cron": "nightly"}}).Completes(t, "done\n")
	pauses(t, alice, start{Program: dinner, Title: "Dinner in a warm city", Labels: map[string]string{"team": "travel", "agent": "planner-2"}})
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1280, 900}, {360, 780}} {
			t.Run(fmt.Sprintf("%s %d", scheme, size[0]), func(t *testing.T) {
				t.Parallel()
				tb := newTab(t, server.URL)
				tb.prefer("prefers-color-scheme", scheme)
				tb.resize(size[0], size[1])
				look := func(name string) {
					t.Helper()
					tb.wait("nothing moves", `document.getAnimations().every((a) => a.playState !== "running" || a.effect.getTiming().iterations === Infinity)`)
					for _, poor := range ask[[]string](tb, contrast) {
						t.Errorf("%s: too little contrast: %s", name, poor)
					}
					for _, one := range ask[[]string](tb, unnamed) {
						t.Errorf("%s: it has no name: %s", name, one)
					}
					if wide := ask[int64](tb, "document.documentElement.scrollWidth"); wide > size[0] {
						t.Errorf("%s: it is %d pixels wide", name, wide)
					}
					tb.shoot(name)
				}
				tb.open()
				look("sign-in")
				tb.enter("key-a")
				tb.see("a", "Dinner in a warm city")
				look("list")
				tb.click("a", "Dinner in a warm city", found("h1", "Dinner in a warm city")+" !== undefined")
				tb.see(".mark", "waits for book_table")
				look("paused")
				tb.click(".calls .tool", "book_table", `document.querySelector(".call-detail h3")?.checkVisibility()`)
				look("calls")
				tb.click("button", "Cancel", `document.querySelector("dialog") !== null`)
				look("dialog")
				tb.press("Escape")
				tb.wait("the dialog is gone", `document.querySelector("dialog") === null`)
				tb.click("a", "All executions", found("h1", "Executions")+" !== undefined")
				tb.click("a", "Import the customers", found(".end h2", "Failed")+" !== undefined")
				look("failed")
				tb.playground()
				look("playground")
				tb.click("button", "Run", `document.querySelector("#answer-0") !== null`)
				look("answers")
				tb.click("button", "Cancel", found(".end h2", "Cancelled")+" !== undefined")
				tb.clean()
			})
		}
	}
}

// TestTheme changes from light to dark and back, whatever the system prefers.
func TestTheme(t *testing.T) {
	t.Parallel()
	tb := newTab(t, serve(t, nil).URL)
	tb.prefer("prefers-color-scheme", "light")
	tb.open()
	colour := func() string { return ask[string](tb, "getComputedStyle(document.documentElement).backgroundColor") }
	light := colour()
	tb.click("#theme", "", `document.querySelector("#theme").textContent === "Theme: dark"`)
	dark := colour()
	if light == dark {
		t.Errorf("light and dark are both %s", light)
	}
	tb.call(reload)
	tb.see("button", "Theme: dark")
	if got := colour(); got != dark {
		t.Errorf("after a reload it is %s, want %s", got, dark)
	}
	tb.click("#theme", "", `document.querySelector("#theme").textContent === "Theme: auto"`)
	tb.prefer("prefers-color-scheme", "dark")
	if got := colour(); got != dark {
		t.Errorf("with a dark system it is %s, want %s", got, dark)
	}
	tb.prefer("prefers-reduced-motion", "reduce")
	if n := ask[int](tb, `document.getAnimations().length`); n != 0 {
		t.Errorf("%d things move", n)
	}
}

// TestKeyboard does everything without a mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	pauses(t, server.Alice(), start{Program: dinner, Title: "By keyboard"})
	tb := newTab(t, server.URL)
	tb.open()
	tb.wait("the field for the key has the focus", `document.activeElement?.id === "key"`)
	tb.insert("key-a")
	tb.press("Enter")
	tb.see("h1", "Executions")

	tb.tabTo("a", "By keyboard")
	tb.press("Enter")
	tb.see("h1", "By keyboard")
	tb.wait("the heading has the focus", `document.activeElement?.tagName === "H1"`)
	tb.read("#news", "Paused")
	tb.wait("it is told to those who do not see it", `document.querySelector("#news").textContent.includes("waits for 1 call")`)
	tb.tabTo("[role=listbox]", "")
	tb.press("j")
	tb.read(".call-detail h3", "book_table")

	tb.call(reload)
	tb.see("h1", "By keyboard")
	tb.tabTo("#skip", "")
	tb.press("Enter")
	tb.wait("the content has the focus", `document.activeElement?.id === "main"`)
	tb.tabTo("button", "Cancel")
	tb.press("Enter")
	tb.wait("the dialog has the focus", `document.activeElement?.closest("dialog") !== null`)
	tb.press("Escape")
	tb.wait("the dialog is gone", `document.querySelector("dialog") === null`)
	tb.tabTo("button", "Cancel")
	tb.press("Enter")
	tb.tabTo("dialog button", "Cancel the execution")
	tb.press("Enter")
	tb.see(".pill", "Cancelled")

	tb.tabTo("nav a", "Playground")
	tb.press("Enter")
	tb.tabTo("#code", "")
	tb.press("Control+a")
	tb.insert("print('got', await ask())\n")
	tb.tabTo("#tools", "")
	tb.press("Control+a")
	tb.insert(`[{"name":"ask"}]`)
	tb.press("Control+Enter")
	tb.wait("the answer has the focus", `document.activeElement?.id === "answer-0"`)
	tb.press("Control+a")
	tb.insert(`"it"`)
	tb.press("Control+Enter")
	tb.see(".end h2", "Completed")
	tb.read(".output", "got it")

	tb.tabTo("button", "Sign out")
	tb.press("Enter")
	tb.see("h1", "Sign in")
	tb.clean()
}

// TestListKeys moves through the list with j and k.
func TestListKeys(t *testing.T) {
	t.Parallel()
	server := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	for _, title := range []string{"Third", "Second", "First"} {
		server.Alice().Post(t, start{Program: harness.Program{Code: "print(1)"}, Title: title})
	}
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.see("a", "Third")
	tb.wait("the field for the key is gone", `document.querySelector("#key") === null`)
	var seen []string
	for _, key := range []string{"j", "j", "j", "k"} {
		tb.press(key)
		seen = append(seen, ask[string](tb, "document.activeElement.textContent"))
	}
	if got := strings.Join(seen, " "); got != "First Second Third Second" {
		t.Errorf("the keys lead to %s", got)
	}
	// A list that renews itself keeps the focus where it is.
	server.Alice().Post(t, start{Program: harness.Program{Code: "print(1)"}, Title: "Zeroth"})
	tb.see("a", "Zeroth")
	if got := ask[string](tb, "document.activeElement.textContent"); got != "Second" {
		t.Errorf("the focus has gone to %q", got)
	}
}
