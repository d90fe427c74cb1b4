package auth

import (
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
)

const (
	// keyRefresh is the shortest time between two reads of the directory of keys.
	keyRefresh = 30 * time.Second
	// maxKeyAge is how long keys stay good while the directory cannot be read.
	maxKeyAge = 300 * time.Second
	// maxKeyFile is the size of a file with a key; one of 16,384 bits has 3 KB.
	maxKeyFile = 64 << 10
	// minRSABits and minHMACBytes are what RFC 7518 demands.
	minRSABits   = 2048
	minHMACBytes = 32
)

// A tokenKey verifies tokens of one algorithm.
type tokenKey struct {
	algorithm string
	key       any // ed25519.PublicKey, *rsa.PublicKey or []byte
}

// A keyring holds keys by kid: those of the settings, which stay, and those in the
// directory.
type keyring struct {
	fixed      map[string]tokenKey
	dir        string
	algorithms []string
	log        *slog.Logger

	mu     sync.Mutex
	inDir  map[string]tokenKey
	tried  time.Time // when the directory was last read, with or without success
	loaded time.Time // when it was last read with success
}

func newKeyring(o JWTOptions) (*keyring, error) {
	r := &keyring{fixed: map[string]tokenKey{}, dir: o.KeysDir, algorithms: o.Algorithms, log: o.Log}
	if err := errors.Join(r.addSet(o.JWKS), r.addOne(o.PublicKey, o.KeyID), r.addHMAC(o.HMACSecret, o.HMACKeyID)); err != nil {
		return nil, err
	}
	if r.dir != "" {
		keys, err := r.read()
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("there are no keys in %s", r.dir)
		}
		for kid := range keys {
			if _, taken := r.fixed[kid]; taken {
				return nil, fmt.Errorf("there are two keys with kid %q", kid)
			}
		}
		r.inDir, r.tried, r.loaded = keys, time.Now(), time.Now()
	}
	if len(r.fixed)+len(r.inDir) == 0 {
		return nil, errors.New("there are no keys")
	}
	return r, nil
}

func (r *keyring) addSet(set string) error {
	if set == "" {
		return nil
	}
	var keys jwkset.JWKSMarshal
	if err := json.Unmarshal([]byte(set), &keys); err != nil {
		return fmt.Errorf("read key set: %w", err)
	}
	if len(keys.Keys) == 0 {
		return errors.New("there are no keys in the key set")
	}
	for i, k := range keys.Keys {
		key, err := r.fromJWK(k)
		if err == nil {
			err = r.add(k.KID, key)
		}
		if err != nil {
			return fmt.Errorf("key %d of the key set: %w", i, err)
		}
	}
	return nil
}

func (r *keyring) addOne(source, kid string) error {
	if source == "" {
		return nil
	}
	// Files of environment variables often spell line ends like this, and neither PEM nor
	// the values of a JWK contain this spelling for another reason.
	key, err := r.parse([]byte(strings.ReplaceAll(source, `\n`, "\n")), &kid)
	if err == nil {
		err = r.add(kid, key)
	}
	if err != nil {
		return fmt.Errorf("public key: %w", err)
	}
	return nil
}

func (r *keyring) addHMAC(secret []byte, kid string) error {
	if len(secret) == 0 {
		return nil
	}
	if len(secret) < minHMACBytes {
		return fmt.Errorf("the secret for %s has fewer than %d bytes", HS256, minHMACBytes)
	}
	if err := r.allowed(HS256); err != nil {
		return err
	}
	return r.add(kid, tokenKey{HS256, secret})
}

func (r *keyring) add(kid string, key tokenKey) error {
	if kid == "" {
		return errors.New("the kid is missing")
	}
	if _, taken := r.fixed[kid]; taken {
		return fmt.Errorf("there are two keys with kid %q", kid)
	}
	r.fixed[kid] = key
	return nil
}

