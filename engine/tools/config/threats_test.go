package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/tools/config"
)

const correct = "{base_url: 'http://a', tools: [{name: a, method: GET, path: /}]}"

// wrong reads a file or directory and compares the mistakes, in which DIR stands for the directory.
func wrong(t *testing.T, path, dir, want string) {
	t.Helper()
	f, err := config.Read(path, lookUp)
	if err == nil {
		t.Fatalf("read %+v, want %s", f, want)
	}
	if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestT8Expansion checks that ${} is expanded in headers, environment and URLs only, and only once.
func TestT8Expansion(t *testing.T) {
	f := mustRead(t, `toolsets:
  a:
    title: ${WEATHER_KEY}
    description: ${file:/etc/passwd} ${FERMATA_SECRET}
    class: A
    http:
      base_url: http://a
      headers: {X-A: "${TWICE}", X-B: "$${WEATHER_KEY}"}
      tools:
      - {name: a, description: "${WEATHER_KEY}", method: GET, path: /, parameters: {type: object, properties: {b: {description: "${WEATHER_KEY}", default: "${FERMATA_SECRET}"}}}}
`)
	toolset := f.Toolset("a")
	text := fmt.Sprint(toolset.Title, toolset.Description, toolset.HTTP.Tools[0].Description, string(toolset.HTTP.Tools[0].Parameters))
	if strings.Contains(text, environment["WEATHER_KEY"]) || strings.Contains(text, environment["FERMATA_SECRET"]) || strings.Count(text, "${WEATHER_KEY}") != 3 {
		t.Errorf("the texts are %s", text)
	}
	if diff := cmp.Diff(map[string]string{"X-A": "${FERMATA_SECRET} and more", "X-B": "${WEATHER_KEY}"}, toolset.HTTP.Headers); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"FERMATA_SECRET", "fermata_secret", "Fermata_Other"} {
		if _, err := read(t, "toolsets: {a: {http: {base_url: 'http://a', headers: {X-A: '${"+name+"}'}, tools: []}}}"); err == nil || !strings.Contains(err.Error(), "${"+name+"} is not allowed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestT11Secrets reads secrets of all lengths from the environment, from files and from the file.
func TestT11Secrets(t *testing.T) {
	dir := write(t, map[string]string{"secret": "\n  secret of a file \n", "empty": " ", "long": strings.Repeat("x", config.MaxSecret+1), "huge": strings.Repeat("x", 1<<20)})
	template := "toolsets: {a: {UNMASKED http: {base_url: 'http://a', headers: {HEADER}, tools: [{name: a, method: GET, path: /}]}}}"
	for _, c := range []struct {
		header, unmasked string
		secrets          []string
		problem          string
	}{
		{`X-A: "${file:DIR/secret} ${WEATHER_KEY} ${WEATHER_KEY}"`, "", []string{"secret of a file", "key-of-the-weather"}, ""},
		{`Authorization: Bearer 0123456789abcdef`, "", []string{"0123456789abcdef"}, ""},
		{`X-Api-Key: "0123456789abcdef x"`, "", []string{"0123456789abcdef x"}, ""},
		{`Authorization: Basic YWxpY2U6MDEyMzQ1Njc4OWFiY2RlZg==`, "", []string{"YWxpY2U6MDEyMzQ1Njc4OWFiY2RlZg==", "alice:0123456789abcdef", "0123456789abcdef"}, ""},
		{`X-Token-Limit: 5, X-Monkey: a, X-Key-Id: b, X-authToken: 0123456789abcdef, Cookie: a=0123456789abcdef`, "", []string{"0123456789abcdef", "a=0123456789abcdef"}, ""},
		{`Authorization: Bearer 0123456789abcde`, "", nil, "headers.Authorization: the secret has 15 bytes"},
		{`X-A: "${SHORT}"`, "", nil, "headers.X-A: the environment variable SHORT has 7 bytes"},
		{`X-A: "${SHORT} ${WEATHER_KEY}"`, "unmasked: true,", []string{"key-of-the-weather"}, ""},
		{`X-A: "${EMPTY}"`, "unmasked: true,", nil, "the environment variable EMPTY is empty"},
		{`X-A: "${file:DIR/empty}"`, "", nil, `the secret in "DIR/empty" is empty`},
		{`X-A: "${file:DIR/long}"`, "", nil, `the secret in "DIR/long" has 8193 bytes; a secret has at most 8192`},
		{`X-A: "${file:DIR/huge}"`, "", nil, `the secret's file "DIR/huge": has more than the 8392 bytes that are allowed`},
	} {
		text := strings.NewReplacer("UNMASKED", c.unmasked, "HEADER", strings.ReplaceAll(c.header, "DIR", dir)).Replace(template)
		f, err := read(t, text)
		switch {
		case c.problem == "" && err != nil:
			t.Errorf("%s: %v", c.header, err)
		case c.problem == "":
			if diff := cmp.Diff(c.secrets, f.Toolsets[0].Secrets); diff != "" {
				t.Errorf("%s: %s", c.header, diff)
			}
		case err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.problem, "DIR", dir)):
			t.Errorf("%s: got %v, want %s", c.header, err, c.problem)
		}
	}
}

// TestT12HalfWritten reads each beginning of a file. A beginning that ends within the source of a toolset must
// be refused, so that a toolset is never read in part.
func TestT12HalfWritten(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "t.yaml")
	text := []byte("toolsets:\n  a:\n    http:\n      base_url: http://a\n      tools:\n        - name: a\n          method: GET\n          path: /\n")
	for i := range len(text) - 10 {
		if err := os.WriteFile(path, text[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := config.Read(path, lookUp); err == nil {
			t.Fatalf("the first %d bytes were read as %+v", i, f)
		}
	}
}

// TestT12Changing reads a file that somebody writes all the time.
func TestT12Changing(t *testing.T) {
	dir := write(t, map[string]string{"t.yaml": "toolsets: {a: {http: " + correct + "}}", "secret": "secret of a file"})
	path := filepath.Join(dir, "t.yaml")
	changes := 0
	text := "toolsets: {a: {http: {base_url: 'http://a', headers: {X-A: '${A_VARIABLE}'}, tools: [{name: a, method: GET, path: /}]}}}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The environment is looked up while the file is read: this is where it changes.
	change := func(most int) func(string) (string, bool) {
		return func(string) (string, bool) {
			if changes++; changes <= most {
				swap(t, path, text+strings.Repeat("\n", changes))
			}
			return "the value of it 0123", true
		}
	}
	f, err := config.Read(path, change(2))
	if err != nil || len(f.Toolsets) != 1 || changes != 3 {
		t.Errorf("after %d looks: %+v, %v", changes, f, err)
	}
	changes = 0
	if _, err = config.Read(path, change(3)); err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != "DIR/t.yaml: changes while it is read; write a new file beside it and rename it when it is whole" {
		t.Errorf("got %v", err)
	}
}

// swap replaces a file at once.
func swap(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Error(err)
	}
}

// TestT12Symlinks swaps a directory as Kubernetes does it, while it is read: the toolsets are those
// of one version.
func TestT12Symlinks(t *testing.T) {
	dir := directory(t)
	for _, version := range []string{"old", "new"} {
		if err := os.Mkdir(filepath.Join(dir, ".."+version), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"1", "2"} {
			text := fmt.Sprintf("toolsets: {%s_%s: {http: {base_url: 'http://a', headers: {X-A: '${A_VARIABLE}'}, tools: [{name: a, method: GET, path: /}]}}}", version, name)
			if err := os.WriteFile(filepath.Join(dir, ".."+version, name+".yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name+".new")); err != nil {
			t.Error(err)
		}
		if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	link("..old", "..data")
	link("..data/1.yaml", "1.yaml")
	link("..data/2.yaml", "2.yaml")
	looks := 0
	f, err := config.Read(dir, func(string) (string, bool) {
		if looks++; looks == 1 {
			link("..new", "..data")
		}
		return "the value of it 0123", true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Toolsets) != 2 || f.Toolsets[0].Key != "new_1" || f.Toolsets[1].Key != "new_2" || looks < 3 {
		t.Errorf("read %v after %d looks", f.Toolsets, looks)
	}
}

// TestT26Names uses names in policies that look like those of toolsets and tools.
func TestT26Names(t *testing.T) {
	for name, want := range map[string]string{
		"Weather": `there is no toolset "Weather"; did you mean weather?`, "WEATHER.current": `there is no toolset "WEATHER"; did you mean weather?`,
		"weather.get_current": `the toolset weather has no tool "get_current"; did you mean get-current?`, "weather ": `there is no toolset "weather "; did you mean weather?`,
		"weather.": "names no tool: write the toolset, or the toolset, a dot and the name of a tool", "weather.get-current ": "names no tool: write the toolset, or the toolset, a dot and the name of a tool",
		"*": `there is no toolset "*"`, "weather.*": `the toolset weather has no tool "*"`, "ｗeather": `there is no toolset "\uff57eather"`,
		"we\u0430ther": `there is no toolset "we\u0430ther"; did you mean weather?`, ".get-current": `there is no toolset ""`,
		"get-current": `there is no toolset "get-current"`, "weather.get-current.x": `the toolset weather has no tool "get-current.x"; did you mean get-current?`,
		"mcp_only.b": `the toolset mcp_only has no tool "b"`,
	} {
		for _, list := range []string{"allow", "block"} {
			_, err := read(t, `toolsets:
  weather: {http: {base_url: 'http://a', tools: [{name: get-current, method: GET, path: /}]}}
  mcp_only: {mcp: {url: "http://a", tools: [a]}}
policies: {p: {`+list+`: ["`+name+`"]}}
`)
			mistakes := config.Mistakes(err)
			if len(mistakes) != 1 || mistakes[0].Text != want || mistakes[0].Path != "policies.p."+list+"[0]" {
				t.Errorf("%q: got %v, want %s", name, err, want)
			}
		}
	}
	if _, err := read(t, "toolsets: {a: {http: "+correct+"}}\npolicies: {p: {block: ['']}}"); err == nil || !strings.Contains(err.Error(), "policies.p.block[0]: must not be empty") {
		t.Errorf("an empty name: %v", err)
	}
}

// TestT33Writable refuses files that other users may write or replace.
func TestT33Writable(t *testing.T) {
	dir := write(t, map[string]string{
		"t.yaml": "toolsets: {a: {http: {base_url: 'http://a', headers: {X-A: '${file:DIR/secret/s}'}, tools: [{name: a, method: GET, path: /}]}, UNUSED}}", "secret/s": "secret of a file",
	})
	path, secret := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "secret/s")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("DIR"), []byte(dir)), []byte(", UNUSED}"), []byte("}"))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Read(path, lookUp); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		mode os.FileMode
		want string
	}{
		{path, 0o602, "DIR/t.yaml: may be written by other users (its permissions are 0602); run chmod go-w on it"},
		{path, 0o620, "DIR/t.yaml: may be written by other users (its permissions are 0620); run chmod go-w on it"},
		{dir, 0o777, "DIR/t.yaml: its directory may be written by other users (its permissions are 0777); run chmod go-w on the directory"},
		{secret, 0o666, `DIR/t.yaml:1: toolsets.a.http.headers.X-A: the secret's file "DIR/secret/s": may be written by other users (its permissions are 0666); run chmod go-w on it`},
		{filepath.Dir(secret), 0o775, `DIR/t.yaml:1: toolsets.a.http.headers.X-A: the secret's file "DIR/secret/s": its directory may be written by other users (its permissions are 0775); run chmod go-w on the directory`},
	} {
		info, err := os.Stat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		wrong(t, path, dir, c.want)
		if err := os.Chmod(c.path, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	// In a directory such as /tmp nobody can replace the files of others.
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Read(path, lookUp); err != nil {
		t.Error(err)
	}
}

// TestT33ReadOnly reads a file that everybody might write if it were not mounted read-only. The test
// runs itself in a mount namespace.
func TestT33ReadOnly(t *testing.T) {
	const variable = "TEST_T33_READ_ONLY"
	if path := os.Getenv(variable); path != "" {
		if _, err := config.Read(path, lookUp); err != nil {
			t.Error(err)
		}
		return
	}
	dir := write(t, map[string]string{"volume/t.yaml": "toolsets: {a: {http: " + correct + "}}"})
	volume := filepath.Join(dir, "volume")
	for path, mode := range map[string]os.FileMode{volume: 0o777, filepath.Join(volume, "t.yaml"): 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	const mount = `mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"`
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", mount, "sh", volume).CombinedOutput(); err != nil {
		t.Skipf("cannot mount: %v: %s", err, out)
	}
	command := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", mount+` && exec "$2" -test.run='^TestT33ReadOnly$'`, "sh", volume, os.Args[0])
	command.Env = append(os.Environ(), variable+"="+filepath.Join(volume, "t.yaml"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	wrong(t, volume, dir, "DIR/volume/t.yaml: may be written by other users (its permissions are 0666); run chmod go-w on it")
}

// TestT33Files refuses files that are not regular, and does not wait for their content.
func TestT33Files(t *testing.T) {
	dir := write(t, map[string]string{"empty/readme": "x"})
	wrong(t, filepath.Join(dir, "missing"), dir, "DIR/missing: cannot be read: no such file or directory")
	wrong(t, filepath.Join(dir, "empty"), dir, "DIR/empty: has no file whose name ends in .yaml or .yml")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong(t, filepath.Join(dir, "pipe.yaml"), dir, "DIR/pipe.yaml: is no regular file")
	wrong(t, dir, dir, "DIR/pipe.yaml: is no regular file")
	wrong(t, "/dev/null", dir, "/dev/null: is no regular file")
	if err := os.Mkdir(filepath.Join(dir, "a\x1b[1m\nb"), 0o700); err != nil {
		t.Fatal(err)
	}
	wrong(t, filepath.Join(dir, "a\x1b[1m\nb"), dir, `DIR/a\x1b[1m\nb: has no file whose name ends in .yaml or .yml`)
}

// TestLimits reaches the limits of a file.
func TestLimits(t *testing.T) {
	toolsets := func(n int) string {
		var b strings.Builder
		b.WriteString("toolsets:\n")
		for i := range n {
			fmt.Fprintf(&b, "  a%d: {http: %s}\n", i, correct)
		}
		return b.String()
	}
	tools := func(n int) string {
		var b strings.Builder
		b.WriteString("toolsets: {a: {http: {base_url: 'http://a', tools: [")
		for i := range n {
			fmt.Fprintf(&b, "{name: a%d, method: GET, path: /},", i)
		}
		return b.String() + "]}}}"
	}
	schema := func(n int) string {
		return "toolsets: {a: {http: {base_url: 'http://a', tools: [{name: a, method: GET, path: /, parameters: {type: object, description: '" + strings.Repeat("x", n-len(`{"type":"object","description":""}`)) + "'}}]}}}"
	}
	text := func(member string, n int) string {
		return "toolsets: {a: {" + member + ": '" + strings.Repeat("x", n) + "', http: " + correct + "}}"
	}
	for name, c := range map[string]struct{ fits, exceeds, want string }{
		"bytes":       {toolsets(1) + "#" + strings.Repeat(" ", config.MaxFile-len(toolsets(1))-1), strings.Repeat(" ", config.MaxFile+1), "has more than the 1048576 bytes that are allowed"},
		"toolsets":    {toolsets(config.MaxToolsets), toolsets(config.MaxToolsets + 1), "toolsets: has 101 entries; at most 100 are allowed"},
		"tools":       {tools(config.MaxTools), tools(config.MaxTools + 1), "toolsets.a.http.tools: has 501 entries; at most 500 are allowed"},
		"schema":      {schema(config.MaxSchema), schema(config.MaxSchema + 1), "tools[0].parameters: has 65537 bytes as JSON; at most 65536 are allowed"},
		"description": {text("description", config.MaxDescription), text("description", config.MaxDescription+1), "a.description: has 4097 bytes; at most 4096 are allowed"},
		"title":       {text("title", 200), text("title", 201), "a.title: has 201 bytes; at most 200 are allowed"},
		"depth":       {toolsets(1), "toolsets: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "is nested more than 40 deep"},
		"much deeper": {toolsets(1), strings.Repeat("[", 500_000), "is no YAML: exceeded max depth of 10000"},
		"aliases":     {toolsets(1), "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n", "anchors (&) and aliases (*) are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, c.fits); err != nil {
				t.Errorf("what fits: %.300v", err)
			}
			begin := time.Now()
			if _, err := read(t, c.exceeds); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestManyMistakes checks that the number of reported mistakes is limited.
func TestManyMistakes(t *testing.T) {
	var b strings.Builder
	b.WriteString("toolsets:\n")
	for i := range 90 {
		fmt.Fprintf(&b, "  a%d:\n    x: 1\n    y: 1\n", i)
	}
	_, err := read(t, b.String())
	mistakes := config.Mistakes(err)
	if len(mistakes) != 101 || mistakes[100].Text != "from here on there are 170 more mistakes" {
		t.Errorf("got %d mistakes, the last is %v", len(mistakes), mistakes[len(mistakes)-1])
	}
	var first *config.Mistake
	if !errors.As(err, &first) || first.Line != 2 {
		t.Errorf("the first is %v", first)
	}
}

// TestLimitsOfDirectories counts over all files of a directory.
func TestLimitsOfDirectories(t *testing.T) {
	dir := write(t, map[string]string{"1.yaml": "toolsets: {a: {http: " + correct + "}}\n#" + strings.Repeat("x", config.MaxFile/2), "2.yaml": "#" + strings.Repeat("x", config.MaxFile/2)})
	wrong(t, dir, dir, "DIR/2.yaml: with it the files have more than 1048576 bytes together; split what they say over several servers")
	files := map[string]string{}
	for i := range config.MaxFiles + 1 {
		files[fmt.Sprintf("%d.yaml", i)] = fmt.Sprintf("toolsets: {a%d: {http: %s}}", i, correct)
	}
	dir = write(t, files)
	wrong(t, dir, dir, "DIR: has 101 files; at most 100 are allowed")
}

// FuzzRead reads anything.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	for _, m := range mistakes {
		f.Add([]byte(m.file))
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "t.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := config.Read(path, lookUp)
		if err == nil && (len(file.Toolsets) == 0 || file.Toolsets[0].Key == "") {
			t.Errorf("read %+v", file)
		}
		if err != nil && (config.Printable(strings.ReplaceAll(err.Error(), "\n", "")) != strings.ReplaceAll(err.Error(), "\n", "") || strings.Contains(err.Error(), environment["FERMATA_SECRET"])) {
			t.Errorf("the error is %q", err)
		}
	})
}
