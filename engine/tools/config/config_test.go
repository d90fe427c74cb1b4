package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fermata/engine/tools/config"
)

// environment has the environment variables of the tests.
var environment = map[string]string{
	"WEATHER_KEY": "key-of-the-weather", "GITHUB_TOKEN": "  token-of-github-0\n", "SHORT": "seven77", "EMPTY": " \n",
	"LINES": "first line of it\nsecond line of it", "FERMATA_SECRET": "the secret of the server", "LONG": strings.Repeat("x", config.MaxSecret+1),
	"TWICE": "${FERMATA_SECRET} and more", "HOST": "internal-api.example.com", "LATIN": "abcdefghijklmnop\xff",
}

func lookUp(name string) (string, bool) {
	text, found := environment[name]
	return text, found
}

// directory returns a new directory that others may not write, whatever the umask is.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// write writes files into a new directory, which it returns.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := directory(t)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read reads one file.
func read(t *testing.T, text string) (*config.File, error) {
	t.Helper()
	return config.Read(filepath.Join(write(t, map[string]string{"t.yaml": text, "petstore.json": `{"openapi": "3.0.0"}`}), "t.yaml"), lookUp)
}

// mustRead reads one file that has no mistake.
func mustRead(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const whole = `
toolsets:
  weather:
    title: Weather now & then
    description: |
      Current weather.
      And forecasts.
    concurrency: 4
    private: true
    proxy: http://proxy.example.com:3128
    http:
      base_url: https://api.example.com/base?units=metric
      headers: {Authorization: "Bearer ${WEATHER_KEY}", Accept: application/json, X-Price: $$5 or 7$}
      timeout: 20s
      retries: 3
      tools:
        - name: current
          description: Weather now. ${WEATHER_KEY} stays.
          method: GET
          path: /v1/current/{city}
          parameters: {type: object, properties: {city: {type: string}, day: {enum: [2024-01-02, 1.50, 0, true, null]}}, required: [city]}
          result: /data
          cost: 3
          idempotent: true
          approval: operator
          callers: [code]
          lane: orders
          envelope: true
        - {name: ping, method: POST, path: /ping}
  petstore:
    class: Pets
    validate: false
    openapi:
      file: petstore.json
      base_url: https://${HOST}/v3
      operations: [getPetById, findPets]
      tools: {findPets: {hide: true, envelope: true}}
  github:
    shared: true
    mcp: {url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer ${GITHUB_TOKEN}"}, tools: [search_code], timeout: 1m}
  files:
    trusted: true
    mcp:
      command: [npx, -y, some-server, /data, 5, ""]
      env: {API_TOKEN: "${WEATHER_KEY}", DEBUG: 1, TEXT: "${LINES}"}
      tools: {write.file: {approval: always, text: true}}
policies:
  readers: {allow: [weather, github.search_code, files.read_file], block: [weather.ping], mode: on, max_cost: 0, max_day_cost: 0}
  nobody: {mode: off, allow: []}
principals: {alice: readers, "jwt:tenant:bob": nobody}
`

func TestRead(t *testing.T) {
	got := mustRead(t, whole)
	yes, none := true, int64(0)
	want := &config.File{
		Toolsets: []config.Toolset{
			{
				Key: "weather", Title: "Weather now & then", Class: "WeatherNowThen", Description: "Current weather.\nAnd forecasts.\n", Concurrency: 4, Private: true,
				Proxy: "http://proxy.example.com:3128", Validate: true, Timeout: 20 * time.Second, Secrets: []string{"key-of-the-weather"},
				HTTP: &config.HTTP{
					BaseURL: "https://api.example.com/base?units=metric", Retries: 3,
					Headers: map[string]string{"Authorization": "Bearer key-of-the-weather", "Accept": "application/json", "X-Price": "$5 or 7$"},
					Tools: []config.HTTPTool{
						{
							Name: "current", Description: "Weather now. ${WEATHER_KEY} stays.", Method: "GET", Path: "/v1/current/{city}",
							Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"day":{"enum":["2024-01-02",1.50,0,true,null]}},"required":["city"]}`),
							Result:     "/data",
							Rules:      config.Rules{Cost: 3, Idempotent: &yes, Approval: config.ApprovalOperator, Callers: []string{config.CallerCode}, Lane: "orders", Envelope: true},
						},
						{Name: "ping", Method: "POST", Path: "/ping", Parameters: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
					},
				},
			},
			{
				Key: "petstore", Title: "petstore", Class: "Pets", Timeout: config.DefaultTimeout, Secrets: []string{"internal-api.example.com"},
				OpenAPI: &config.OpenAPI{
					File: got.Toolsets[1].OpenAPI.File, Document: config.NewDocument([]byte(`{"openapi": "3.0.0"}`)), BaseURL: "https://internal-api.example.com/v3", Retries: config.DefaultRetries,
					Only: []string{"getPetById", "findPets"}, Tools: map[string]config.Rules{"findPets": {Hide: true, Envelope: true}},
				},
			},
			{
				Key: "github", Title: "github", Class: "Github", Validate: true, Shared: true, Timeout: time.Minute, Secrets: []string{"token-of-github-0"},
				MCP: &config.MCP{URL: "https://mcp.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer token-of-github-0"}, Only: []string{"search_code"}},
			},
			{
				Key: "files", Title: "files", Class: "Files", Validate: true, Trusted: true, Timeout: config.DefaultTimeout,
				Secrets: []string{"key-of-the-weather", environment["LINES"]},
				MCP: &config.MCP{
					Command: []string{"npx", "-y", "some-server", "/data", "5", ""},
					Env:     map[string]string{"API_TOKEN": "key-of-the-weather", "DEBUG": "1", "TEXT": environment["LINES"]},
					Tools:   map[string]config.Rules{"write.file": {Approval: config.ApprovalAlways, Text: true}},
				},
			},
		},
		Policies: map[string]config.Policy{
			"readers": {Allow: []string{"weather", "github.search_code", "files.read_file"}, Block: []string{"weather.ping"}, MaxCost: &none, MaxDayCost: &none},
			"nobody":  {Off: true, Allow: []string{}},
		},
		Principals: map[string]string{"alice": "readers", "jwt:tenant:bob": "nobody"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Toolset{}, config.Document{})); diff != "" {
		t.Error(diff)
	}
}

// TestURLs expands ${} in URLs. A secret in a query cannot end the value of its parameter.
func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"https://${HOST}:8080/a": "https://internal-api.example.com:8080/a", "https://a/?key=${TWICE}&x=$$1": "https://a/?key=%24%7BFERMATA_SECRET%7D+and+more&x=$1",
		"https://a/b%2Fc?": "https://a/b%2Fc?", "HTTPS://A": "HTTPS://A",
	} {
		f := mustRead(t, "toolsets: {a: {mcp: {url: '"+text+"'}}}")
		if got := f.Toolsets[0].MCP.URL; got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// TestT10Printed prints toolsets in all the ways in which a log would.
func TestT10Printed(t *testing.T) {
	f := mustRead(t, whole)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("read", "file", f, "toolset", f.Toolsets[0])
	slog.New(slog.NewJSONHandler(&log, nil)).Info("read", "file", f, "toolset", &f.Toolsets[0])
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", f, f, f.Toolsets, f.Toolsets[0]), log.String()} {
		if strings.Contains(text, "key-of") || strings.Contains(text, "token-of") || !strings.Contains(text, "weather") {
			t.Errorf("printed %s", text)
		}
	}
}

func TestToolset(t *testing.T) {
	f := mustRead(t, whole)
	if f.Toolset("weather") == nil || f.Toolset("Weather") != nil {
		t.Error("toolsets are found by their keys")
	}
	for key, want := range map[string]string{"weather": "http current,ping true", "petstore": "openapi getPetById,findPets true", "github": "mcp search_code true", "files": "mcp write.file false"} {
		toolset := f.Toolset(key)
		names, complete := toolset.Names()
		if got := fmt.Sprintf("%s %s %t", toolset.Source(), strings.Join(names, ","), complete); got != want {
			t.Errorf("%s has %s, want %s", key, got, want)
		}
	}
	if rules := f.Toolset("files").Rules("write.file"); !rules.NeedsApproval() || f.Toolset("weather").Rules("current").Cost != 3 || f.Toolset("petstore").Rules("other").NeedsApproval() {
		t.Error("the rules are not those of the file")
	}
}

func TestDefaultClasses(t *testing.T) {
	f := mustRead(t, strings.NewReplacer("HTTP", "{base_url: 'http://a', tools: [{name: a, method: GET, path: /}]}").Replace(`toolsets:
  my_tools2: {http: HTTP}
  digits: {title: 3D printer, http: HTTP}
  signs: {title: "天気", http: HTTP}
`))
	var classes []string
	for _, toolset := range f.Toolsets {
		classes = append(classes, toolset.Class)
	}
	if diff := cmp.Diff([]string{"MyTools2", "Digits", "Signs"}, classes); diff != "" {
		t.Error(diff)
	}
}

// TestDirectory reads all files of a directory as one.
func TestDirectory(t *testing.T) {
	const toolset = "toolsets: {KEY: {http: {base_url: 'http://a', tools: [{name: a, method: GET, path: /}]}}}\n"
	dir := write(t, map[string]string{
		"1.yaml": strings.Replace(toolset, "KEY", "one", 1), "2.yml": strings.Replace(toolset, "KEY", "two", 1) + "policies: {p: {allow: [one.a]}}",
		"3.yaml": "principals: {alice: p}", ".hidden.yaml": "x", "4.yaml.bak": "x", "docs/petstore.yaml": "x",
	})
	f, err := config.Read(dir, lookUp)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Toolsets) != 2 || f.Toolsets[0].Key != "one" || f.Toolsets[1].Key != "two" || f.Principals["alice"] != "p" {
		t.Errorf("read %+v", f)
	}
	for name, text := range map[string]string{"5.yaml": strings.Replace(toolset, "KEY", "one", 1) + "policies: {p: {}}\nprincipals: {alice: p}\n", "6.yaml": "openapi: 3.0.0"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err = config.Read(dir, lookUp)
	want := `DIR/5.yaml:1: toolsets.one: the toolset is already in DIR/1.yaml:1; leave one of them out
DIR/5.yaml:2: policies.p: the policy is already in DIR/2.yml:2; leave one of them out
DIR/5.yaml:3: principals.alice: the principal is already in DIR/3.yaml:1; leave one of them out
DIR/6.yaml:1: is an OpenAPI document; move it elsewhere and name it in the openapi.file of a toolset`
	if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if mistakes := config.Mistakes(err); len(mistakes) != 4 || mistakes[1].Line != 2 || mistakes[1].Path != "policies.p" {
		t.Errorf("the mistakes are %v", mistakes)
	}
}

func TestMistakesOfOthers(t *testing.T) {
	if got := config.Mistakes(errors.New("another")); got != nil {
		t.Errorf("got %v", got)
	}
	if got := config.Mistakes(nil); got != nil {
		t.Errorf("got %v", got)
	}
}
