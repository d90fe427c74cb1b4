package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	s, err := parse(t, "--api-keys=k", "--rate-executions=20/30s", "--rate-uploads=30/5m")
	if err != nil {
		t.Fatal(err)
	}
	got := s.HTTP.options(slog.New(slog.DiscardHandler)).Rates
	if got.Executions.Requests != 20 || got.Executions.Window != 30*time.Second || got.Uploads.Requests != 30 || got.Uploads.Window != 5*time.Minute || got.Downloads.Requests != 0 || got.Lists.Requests != 0 {
		t.Errorf("got %+v, want 20 in 30 s, 30 in 5 min, and no others", got)
	}
}

func publicPEM(t *testing.T) string {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func TestTokenSettings(t *testing.T) {
	key := publicPEM(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.pem"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "very-secret-secret-of-32-bytes-or-more"
	for _, c := range []struct {
		name string
		env  map[string]string
		// on says that there is a verifier. If there is an error, it contains mistake.
		on      bool
		mistake string
	}{
		{"none", map[string]string{"FERMATA_API_KEYS": "k"}, false, ""},
		{"one key", map[string]string{"FERMATA_JWT_PUBLIC_KEY": key, "FERMATA_JWT_KID": "a"}, true, ""},
		{"beside keys", map[string]string{"FERMATA_JWT_PUBLIC_KEY": key, "FERMATA_JWT_KID": "a", "FERMATA_API_KEYS": "k"}, true, ""},
		{"directory", map[string]string{"FERMATA_JWT_KEYS_DIR": dir}, true, ""},
		{"names of LibreChat's server", map[string]string{"CODEAPI_JWT_PUBLIC_KEY": key, "CODEAPI_JWT_KID": "a", "CODEAPI_TENANT_ISOLATION_STRICT": "true"}, true, ""},
		{"set", map[string]string{"FERMATA_JWT_JWKS": `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}`}, true, ""},
		{"secret", map[string]string{"FERMATA_JWT_HS256_SECRET": secret, "FERMATA_JWT_ALGORITHMS": "EdDSA, HS256"}, true, ""},
		{"secret without algorithm", map[string]string{"FERMATA_JWT_HS256_SECRET": secret}, false, "HS256 is not allowed"},
		{"short secret", map[string]string{"FERMATA_JWT_HS256_SECRET": "very-secret", "FERMATA_JWT_ALGORITHMS": "HS256"}, false, "32 bytes"},
		{"no kid", map[string]string{"FERMATA_JWT_PUBLIC_KEY": key}, false, "kid is missing"},
		{"no such algorithm", map[string]string{"FERMATA_JWT_KEYS_DIR": dir, "FERMATA_JWT_ALGORITHMS": "ES256"}, false, `"ES256"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s, err := parse(t)
			if err != nil {
				t.Fatal(err)
			}
			verifier, err := s.JWT.verifier(slog.New(slog.DiscardHandler))
			if (verifier != nil) != c.on || (err != nil) != (c.mistake != "") {
				t.Fatalf("verifier = %v, %v, want one: %t, mistake: %q", verifier, err, c.on, c.mistake)
			}
			if err != nil && (!strings.Contains(err.Error(), c.mistake) || strings.Contains(err.Error(), "very-secret")) {
				t.Errorf("got %q, want %q in it and no secret", err, c.mistake)
			}
			if printed := fmt.Sprintf("%v %+v %#v", s, s.JWT, s.JWT); strings.Contains(printed, "very-secret") {
				t.Errorf("printed %s", printed)
			}
		})
	}
}

func TestRefusesToServeWithBadTokenKeys(t *testing.T) {
	t.Setenv("FERMATA_JWT_JWKS", `{"keys":[]}`)
	var log bytes.Buffer
	err := run(t.Context(), []string{"serve", "--addr=127.0.0.1:0", "--state-dir", t.TempDir()}, io.Discard, &log)
	if err == nil || !strings.Contains(err.Error(), "FERMATA_JWT_") {
		t.Errorf("run = %v, want an error that names the settings; log:\n%s", err, log.String())
	}
}
