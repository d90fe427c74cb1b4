package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"fermata/engine/tools/envelope"
	"fermata/engine/tools/mask"
	"fermata/engine/tools/source"
)

// TestT10Causes checks that secrets are masked in the causes of failures, which are logged, and that
// errors.Is still recognizes a cause.
func TestT10Causes(t *testing.T) {
	const secret = "a secret of/27 characters"
	s := &toolset{masker: mask.New([]string{secret})}
	told := s.hide(&source.CallError{Message: secret, Details: &envelope.Details{Code: "E1 " + secret, Where: secret, Managed: true}})
	if want := (envelope.Details{Code: "E1 ***", Where: "***", Managed: true}); *told.Details != want || told.Message != "***" {
		t.Errorf("got %+v, %+v, want %+v", told, told.Details, want)
	}
	cause := fmt.Errorf("get https://api.example.com/?key=a+secret+of%%2F27+characters: %w", &fs.PathError{Op: "dial", Path: secret, Err: fs.ErrClosed})
	for name, err := range map[string]error{"a failure": &source.CallError{Message: "no", Err: cause, Unknown: true}, "another error": cause} {
		failed := s.hide(err)
		if failed.Unknown != (name == "a failure") || failed.Message == "" || !errors.Is(failed, fs.ErrClosed) {
			t.Errorf("%s: got %+v", name, failed)
		}
		for err := error(failed); err != nil; err = errors.Unwrap(err) {
			if text := fmt.Sprintf("%v %+v %#v", err, err, err.Error()); strings.Contains(text, "secret") {
				t.Errorf("%s: told %s", name, text)
			}
		}
		if _, found := errors.AsType[*fs.PathError](failed); found {
			t.Errorf("%s: the cause itself is given away", name)
		}
	}
}