// find returns the key for kid that is good now.
func (r *keyring) find(kid string) (tokenKey, bool) {
	if key, ok := r.fixed[kid]; ok {
		return key, true
	}
	if r.dir == "" {
		return tokenKey{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.tried) >= keyRefresh {
		r.refresh()
	}
	key, ok := r.inDir[kid]
	return key, ok
}

// refresh reads the directory again. A broken file removes only its own key. mu is held.
func (r *keyring) refresh() {
	r.tried = time.Now()
	keys, err := r.read()
	if err != nil {
		r.log.Error("cannot read the keys of tokens", "err", err)
	}
	switch {
	case keys != nil:
		r.inDir, r.loaded = keys, r.tried
	case r.tried.Sub(r.loaded) >= maxKeyAge:
		r.inDir = nil
	}
}

// read returns the keys in the directory, nil if it cannot be read, and an error about
// everything that is wrong in it.
func (r *keyring) read() (map[string]tokenKey, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	keys := map[string]tokenKey{}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		// Container platforms keep a mounted directory up to date by means of hidden files.
		if strings.HasPrefix(name, ".") {
			continue
		}
		source, err := readKeyFile(filepath.Join(r.dir, name))
		if err == nil && source == nil {
			continue
		}
		kid := strings.TrimSuffix(name, filepath.Ext(name))
		var key tokenKey
		if err == nil {
			key, err = r.parse(source, &kid)
		}
		if _, taken := keys[kid]; taken && err == nil {
			err = fmt.Errorf("there are two keys with kid %q", kid)
		}
		if err != nil {
			// The zero key fits no algorithm, so that no token of this kid is accepted.
			key, errs = tokenKey{}, append(errs, fmt.Errorf("key file %s: %w", name, err))
		}
		keys[kid] = key
	}
	return keys, errors.Join(errs...)
}

// readKeyFile returns the content of a file, nil for a directory.
func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return nil, err
	}
	if info.Size() > maxKeyFile {
		return nil, errors.New("it is too large for a key")
	}
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

// parse reads one public key, PEM or JWK. The kid within a JWK, if there is one, must be
// *kid, or is stored there if *kid is empty.
func (r *keyring) parse(source []byte, kid *string) (tokenKey, error) {
	block, rest := pem.Decode(source)
	if block == nil {
		var k jwkset.JWKMarshal
		if err := json.Unmarshal(source, &k); err != nil {
			return tokenKey{}, errors.New("it is neither PEM nor a JWK")
		}
		if *kid == "" {
			*kid = k.KID
		}
		if k.KID != "" && k.KID != *kid {
			return tokenKey{}, fmt.Errorf("it has kid %q, but stands for %q", k.KID, *kid)
		}
		return r.fromJWK(k)
	}
	if len(strings.TrimSpace(string(rest))) > 0 {
		return tokenKey{}, errors.New("there is more than one key in it")
	}
	if !strings.HasSuffix(block.Type, "PUBLIC KEY") {
		return tokenKey{}, fmt.Errorf("it is a %s, not a PUBLIC KEY", block.Type)
	}
	key, err := jwkset.LoadX509KeyInfer(block)
	if err != nil {
		return tokenKey{}, err
	}
	return r.public(key)
}

func (r *keyring) fromJWK(k jwkset.JWKMarshal) (tokenKey, error) {
	if k.D != "" || k.K != "" {
		return tokenKey{}, errors.New("it is secret; a public key is wanted")
	}
	if k.USE != "" && k.USE != jwkset.UseSig || len(k.KEYOPS) > 0 && !slices.Contains(k.KEYOPS, jwkset.KeyOpsVerify) {
		return tokenKey{}, errors.New("it is not for signatures")
	}
	jwk, err := jwkset.NewJWKFromMarshal(k, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return tokenKey{}, err
	}
	key, err := r.public(jwk.Key())
	if err == nil && k.ALG != "" && k.ALG.String() != key.algorithm {
		return tokenKey{}, fmt.Errorf("it is for algorithm %q", k.ALG)
	}
	return key, err
}

// public returns the key together with the one algorithm that fits it.
func (r *keyring) public(key any) (tokenKey, error) {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return tokenKey{EdDSA, k}, r.allowed(EdDSA)
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSABits {
			return tokenKey{}, fmt.Errorf("it has %d bits, fewer than %d", k.N.BitLen(), minRSABits)
		}
		return tokenKey{RS256, k}, r.allowed(RS256)
	}
	return tokenKey{}, errors.New("it is neither an Ed25519 nor an RSA key")
}

func (r *keyring) allowed(algorithm string) error {
	if !slices.Contains(r.algorithms, algorithm) {
		return fmt.Errorf("algorithm %s is not allowed", algorithm)
	}
	return nil
}
