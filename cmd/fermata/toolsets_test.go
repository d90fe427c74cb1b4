package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toolsetsFile has toolsets of all sources. HIDDEN stands for a character that turns the direction
// of the text.
const toolsetsFile = `toolsets:
  weather:
    concurrency: 3
    http:
      base_url: https://${WEATHER_HOST}/v1?key=${WEATHER_KEY}
      headers: {Authorization: "Bearer ${WEATHER_KEY}"}
      tools:
        - name: current
          method: GET
          path: /current/{city}
          parameters: {type: object, properties: {city: {type: string}}, required: [city]}
          cost: 3
          approval: always
          callers: [code]
        - {name: report, method: POST, path: /reports, idempotent: true, lane: reports, envelope: true}
  petstore:
    openapi: {file: openapi/petstore.json, operations: [findPets]}
  github:
    private: true
    mcp: {url: https://mcp.example.com/mcp}
  files:
    trusted: true
    mcp: {command: [npx, HIDDEN], tools: {write_file: {hide: true}}}
policies:
  readers: {allow: [weather.current, github.search_code], block: [files], max_cost: 100}
  nobody: {mode: off}
principals: {alice: readers, bob: readers}
`

// petstore is an OpenAPI document.
const petstore = `{"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": "https://pets.example.com"}],
"paths": {"/pets": {"get": {"operationId": "findPets", "responses": {}}, "post": {"operationId": "addPet", "responses": {}}}}}`

// writeToolsets writes a toolsets file and what it refers to, and returns its name.
func writeToolsets(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // The umask may let others write.
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "openapi"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"toolsets.yaml": text, "openapi/petstore.json": petstore} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("WEATHER_KEY", "a key of 19 letters")
	t.Setenv("WEATHER_HOST", "weather.example.com")
	return filepath.Join(dir, "toolsets.yaml")
}

// toolsetsCheck runs fermata toolsets check. DIR stands for the directory in what it prints.
func toolsetsCheck(t *testing.T, path string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errors bytes.Buffer
	err = run(t.Context(), append([]string{"toolsets", "check", path}, args...), &out, &errors)
	short := func(text string) string { return strings.ReplaceAll(text, filepath.Dir(path), "DIR") }
	return short(out.String()), short(errors.String()), err
}

