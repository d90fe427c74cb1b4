package librechat

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestGuideNamesTheClient checks that the documents name the version of the client that the tests
// install.
func TestGuideNamesTheClient(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var installed struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(raw, &installed); err != nil {
		t.Fatal(err)
	}
	want := "`@librechat/agents` " + installed.Dependencies["@librechat/agents"]
	for _, file := range []string{"README.md", "docs/librechat.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not name the client that the tests install, %s", file, want)
		}
	}
}

// TestGuideCommands runs the commands in docs/librechat.md: it makes keys, starts a server with
// them and sends a request with a token that the private key has signed.
func TestGuideCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil && !harness.InCI {
		t.Skip("openssl is not installed")
	}
	text, err := os.ReadFile("../../docs/librechat.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(sh|ini)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 3 || blocks[0][1] != "sh" || !strings.Contains(blocks[1][2], "CODEAPI_JWT_KID="+appKeyID+"\n") {
		t.Fatalf("the guide begins with %v, want commands that make keys, and the settings of LibreChat and of the server", blocks)
	}
	dir := t.TempDir()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", blocks[0][2])
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", blocks[0][2], err, out)
	}
	said := harness.Settings{"API_KEYS": ""}
	for _, m := range regexp.MustCompile(`(?m)^FERMATA_(\w+)=(.*)$`).FindAllStringSubmatch(blocks[2][2], -1) {
		said[m[1]] = m[2]
	}
	if said["ADDR"] == "" || said["JWT_KEYS_DIR"] != "keys" {
		t.Fatalf("the server is to be started with %v, want an address and the directory keys", said)
	}
	s, err := harness.StartServer(harness.With(harness.Common, said, harness.Settings{"ADDR": harness.Common["ADDR"], "JWT_KEYS_DIR": filepath.Join(dir, "keys")}))
	if err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	raw, err := os.ReadFile(filepath.Join(dir, "librechat.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		t.Fatalf("the private key is %s, want PEM", raw)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		t.Fatalf("the private key is a %T, want an Ed25519 key", key)
	}
	visitorOf(t, s, private, "one", "ada")().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	if a := visitorOf(t, s, appKey(), "one", "ada")().Post(t, harness.Program{Code: "print(1)"}); a.HTTPStatus != 401 {
		t.Errorf("with another key: got %v, want 401", a)
	}
}
