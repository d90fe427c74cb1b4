package continuation

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSecretFile is how many bytes of a secret file are read. It is far more than a secret
// needs.
const maxSecretFile = 4 << 10

// LoadOrCreateSecret returns the secret in the file at path: the file's bytes without
// the line break at the end. If there is no such file, it creates one with a random
// secret; servers that do so at the same time all get the same secret. A file that
// somebody other than its owner may use, or that is too short, is an error.
func LoadOrCreateSecret(path string) ([]byte, error) {
	secret, err := loadSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := createSecret(path); err != nil {
		return nil, fmt.Errorf("continuation: create secret file: %w", err)
	}
	return loadSecret(path)
}

func loadSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("continuation: open secret file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("continuation: secret file: %w", err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("continuation: secret file %s is not a regular file", path)
	case mode.Perm()&0o077 != 0:
		return nil, fmt.Errorf("continuation: secret file %s has mode %04o: only its owner may have access (chmod 600)", path, mode.Perm())
	}
	secret, err := io.ReadAll(io.LimitReader(f, maxSecretFile))
	if err != nil {
		return nil, fmt.Errorf("continuation: read secret file: %w", err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) < minSecret {
		return nil, fmt.Errorf("continuation: secret file %s holds %d bytes, want at least %d", path, len(secret), minSecret)
	}
	return secret, nil
}

// createSecret creates the file at path unless it exists by now. The file is complete
// before it gets its name, and it gets the name by a link: unlike a rename, a link
// never replaces the secret that another server has just created.
func createSecret(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // nobody reads a file that stays behind

	random := make([]byte, minSecret)
	rand.Read(random) // never fails
	_, err = f.WriteString(hex.EncodeToString(random) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
