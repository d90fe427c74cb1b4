package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// examples has a setting of each kind.
type examples struct {
	Text     string        `default:"before"`
	Whole    int           `default:"1"`
	Fraction float64       `name:"part"`
	Switch   bool          `short:"s" env:"FERMATA_SWITCH,OTHER_SWITCH"`
	Time     time.Duration `env:"-"`
	MaxSize  byteSize
	Optional *int
	List     []string
	Dir      string `type:"path"`
	Choice   string `enum:"a,b" default:"a"`
	Group    struct {
		ListenAddr string
	} `prefix:"sub-" group:"Sub"`
	First  string `arg:""`
	Second string `arg:"" default:"second"`
}

// Flags win over the environment, and that over defaults.
func TestSettings(t *testing.T) {
	home, here := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(here)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, environment string
		member            string
		want              any
		mistake           string
	}{
		{"", "", "Text", "before", ""},
		{"", "FERMATA_TEXT=x", "Text", "x", ""},
		{"", "FERMATA_TEXT=", "Text", "", ""},
		{"--text=y", "FERMATA_TEXT=x", "Text", "y", ""},
		{"--text y", "FERMATA_TEXT=x", "Text", "y", ""},
		{"--text=", "FERMATA_TEXT=x", "Text", "", ""},
		{"--text", "", "", nil, "--text: want a value"},
		{"--text --switch", "", "", nil, "--text: a value cannot begin with --: is the value missing?"},
		{"--whole=-7", "", "Whole", -7, ""},
		{"--whole -7", "", "Whole", -7, ""},
		{"--whole=8", "FERMATA_WHOLE=many", "Whole", 8, ""},
		{"--whole=1.5", "", "", nil, `--whole: want a whole number, got "1.5"`},
		{"", "FERMATA_WHOLE=many", "", nil, `--whole: want a whole number, got "many" (from FERMATA_WHOLE="many")`},
		{"--part=1.5", "", "Fraction", 1.5, ""},
		{"", "FERMATA_PART=x", "", nil, `--part: want a number, got "x" (from FERMATA_PART="x")`},
		{"--switch", "", "Switch", true, ""},
		{"-s", "", "Switch", true, ""},
		{"--switch=no", "FERMATA_SWITCH=yes", "Switch", false, ""},
		{"", "OTHER_SWITCH=1", "Switch", true, ""},
		{"", "FERMATA_SWITCH=false OTHER_SWITCH=1", "Switch", false, ""},
		{"", "FERMATA_SWITCH=", "", nil, `--switch: want true or false, got "" (from FERMATA_SWITCH="")`},
		{"--time=5s", "", "Time", 5 * time.Second, ""},
		{"", "FERMATA_TIME=5", "Time", time.Duration(0), ""},
		{"--max-size=2KiB", "", "MaxSize", byteSize(2048), ""},
		{"", "FERMATA_MAX_SIZE=big", "", nil, `--max-size: want a size such as 512MiB or 50MB, got "big" (from FERMATA_MAX_SIZE="big")`},
		{"", "", "Optional", (*int)(nil), ""},
		{"--optional=0", "", "Optional", new(int), ""},
		{"", "FERMATA_LIST=a,b", "List", []string{"a", "b"}, ""},
		{"", "FERMATA_LIST=", "List", []string(nil), ""},
		{"--list=c,d --list e", "FERMATA_LIST=a,b", "List", []string{"c", "d", "e"}, ""},
		{"--dir=~/x", "", "Dir", filepath.Join(home, "x"), ""},
		{"--dir=x/../y", "", "Dir", filepath.Join(here, "y"), ""},
		{"--dir=", "", "Dir", "", ""},
		{"--choice=b", "", "Choice", "b", ""},
		{"", "FERMATA_CHOICE=c", "", nil, `--choice: must be one of a, b, not "c" (from FERMATA_CHOICE="c")`},
		{"--sub-listen-addr=x", "", "Group", struct{ ListenAddr string }{"x"}, ""},
		{"", "FERMATA_SUB_LISTEN_ADDR=x", "Group", struct{ ListenAddr string }{"x"}, ""},
		{"--choise=b", "", "", nil, `unknown flag --choise, did you mean "--choice"?`},
		{"--xyz", "", "", nil, "unknown flag --xyz"},
		{"-x", "", "", nil, "unknown flag -x"},
		{"", "", "Second", "second", ""},
		{"other", "", "Second", "other", ""},
		{"-- -other", "", "Second", "-other", ""},
		{"other third", "", "", nil, "unexpected argument third"},
	} {
		t.Run(c.args+"|"+c.environment, func(t *testing.T) {
			for pair := range strings.FieldsSeq(c.environment) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			var e examples
			err := (&command{common: new(commonFlags), options: &e}).parse(append([]string{"first"}, strings.Fields(c.args)...))
			if c.mistake != "" {
				if err == nil || err.Error() != c.mistake {
					t.Errorf("got the error %v, want %s", err, c.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := reflect.ValueOf(e).FieldByName(c.member).Interface(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s is %#v, want %#v", c.member, got, c.want)
			}
		})
	}
}

func TestUnknownCommands(t *testing.T) {
	for line, want := range map[string]string{
		"":                     "expected one of serve, check, health, mcp, toolsets, version, help",
		"nothing":              "unexpected argument nothing",
		"help nothing":         "unexpected argument nothing",
		"serv":                 `unexpected argument serv, did you mean "serve"?`,
		"--auth=off serve":     "unknown flag --auth",
		"version extra":        "unexpected argument extra",
		"toolsets":             "expected one of check, call, stub, docs",
		"toolsets cal":         `unexpected argument cal, did you mean "call"?`,
		"toolsets call":        `expected "<file> <toolset.tool>"`,
		"toolsets call a":      `expected "<toolset.tool>"`,
		"toolsets stub a b c":  "unexpected argument c",
		"serve --memory=1 two": "unexpected argument two",
	} {
		err := run(t.Context(), strings.Fields(line), io.Discard, io.Discard)
		if want += " (see fermata --help)"; err == nil || err.Error() != want {
			t.Errorf("fermata %s: got %v, want %s", line, err, want)
		}
	}
}

// The help of each command fits into a narrow window.
func TestHelpIsWrapped(t *testing.T) {
	var visit func(*command)
	visit = func(c *command) {
		var out bytes.Buffer
		if err := c.printHelp(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("the help of %q has a line of %d characters: %s", c.name, n, line)
			}
		}
		for _, b := range c.below {
			visit(b)
		}
	}
	visit(commands(new(commonFlags), io.Discard, io.Discard))
}

func TestHelpOfExamples(t *testing.T) {
	var out bytes.Buffer
	c := command{name: "try", help: "Tries it.", common: new(commonFlags), options: &struct {
		Long  []string `placeholder:"PLACEHOLDER.OF.MANY.LETTERS" help:"A long one."`
		Size  byteSize `default:"1MB" env:"FERMATA_SIZE,PTC_SIZE" help:"This is about the size of something, which needs two lines. Default: none."`
		Plain bool     `env:"-" help:"A switch."`
		Sub   struct {
			Name string `help:"Which."`
		} `group:"More"`
		File string `arg:"" help:"A file."`
		Rest string `arg:"" default:"-" help:"More."`
	}{}}
	if err := c.printHelp(&out); err != nil {
		t.Fatal(err)
	}
	const want = `Usage: fermata try <file> [<rest>] [flags]

Tries it.

Arguments:
  <file>    A file.
  [<rest>]  More.

Flags:
  -h, --help  Show context-sensitive help.
  --version   Print the version.
  --long=PLACEHOLDER.OF.MANY.LETTERS,...
              A long one ($FERMATA_LONG).
  --size=1MB  This is about the size of something, which needs two lines.
              Default: none ($FERMATA_SIZE, $PTC_SIZE).
  --plain     A switch.

More:
  --name=NAME  Which ($FERMATA_NAME).
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := fmt.Sprint(wrapped("", 10)); got != "[]" {
		t.Errorf("an empty text has the lines %s", got)
	}
}