func TestToolsetsCheck(t *testing.T) {
	path := writeToolsets(t, strings.Replace(toolsetsFile, "HIDDEN", `"\u202e"`, 1))
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"list", nil, `weather       http     https://***/v1               class Weather, concurrency 3
  current     tool     GET /current/{city}          cost 3, approval always, only code
  report      tool     POST /reports                idempotent, lane reports, envelope
petstore      openapi  DIR/openapi/petstore.json    class Petstore
  findPets    tool
github        mcp      https://mcp.example.com/mcp  class Github, private
  …           tools    other tools of its source
files         mcp      npx \u202e                   class Files, trusted
  write_file  tool                                  hidden
  …           tools    other tools of its source

nobody   policy  off                                                                      for nobody
readers  policy  allow weather.current, github.search_code; block files; max_cost 100  for alice, bob
`},
		{"as a principal", []string{"--as=alice", "--toolsets-block=github"}, `weather       http     https://***/v1               class Weather, concurrency 3
  current     allowed  GET /current/{city}          cost 3, approval always, only code
  report      refused  POST /reports                the policy readers does not allow it; idempotent, lane reports, envelope
petstore      openapi  DIR/openapi/petstore.json    class Petstore
  findPets    refused                               the policy readers does not allow it
github        mcp      https://mcp.example.com/mcp  class Github, private
  …           refused  other tools of its source    FERMATA_TOOLSETS_BLOCK blocks it
files         mcp      npx \u202e                   class Files, trusted
  write_file  refused                               the policy readers blocks it; hidden
  …           refused  other tools of its source    the policy readers blocks it
`},
		{"allowed in part", []string{"--as=alice"}, `
  …           in part  other tools of its source    tools that are not named: the policy readers does not allow it
`},
		{"as a principal without a policy", []string{"--as=eve"}, `
  …           allowed  other tools of its source
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, err := toolsetsCheck(t, path, c.args...)
			if err != nil || stderr != "" {
				t.Fatalf("%v, %s", err, stderr)
			}
			// Columns are as wide as the name of the directory takes.
			if !strings.Contains(squeezed(stdout), squeezed(c.want)) {
				t.Errorf("got\n%s\nwant\n%s", stdout, c.want)
			}
			if strings.Contains(stdout, "a key of") || strings.Contains(stdout, "weather.example.com") || strings.Contains(stdout, "key=") {
				t.Errorf("a secret is printed:\n%s", stdout)
			}
		})
	}
}

// squeezed returns a text in which runs of blanks are one blank.
func squeezed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// TestToolsetsCheckMistakes reads files with mistakes.
func TestToolsetsCheckMistakes(t *testing.T) {
	path := writeToolsets(t, "toolsets:\n  weather:\n    titel: Weather\n    http: {base_url: 'https://a', tools: [{name: \"a\\e[1m\", method: GET, path: /}]}\n")
	stdout, stderr, err := toolsetsCheck(t, path)
	want := "DIR/toolsets.yaml:3: toolsets.weather.titel: is not known here; did you mean title?\n" +
		"DIR/toolsets.yaml:4: toolsets.weather.http.tools[0].name: must not contain control characters\n"
	if stdout != "" || stderr != want || err == nil || err.Error() != "the toolsets cannot be used: there are 2 mistakes" {
		t.Errorf("printed %s and\n%s: %v", stdout, stderr, err)
	}
	if _, stderr, err = toolsetsCheck(t, filepath.Join(filepath.Dir(path), "missing\x1b[1m")); stderr != `DIR/missing\x1b[1m: cannot be read: no such file or directory`+"\n" || err == nil || err.Error() != "the toolsets cannot be used: there is a mistake" {
		t.Errorf("printed %s: %v", stderr, err)
	}
}

// TestT26Synonyms sets both names of a setting, and names in prohibitions that stand for nothing.
func TestT26Synonyms(t *testing.T) {
	path := writeToolsets(t, strings.Replace(toolsetsFile, "HIDDEN", "a", 1))
	for name, c := range map[string]struct {
		env                     map[string]string
		weather, stderr, failed string
	}{
		"ours":           {map[string]string{"FERMATA_TOOLSETS_BLOCK": "github, weather.current"}, "refused", "", ""},
		"the seed's":     {map[string]string{"PTC_TOOLSET_BLOCKLIST": " weather ,github"}, "refused", "", ""},
		"both, equal":    {map[string]string{"FERMATA_TOOLSETS_BLOCK": "weather", "PTC_TOOLSET_BLOCKLIST": "weather"}, "refused", "", ""},
		"both":           {map[string]string{"FERMATA_TOOLSETS_BLOCK": "github", "PTC_TOOLSET_BLOCKLIST": "weather"}, "", "", "FERMATA_TOOLSETS_BLOCK and PTC_TOOLSET_BLOCKLIST are the same setting and have different values: unset one of them"},
		"both, one void": {map[string]string{"FERMATA_TOOLSETS_BLOCK": "", "PTC_TOOLSET_BLOCKLIST": "weather"}, "", "", "FERMATA_TOOLSETS_BLOCK and PTC_TOOLSET_BLOCKLIST are the same setting and have different values: unset one of them"},
		"void":           {map[string]string{"FERMATA_TOOLSETS_BLOCK": ""}, "allowed", "", ""},
		"modes":          {map[string]string{"PTC_MODE": "partial", "PTC_USER_ALLOWLIST": "bob, alice"}, "allowed", "", ""},
		"mode off":       {map[string]string{"PTC_MODE": "off"}, "refused", "", ""},
		"debug":          {map[string]string{"PTC_DEBUG": "true", "PTC_SEQUENTIAL": "true"}, "allowed", "", ""},
		"a slip":         {map[string]string{"FERMATA_TOOLSETS_BLOCK": "Weather,,github."}, "", "", "FERMATA_TOOLSETS_BLOCK: there is no toolset \"Weather\": correct the name, or take it out\nFERMATA_TOOLSETS_BLOCK: there is an empty name: correct the name, or take it out\nFERMATA_TOOLSETS_BLOCK: \"github.\" names no tool: correct the name, or take it out"},
		"a slip, allow":  {map[string]string{"PTC_TOOLSET_ALLOWLIST": "Weather"}, "refused", "warning: FERMATA_TOOLSETS_ALLOW: there is no toolset \"Weather\".\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for name, text := range c.env {
				t.Setenv(name, text)
			}
			stdout, stderr, err := toolsetsCheck(t, path, "--as=alice")
			if c.failed != "" {
				if err == nil || err.Error() != c.failed || stdout != "" {
					t.Errorf("%v; printed %s", err, stdout)
				}
				return
			}
			if err != nil || stderr != c.stderr || !strings.Contains(squeezed(stdout), "\ncurrent "+c.weather+" ") {
				t.Errorf("%v, %s; printed\n%s", err, stderr, stdout)
			}
		})
	}
}

// TestToolsetsCheckStatus runs the command as a process, which is this test itself.
func TestToolsetsCheckStatus(t *testing.T) {
	const arguments = "TEST_TOOLSETS_CHECK"
	if path := os.Getenv(arguments); path != "" {
		os.Args = []string{"fermata", "toolsets", "check", path}
		main()
		os.Exit(0)
	}
	path := writeToolsets(t, strings.Replace(toolsetsFile, "HIDDEN", "a", 1))
	for _, c := range []struct {
		path   string
		status int
	}{{path, 0}, {filepath.Dir(path), 0}, {path + "x", 1}} {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestToolsetsCheckStatus$")
		command.Env = append(os.Environ(), arguments+"="+c.path)
		err := command.Run()
		status := 0
		if exit, failed := errors.AsType[*exec.ExitError](err); failed {
			status = exit.ExitCode()
		}
		if status != c.status {
			t.Errorf("%s: status %d (%v), want %d", c.path, status, err, c.status)
		}
	}
}
