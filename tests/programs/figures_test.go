package programs

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestFigures checks which figures of matplotlib come back as files.
func TestFigures(t *testing.T) {
	if !harness.HasLibraries() {
		t.Skip("programs have no matplotlib here")
	}
	cases := []struct {
		name, code, stderr string
		want               []string
	}{
		{"left open", "plt.plot([1, 2]);", "", []string{"figure-1.png"}},
		{"after a call", "plt.plot(await ask(y=[1, 2]))\nawait ask()", "", []string{"figure-1.png"}},
		{"shown twice", "plt.plot([1])\nplt.show()\nplt.plot([2])\nplt.show()\nassert not plt.get_fignums()", "", []string{"figure-1.png", "figure-2.png"}},
		{"saved by the program after it was shown", "import os\nfor name in 'ab':\n    plt.plot([1, 2])\n    plt.title(name)\n    plt.show()\n    plt.savefig(name)\n    assert os.path.getsize(name + '.png') > 5000", "", []string{"a.png", "b.png", "figure-1.png", "figure-2.png"}},
		{"saved by the program", "plt.plot([1])\nplt.savefig('a.png')\nplt.show()", "", []string{"a.png"}},
		{"closed", "plt.plot([1])\nplt.close()", "", nil},
		{"imported by itself", "from matplotlib import pyplot\npyplot.plot([1])", "", []string{"figure-1.png"}},
		{"a name that is taken", "open('figure-1.png', 'w').write('mine')\nplt.plot([1])", "", []string{"figure-1.png", "figure-2.png"}},
		{"not enough disk", `
			import errno
			with open("full", "wb", buffering=0) as file:
			    try:
			        while True: file.write(bytes(1 << 20))
			    except OSError: pass
			with open("full2", "wb", buffering=0) as file:
			    try:
			        while True: file.write(bytes(1))
			    except OSError: pass
			import atexit
			atexit.register(lambda: [os.unlink("full"), os.unlink("full2")])
			plt.plot([1])
		`, "a figure could not be saved: OSError: [Errno 28] No space left on device\n", nil},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.With(s.Libraries(), harness.Settings{"DISK": "8MiB"})).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a, _ := c.Run(t, harness.Program{Code: harness.Py(tc.code), Tools: harness.Tools("ask")}, harness.Value("[1, 2]"))
				a.Completes(t, "")
				a.Leaves(t, tc.want...)
				if a.Stderr != tc.stderr {
					t.Errorf("stderr = %q, want %q", a.Stderr, tc.stderr)
				}
			})
		}
		t.Run("the picture", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "plt.plot([1, 2])"})
			a.Completes(t, "")
			if picture := c.Download(t, a.File(t, "figure-1.png").FileRef); !strings.HasPrefix(picture, "\x89PNG\r\n") || len(picture) < 5000 {
				t.Errorf("the file has %d bytes and begins %.8q, want a PNG", len(picture), picture)
			}
		})
		t.Run("warnings have the line of the program, once", func(t *testing.T) {
			t.Parallel()
			// No font has this letter.
			a := c.Post(t, harness.Program{Code: "plt.plot([1])\nplt.title('\\ue000')\nplt.savefig('a.png')\nplt.close()"})
			a.Completes(t, "")
			if want := "<program>:3: UserWarning: Glyph 57344 "; !strings.HasPrefix(a.Stderr, want) || strings.Count(a.Stderr, "Glyph") != 1 {
				t.Errorf("stderr = %q, want %q", a.Stderr, want)
			}
		})
		t.Run("a session does not lose the picture before", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "plt.plot([1, 2])"})
			a.Leaves(t, "figure-1.png")
			c.Post(t, harness.Program{Code: "plt.plot([2, 1])", Session: a.Session}).Leaves(t, "figure-1.png inherited", "figure-2.png")
		})
		t.Run("a program that fails", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "plt.plot([1, 2])\n1 / 0"})
			a.Fails(t, 200, "ZeroDivisionError: division by zero")
			a.Leaves(t, "figure-1.png")
		})
		if s.Docker() { // elsewhere the fonts are the machine's
			t.Run("letters of the whole world", func(t *testing.T) {
				t.Parallel()
				a := c.Post(t, harness.Program{Code: "plt.title('météo 天气 日本語 한국어')\nplt.plot([1])"})
				a.Completes(t, "")
				if a.Stderr != "" {
					t.Errorf("stderr = %q, want no word of missing letters", a.Stderr)
				}
			})
		}
		t.Run("without tools", func(t *testing.T) {
			t.Parallel()
			a := c.Exec(t, nil, map[string]any{"lang": "python", "code": "plt.plot([1, 2])\nplt.show()"})
			harness.Contains(t, "files", string(a.Files), `"name":"figure-1.png"`)
		})
	})
}
