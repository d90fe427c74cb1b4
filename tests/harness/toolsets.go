package harness

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// UpstreamSecret is what the tools of StandardToolsets send to their endpoint as a bearer token.
const UpstreamSecret = "s3cret-of-the-endpoint/+=&x"

// StandardToolsets describe toolsets with all that most tests need. URL stands for the address of the
// upstream, SECRET for a file with UpstreamSecret, and INPUT for the schema of most tools.
const StandardToolsets = `
toolsets:
  weather:
    title: Weather
    description: Weather of cities.
    private: true
    http:
      base_url: URL
      headers: {Authorization: "Bearer ${file:SECRET}"}
      timeout: 20s
      tools:
        - {name: current, description: Weather now., method: GET, path: "/now/{city}", result: /data,
           parameters: {type: object, properties: {city: {type: string, description: Where.}, key: {type: string}}, required: [city]}}
        - {name: slow, description: Answers late., method: GET, path: /slow,
           parameters: {type: object, properties: {ms: {type: integer}, n: {type: integer}, key: {type: string}}, required: [ms]}}
        - {name: wait, description: Answers when the test says so., method: GET, path: /hold,
           parameters: {type: object, properties: {n: {type: integer}, key: {type: string}}, required: [key]}}
        - {name: secret, description: Tells its secret., method: GET, path: /secret,
           parameters: {type: object, properties: {fail: {type: string}, key: {type: string}}}}
  desk:
    title: Help desk
    description: Orders and payments.
    private: true
    http:
      base_url: URL
      headers: {Authorization: "Bearer ${file:SECRET}"}
      timeout: 20s
      tools:
        - {name: book, description: Costs three credits., method: POST, path: /echo, cost: 3,
           parameters: INPUT}
        - {name: lose, description: Fails though it costs., method: POST, path: /trouble/404, cost: 3, parameters: INPUT}
        - {name: hold, description: Answers when the test says so., method: POST, path: /hold, parameters: INPUT}
        - {name: queue, description: Never two at once., method: POST, path: /slow, lane: orders, parameters: INPUT}
        - {name: pay, description: Needs approval., method: POST, path: /echo, approval: always, cost: 5, parameters: INPUT}
        - {name: order, description: Answers in an envelope., method: POST, path: /envelope, envelope: true,
           parameters: {type: object, properties: {ok: {type: boolean}, key: {type: string}, path: {type: string}, artifact: {type: object}}, required: [ok]}}
        - {name: direct, description: Not for programs., method: POST, path: /echo, callers: [direct], parameters: INPUT}
        - {name: program, description: For programs only., method: POST, path: /echo, callers: [code], parameters: INPUT}
  trouble:
    title: Trouble
    description: An endpoint that misbehaves.
    private: true
    http:
      base_url: URL
      timeout: 1s
      retries: 0
      tools:
        - {name: get, description: Misbehaves., method: GET, path: "/trouble/{kind}",
           parameters: {type: object, properties: {kind: {type: string}, key: {type: string}}, required: [kind]}}
`

// plainInput is the schema of most tools.
const plainInput = "{type: object, properties: {n: {type: integer}, ms: {type: integer}, key: {type: string}}, required: [key]}"

// WriteToolsets writes a toolsets file that lives as long as the test, and returns its path. In the
// text URL and SECRET are replaced as in StandardToolsets.
func WriteToolsets(t testing.TB, u *Upstream, text string) string {
	t.Helper()
	path, err := writeToolsets(t.TempDir(), u, text)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Toolsets are the settings of a server with StandardToolsets, which all tests of a folder share.
func Toolsets(t testing.TB) Settings {
	t.Helper()
	path, err := standardToolsets()
	if err != nil {
		t.Fatal(err)
	}
	return Settings{"TOOLSETS": path}
}

var standardToolsets = sync.OnceValues(func() (string, error) {
	parent, err := Scratch()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(parent, "toolsets-")
	if err != nil {
		return "", err
	}
	return writeToolsets(dir, commonUpstream(), StandardToolsets)
})

// writeToolsets writes a toolsets file that only its owner may write, and beside it the secret.
func writeToolsets(dir string, u *Upstream, text string) (string, error) {
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(UpstreamSecret+"\n"), 0o600); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "toolsets.yaml")
	return path, ReplaceToolsets(path, u, text)
}

// ReplaceToolsets puts another text in the place of a toolsets file, as an operator should: whole.
func ReplaceToolsets(path string, u *Upstream, text string) error {
	text = strings.NewReplacer("INPUT", plainInput, "URL", u.URL, "SECRET", filepath.Join(filepath.Dir(path), "secret")).Replace(text)
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// NewKey returns a key for the requests of a test.
func NewKey() string { return "key-" + rand.Text()[:12] }
