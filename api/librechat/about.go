package librechat

import (
	"bytes"
	"net/http"
	"regexp"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
)

var labelPattern = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// An about is what a client says about the execution that it starts. The server keeps it and shows it,
// and does nothing else with it.
type about struct {
	title  string
	labels map[string]string
	parent string
	// byHeader is true if the header has named the parent.
	byHeader bool
}

// aboutOf returns what a start says about its execution.
func aboutOf(header http.Header, r request) (a about, err error) {
	if r.Title != nil {
		text, ok := unquote(r.Title)
		if !ok || utf8.RuneCountInString(text) > maxTitle {
			return a, errTitle
		}
		a.title = text
	}
	if a.labels, err = labelsOf(r.Labels); err != nil {
		return a, err
	}
	if a.parent, err = api.ParentOf(header); err != nil {
		return a, err
	}
	a.byHeader = a.parent != ""
	if !isNull(r.Parent) { // It wins.
		text, ok := unquote(r.Parent)
		if !ok || !api.ValidParent(text) {
			return a, errParent
		}
		a.parent, a.byHeader = text, false
	}
	return a, nil
}

// labelsOf returns the labels of a start. Of several equal names the last one counts.
func labelsOf(v jsontext.Value) (map[string]string, error) {
	if v == nil {
		return nil, nil
	}
	if v.Kind() != jsontext.KindBeginObject {
		return nil, errLabels
	}
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, errLabels
	}
	labels := map[string]string{}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadValue()
		if err != nil {
			return nil, errLabels
		}
		shown := spelled(name)
		key, _ := unquote(name)
		value, err := d.ReadValue()
		if err != nil {
			return nil, errLabels
		}
		text, ok := unquote(value)
		switch {
		case !labelPattern.MatchString(key):
			return nil, api.BadRequestf("labels: the name %q must be 1 to 64 of a-z, 0-9, _, . and -", shown)
		case !ok || utf8.RuneCountInString(text) > maxLabel:
			return nil, api.BadRequestf("labels.%s must be a string of at most %d characters", key, maxLabel)
		}
		if labels[key] = text; len(labels) > maxLabels {
			return nil, errLabels
		}
	}
	return labels, nil
}
