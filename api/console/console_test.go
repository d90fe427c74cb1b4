package console

import (
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fermata/api"
)

// sources returns the files of the page by their names.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := fs.Glob(files, "page/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		all[path.Base(name)] = string(text)
	}
	return all
}

// TestNothingBecomesMarkup checks that the sources use nothing that turns a text into markup or code.
func TestNothingBecomesMarkup(t *testing.T) {
	t.Parallel()
	sinks := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\s*\.\s*write|\beval\b|\bFunction\s*\(|createContextualFragment|DOMParser|setHTML|srcdoc|javascript:|setTimeout\(\s*["'` + "`" + `]|setInterval\(\s*["'` + "`" + `]|\.setAttribute\(\s*["'](?:on|href|src|style)`)
	inline := regexp.MustCompile(`(?i)\s(?:on[a-z]+|style)\s*=\s*["']`)
	for name, text := range sources(t) {
		if found := sinks.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		if found := inline.FindString(text); strings.HasSuffix(name, ".html") && found != "" {
			t.Errorf("%s has %q, which the policy forbids", name, found)
		}
	}
}

// TestStorage checks that the key is stored in sessionStorage only, and that the page stores nothing else
// but the choice of the theme.
func TestStorage(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{"server.js": {"sessionStorage"}, "theme.js": {"localStorage"}}
	storage := regexp.MustCompile(`sessionStorage|localStorage|indexedDB|document\s*\.\s*cookie|caches\b|EventSource|WebSocket|sendBeacon|serviceWorker|location\.search|URLSearchParams\(location`)
	for name, text := range sources(t) {
		for _, found := range storage.FindAllString(text, -1) {
			if !slices.Contains(allowed[name], found) && !strings.Contains(text, "// "+found) && !inComments(text, found) {
				t.Errorf("%s uses %s", name, found)
			}
		}
	}
}

// inComments reports whether a word occurs in comments only.
func inComments(text, word string) bool {
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "//")
		if strings.Contains(code, word) {
			return false
		}
	}
	return true
}

// TestEachFileIsPart checks that the page has all files, and that scripts import only what others export.
func TestEachFileIsPart(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for name := range all {
		if name != "console.html" && !slices.Contains(styles, name) && !slices.Contains(scripts, name) {
			t.Errorf("%s is no part of the page", name)
		}
	}
	imported := regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./([^"]*)";$`)
	for i, name := range scripts {
		for _, m := range imported.FindAllStringSubmatch(all[name], -1) {
			from := m[2]
			if at := slices.Index(scripts, from); at < 0 || at > i {
				t.Errorf("%s imports %s, which does not stand before it", name, from)
			}
			for what := range strings.SplitSeq(m[1], ",") {
				what = strings.TrimSpace(what)
				if !regexp.MustCompile(`(?m)^export (?:async )?(?:function\*?|const|let|class) ` + what + `\b`).MatchString(all[from]) {
					t.Errorf("%s imports %s, which %s does not export", name, what, from)
				}
			}
		}
	}
	joined, err := joinScripts()
	if err != nil {
		t.Fatal(err)
	}
	if left := regexp.MustCompile(`(?m)^(?:import|export)\b.*`).FindString(joined); left != "" {
		t.Errorf("joined scripts cannot have %q", left)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(?:async )?(?:function\*?|const|let|class) (\w+)`).FindAllStringSubmatch(joined, -1) {
		if names[m[1]] {
			t.Errorf("two scripts have a %s of their own", m[1])
		}
		names[m[1]] = true
	}
}

// TestPolicy compares the policy with the document, as a browser does.
func TestPolicy(t *testing.T) {
	t.Parallel()
	r := api.New(api.Options{Log: slog.New(slog.DiscardHandler)})
	if err := Register(r); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/console", "/v1/console"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Fatalf("%s: %d %s", path, w.Code, w.Header())
		}
		document := w.Body.String()
		directives := strings.Split(w.Header().Get("Content-Security-Policy"), "; ")
		for _, want := range []string{
			"default-src 'none'", "connect-src 'self'", "img-src blob:", "base-uri 'none'", "form-action 'none'",
			"frame-ancestors 'none'", "require-trusted-types-for 'script'",
			"style-src " + hashOf(between(t, document, "<style>", "</style>")),
			"script-src " + hashOf(between(t, document, `<script type="module">`, "</script>")),
		} {
			if !slices.Contains(directives, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Count(document, "<script") != 1 || strings.Count(document, "<style") != 1 || strings.Contains(document, "<!--") {
			t.Errorf("%s: the document has more than one script and one style sheet", path)
		}
	}
}

// between returns the text between two marks, each of which must occur once.
func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, begins := strings.Cut(text, begin)
	inner, _, ends := strings.Cut(rest, end)
	if !begins || !ends || strings.Count(text, end) != 1 {
		t.Fatalf("the document does not have %s … %s once", begin, end)
	}
	return inner
}
