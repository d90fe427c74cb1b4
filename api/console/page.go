package console

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// files are the sources of the page.
//
//go:embed page
var files embed.FS

// The parts of the page in the order in which they are joined. A script stands after those that it
// imports.
var (
	styles  = []string{"base.css", "parts.css", "views.css"}
	scripts = []string{
		"dom.js", "text.js", "json.js", "sse.js", "server.js", "dialog.js", "theme.js", "highlight.js", "wrapped.js", "rows.js",
		"model.js", "timeline.js", "program.js", "output.js", "calls.js", "pictures.js", "stored.js", "outputs.js", "report.js",
		"follow.js", "list.js", "approval.js", "blocks.js", "execution.js", "editor.js", "answers.js", "examples.js", "playground.js", "main.js",
	}
)

// The places of the styles and of the script in the skeleton.
const (
	stylesHere = "/* styles */"
	scriptHere = "/* script */"
)

// A page is the document that browsers get, and the policy that they apply to it.
type page struct {
	document []byte
	policy   string
}

// assemble makes the page: one document with one style sheet and one script. The policy allows these two by
// their hashes.
func assemble() (page, error) {
	skeleton, err := fs.ReadFile(files, "page/console.html")
	if err != nil {
		return page{}, fmt.Errorf("console: %w", err)
	}
	style, err := join(styles)
	if err != nil {
		return page{}, err
	}
	script, err := joinScripts()
	if err != nil {
		return page{}, err
	}
	document := string(skeleton)
	for _, part := range []struct{ place, text string }{{stylesHere, style}, {scriptHere, script}} {
		if strings.Count(document, part.place) != 1 {
			return page{}, fmt.Errorf("console: console.html does not have %q once", part.place)
		}
		document = strings.Replace(document, part.place, part.text, 1)
	}
	return page{[]byte(document), policyOf(style, script)}, nil
}

// policyOf returns the Content-Security-Policy of a page with this style sheet and this script.
func policyOf(style, script string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + hashOf(script),
		"style-src " + hashOf(style),
		"connect-src 'self'",
		"img-src blob:",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// join returns the texts of files of the page, one after the other.
func join(names []string) (string, error) {
	var all strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(files, "page/"+name)
		if err != nil {
			return "", fmt.Errorf("console: %w", err)
		}
		all.Write(text)
	}
	return all.String(), nil
}

// moduleWords matches what is allowed in a module only: an import, and the word export before what is
// exported.
var moduleWords = regexp.MustCompile(`(?m)^(import \{[^}]*\} from "[^"]*";\n|export )`)

// joinScripts returns all scripts as one. The files are modules, so that editors understand them, but
// modules within a document cannot import each other. As one script they share one scope.
func joinScripts() (string, error) {
	all, err := join(scripts)
	return moduleWords.ReplaceAllString(all, ""), err
}
