package engine

import (
	"encoding/json"
	"testing"

	"fermata/engine/sandbox"
)

// A program gets a scientific sandbox if its text names a library.
func TestKind(t *testing.T) {
	for code, want := range map[string]sandbox.Kind{
		"":                                 sandbox.Plain,
		"print('x')":                       sandbox.Plain,
		"x = 1\nnp.arange(3)":              sandbox.Scientific,
		"x = 1\tnp":                        sandbox.Scientific,
		"from sklearn import svm":          sandbox.Scientific,
		"import pandas":                    sandbox.Scientific,
		"python3 -c 'import matplotlib'":   sandbox.Scientific,
		"inp = npc + my_np + pdf + splt":   sandbox.Plain,
		"json.loads(x)['np2']":             sandbox.Plain,
		"df = pd.DataFrame()":              sandbox.Scientific,
		"import scipy.stats":               sandbox.Scientific,
		"ünp = 1":                          sandbox.Scientific, // a wrong guess
		"# this program uses no numpy":     sandbox.Scientific, // another one
		"importlib.import_module('n'+'p')": sandbox.Plain,
	} {
		encoded, err := json.Marshal(code)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Start{Code: encoded}).kind(); got != want {
			t.Errorf("%q runs in a %s sandbox, want %s", code, got, want)
		}
		if got := (Start{Code: encoded, Mode: Bash}).kind(); got != sandbox.Plain {
			t.Errorf("the script %q runs in a %s sandbox, want a plain one", code, got)
		}
	}
}
