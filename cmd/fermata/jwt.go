package main

import (
	"fmt"
	"log/slog"
	"strings"

	"fermata/api/auth"
)

// jwtSettings are the settings for LibreChat tokens. They can also be set by the
// environment variables that LibreChat's own code server reads.
type jwtSettings struct {
	JWKS        string   `name:"jwks" env:"FERMATA_JWT_JWKS,CODEAPI_JWT_JWKS_JSON" placeholder:"JSON" help:"Public keys that verify LibreChat tokens, as a JSON Web Key Set."`
	KeysDir     string   `type:"path" env:"FERMATA_JWT_KEYS_DIR,CODEAPI_JWT_PUBLIC_KEYS_DIR" placeholder:"DIR" help:"Directory of public keys that verify LibreChat tokens, PEM or JWK. The name of each file is the kid of its key. It is read again every 30s."`
	PublicKey   string   `env:"FERMATA_JWT_PUBLIC_KEY,CODEAPI_JWT_PUBLIC_KEY" placeholder:"KEY" help:"One public key that verifies LibreChat tokens, PEM or JWK."`
	KID         string   `name:"kid" env:"FERMATA_JWT_KID,CODEAPI_JWT_KID" placeholder:"KID" help:"The kid of the key in FERMATA_JWT_PUBLIC_KEY."`
	HS256Secret secret   `name:"hs256-secret" env:"FERMATA_JWT_HS256_SECRET,CODEAPI_JWT_HS256_SECRET" placeholder:"SECRET" help:"Secret that verifies tokens signed with HS256, of at least 32 bytes. FERMATA_JWT_ALGORITHMS must allow HS256 as well."`
	HS256KID    string   `name:"hs256-kid" env:"FERMATA_JWT_HS256_KID,CODEAPI_JWT_HS256_KID" default:"hs256-dev" help:"The kid of the secret in FERMATA_JWT_HS256_SECRET."`
	Algorithms  []string `env:"FERMATA_JWT_ALGORITHMS,CODEAPI_JWT_ALLOWED_ALGS" default:"EdDSA,RS256" help:"Signature algorithms to accept: EdDSA, RS256, HS256."`
	Issuer      string   `env:"FERMATA_JWT_ISSUER,CODEAPI_JWT_ISSUER" default:"librechat" help:"Required value of the claim iss."`
	Audience    string   `env:"FERMATA_JWT_AUDIENCE,CODEAPI_JWT_AUDIENCE" default:"codeapi" help:"Value that the claim aud must contain."`
	Tenant      string   `env:"FERMATA_JWT_TENANT,CODEAPI_JWT_SINGLE_TENANT_ID" default:"legacy" help:"Tenant of tokens that name none."`
	Strict      bool     `env:"FERMATA_JWT_STRICT,CODEAPI_TENANT_ISOLATION_STRICT" help:"Refuse tokens that name no tenant."`
}

// on reports whether tokens are accepted, which they are if there is a key.
func (s *jwtSettings) on() bool {
	return s.JWKS != "" || s.KeysDir != "" || s.PublicKey != "" || s.HS256Secret.reveal() != ""
}

// check adds settings that contradict each other. Mistakes in keys are found when the keys are
// read.
func (s *jwtSettings) check(m *mistakes) {
	m.unless(s.Tenant != "" || s.Strict, "jwt-tenant", "the name of a tenant, unless --jwt-strict is set")
}

// verifier returns what verifies tokens, or nil if tokens are not accepted. It reads the
// keys.
func (s *jwtSettings) verifier(log *slog.Logger) (*auth.JWT, error) {
	if !s.on() {
		return nil, nil
	}
	o := auth.JWTOptions{
		Issuer:        s.Issuer,
		Audience:      s.Audience,
		DefaultTenant: s.Tenant,
		JWKS:          s.JWKS,
		KeysDir:       s.KeysDir,
		PublicKey:     s.PublicKey,
		KeyID:         s.KID,
		HMACSecret:    []byte(s.HS256Secret.reveal()),
		HMACKeyID:     s.HS256KID,
		Log:           log,
	}
	for _, a := range s.Algorithms {
		o.Algorithms = append(o.Algorithms, strings.TrimSpace(a))
	}
	if s.Strict {
		o.DefaultTenant = ""
	}
	v, err := auth.NewJWT(o)
	if err != nil {
		return nil, fmt.Errorf("set up the verification of tokens (FERMATA_JWT_...): %w", err)
	}
	return v, nil
}
