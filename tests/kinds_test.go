package tests

import "testing"

// TestUnnamedLibraries runs programs whose text names no library, so that nothing makes their
// sandbox a scientific one, and which use a library all the same.
func TestUnnamedLibraries(t *testing.T) {
	cases := []programCase{
		{name: "an array", code: `print(eval("n" "p.arange(3).sum()"))`, stdout: "3\n"},
		{name: "a frame", code: `exec("frame = p" "d.DataFrame({'a': [1, 2]})\nprint(frame['a'].sum(), isinstance(frame, p" "d.DataFrame))")`, stdout: "3 True\n"},
		{name: "a plot", code: `exec("p" "lt.plot([1, 2]); p" "lt.savefig('a.png')"); print(os.listdir(), os.listdir("/tmp"))`, stdout: "['a.png'] []\n"},
		{name: "an import", code: `module = __import__("num" "py"); print(globals()["n" "p"] is module, module.ones(2).sum())`, stdout: "True 2.0\n"},
		{name: "all of them", code: `exec("import sci" "py.stats, sk" "learn.linear_model\nprint(sci" "py.stats.norm.cdf(0), p" "d is pan" "das)")`, stdout: "0.5 True\n"},
		{name: "in a tool call", code: `print(await ask(x=eval("n" "p.arange(3)")))`, tools: tools("ask"), stdout: "{'x': [0, 1, 2]}\n"},
	}
	overSetups(t, func(t *testing.T, s setup) {
		needLibraries(t, "numpy")
		runCases(t, serve(t, s, s.libraries()).alice(), cases)
	})
}
