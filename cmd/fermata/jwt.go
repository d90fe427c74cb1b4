package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"fermata/api/auth"
)

// jwtSettings are those of LibreChat's tokens. The names in the environment that
// LibreChat's own server reads are understood, too.
type jwtSettings struct {
	JWKS        string   `name:"jwks" env:"FERMATA_JWT_JWKS,CODEAPI_JWT_JWKS_JSON" placeholder:"JSON" help:"Public keys that verify tokens of LibreChat, as a JSON Web Key Set."`
	KeysDir     string   `type:"path" env:"FERMATA_JWT_KEYS_DIR,CODEAPI_JWT_PUBLIC_KEYS_DIR" placeholder:"DIR" help:"Directory of such keys, PEM or JWK, named by their kid. It is read again every 30s."`
	PublicKey   string   `env:"FERMATA_JWT_PUBLIC_KEY,CODEAPI_JWT_PUBLIC_KEY" placeholder:"KEY" help:"One such key, PEM or JWK."`
	KID         string   `name:"kid" env:"FERMATA_JWT_KID,CODEAPI_JWT_KID" placeholder:"KID" help:"The kid of that key."`
	HS256Secret secret   `name:"hs256-secret" env:"FERMATA_JWT_HS256_SECRET,CODEAPI_JWT_HS256_SECRET" placeholder:"SECRET" help:"Secret of tokens with HS256, at least 32 bytes. The algorithm must be allowed, too."`
	HS256KID    string   `name:"hs256-kid" env:"FERMATA_JWT_HS256_KID,CODEAPI_JWT_HS256_KID" default:"hs256-dev" help:"The kid of that secret."`
	Algorithms  []string `env:"FERMATA_JWT_ALGORITHMS,CODEAPI_JWT_ALLOWED_ALGS" default:"EdDSA,RS256" help:"Algorithms that are allowed: EdDSA, RS256, HS256."`
	Issuer      string   `env:"FERMATA_JWT_ISSUER,CODEAPI_JWT_ISSUER" default:"librechat" help:"What iss must be."`
	Audience    string   `env:"FERMATA_JWT_AUDIENCE,CODEAPI_JWT_AUDIENCE" default:"codeapi" help:"What aud must name."`
	Tenant      string   `env:"FERMATA_JWT_TENANT,CODEAPI_JWT_SINGLE_TENANT_ID" default:"legacy" help:"The tenant of tokens that name none."`
	Strict      bool     `env:"FERMATA_JWT_STRICT,CODEAPI_TENANT_ISOLATION_STRICT" help:"Refuse tokens that name no tenant."`
}

// on reports whether tokens are accepted: there is a key.
func (s *jwtSettings) on() bool {
	return s.JWKS != "" || s.KeysDir != "" || s.PublicKey != "" || s.HS256Secret.reveal() != ""
}

// mistake reports what contradicts itself. What is wrong with keys is found when
// they are read.
func (s *jwtSettings) mistake() error {
	if s.Tenant == "" && !s.Strict {
		return errors.New("--jwt-tenant must be the name of a tenant, or --jwt-strict be set")
	}
	return nil
}

// verifier reads the keys. It returns nil if tokens are not accepted.
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
		return nil, fmt.Errorf("set up tokens (FERMATA_JWT_...): %w", err)
	}
	return v, nil
}
