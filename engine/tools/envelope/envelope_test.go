package envelope_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"fermata/engine/tools/envelope"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		value, want string
		failed      envelope.FailedError
		none        string
	}{
		{value: `{"ok": true, "ret": {"a": 1.0}}`, want: `{"a": 1.0}`},
		{value: `{"ok": true, "error": null, "ret": null}`, want: `null`},
		{value: `{"ok": true}`, want: `null`},
		{value: `{"ok": false, "ret": 1}`, failed: envelope.FailedError{Message: "the tool reports a failure"}},
		{value: `{"ok": false, "error": null}`, failed: envelope.FailedError{Message: "the tool reports a failure"}},
		{value: `{"ok": false, "error": " no such city\n"}`, failed: envelope.FailedError{Message: "no such city"}},
		{
			value:  `{"ok": false, "error": {"code": "E404", "message": "no such city", "where": "geo", "managed": true}}`,
			failed: envelope.FailedError{Message: "no such city", Details: envelope.Details{Code: "E404", Where: "geo", Managed: true}},
		},
		{
			value:  `{"ok": false, "error": {"code": 404, "where": {"line": 1}, "managed": "true"}}`,
			failed: envelope.FailedError{Message: `{"code":404,"where":{"line":1}}`, Details: envelope.Details{Code: "404"}},
		},
		{
			value:  `{"ok": false, "error": {"code": "busy", "where": "w", "managed": true}}`,
			failed: envelope.FailedError{Message: "busy at w", Details: envelope.Details{Code: "busy", Where: "w", Managed: true}},
		},
		{
			value:  `{"ok": false, "error": {"managed": true}}`,
			failed: envelope.FailedError{Message: "the tool reports a failure", Details: envelope.Details{Managed: true}},
		},
		{
			value:  `{"ok": false, "error": {"code": "busy", "retry_after": 5, "managed": true}}`,
			failed: envelope.FailedError{Message: `{"code":"busy","retry_after":5}`, Details: envelope.Details{Code: "busy", Managed: true}},
		},
		{value: `{"ok": false, "error": {"Message": "m", "Code": "c"}}`, failed: envelope.FailedError{Message: `{"Code":"c","Message":"m"}`}},
		{
			value:  `{"ok": false, "error": {"message": 5, "code": "` + strings.Repeat("é", 200) + `"}}`,
			failed: envelope.FailedError{Message: `{"code":"` + strings.Repeat("é", 200) + `","message":5}`, Details: envelope.Details{Code: strings.Repeat("é", 128)}},
		},
		{value: `{"ok": false, "error": [1]}`, failed: envelope.FailedError{Message: "[1]"}},
		{value: `{"ok": true, "ok": false}`, failed: envelope.FailedError{Message: "the tool reports a failure"}},
		{value: `{"ok": "true"}`, none: "its member ok is neither true nor false"},
		{value: `{"ok": null}`, none: "its member ok is neither true nor false"},
		{value: `{"OK": true}`, none: "it has no member ok"},
		{value: `[]`, none: "it is no object"},
		{value: `null`, none: "it is no object"},
		{value: ``, none: "it is no object"},
	} {
		got, err := envelope.Open(json.RawMessage(c.value))
		failed, isFailed := errors.AsType[*envelope.FailedError](err)
		none, isNone := errors.AsType[*envelope.NoneError](err)
		switch {
		case c.want != "" && (err != nil || string(got) != c.want),
			c.failed.Message != "" && (!isFailed || *failed != c.failed || failed.Error() != c.failed.Message),
			c.none != "" && (!isNone || none.Error() != c.none):
			t.Errorf("%s: got %s, %#v", c.value, got, err)
		}
	}
}
