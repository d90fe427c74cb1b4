package programs

import (
	"testing"

	"fermata/tests/harness"
)

// TestUnnamedLibraries runs programs whose text names no library, so that nothing makes their
// sandbox a scientific one, and which use a library all the same.
func TestUnnamedLibraries(t *testing.T) {
	cases := []harness.Case{
		{Name: "an array", Code: `print(eval("n" "p.arange(3).sum()"))`, Stdout: "3\n"},
		{Name: "a frame", Code: `exec("frame = p" "d.DataFrame({'a': [1, 2]})\nprint(frame['a'].sum(), isinstance(frame, p" "d.DataFrame))")`, Stdout: "3 True\n"},
		{Name: "a plot", Code: `exec("p" "lt.plot([1, 2]); p" "lt.savefig('a.png')"); print(os.listdir(), os.listdir("/tmp"))`, Stdout: "['a.png'] []\n"},
		{Name: "an import", Code: `module = __import__("num" "py"); print(globals()["n" "p"] is module, module.ones(2).sum())`, Stdout: "True 2.0\n"},
		{Name: "all of them", Code: `exec("import sci" "py.stats, sk" "learn.linear_model\nprint(sci" "py.stats.norm.cdf(0), p" "d is pan" "das)")`, Stdout: "0.5 True\n"},
		{Name: "in a tool call", Code: `print(await ask(x=eval("n" "p.arange(3)")))`, Tools: harness.Tools("ask"), Stdout: "{'x': [0, 1, 2]}\n"},
	}
	if !harness.HasLibraries() {
		t.Skip("programs have no numpy here")
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		harness.RunCases(t, harness.Serve(t, s, s.Libraries()).Alice(), cases)
	})
}
