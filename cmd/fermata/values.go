package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"fermata/api"
)

const redacted = "[redacted]"

// A secret is a text that cannot be printed or logged by accident.
type secret struct{ text string }

// reveal returns the text, for the code that needs it.
func (s secret) reveal() string { return s.text }

func (secret) String() string               { return redacted }
func (secret) GoString() string             { return redacted }
func (secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (secret) MarshalText() ([]byte, error) { return []byte(redacted), nil } //nolint:unparam // encoding.TextMarshaler

func (s *secret) UnmarshalText(text []byte) error {
	s.text = strings.TrimSpace(string(text))
	if s.text == "" {
		return errors.New("there is an empty one")
	}
	return nil
}

// reveal returns the texts of secrets.
func reveal(secrets []secret) [][]byte {
	revealed := make([][]byte, len(secrets))
	for i, s := range secrets {
		revealed[i] = []byte(s.reveal())
	}
	return revealed
}

// An apiKey is a key and the principal that it stands for. Its fields are exported because
// fmt calls the String methods of exported fields only.
type apiKey struct {
	Name string
	Key  secret
}

// UnmarshalText reads NAME:KEY or KEY. A key without a name gets one that is derived from
// the key and never changes, because executions belong to it.
func (k *apiKey) UnmarshalText(text []byte) error {
	name, key, named := strings.Cut(string(text), ":")
	if !named {
		name, key = "", name
	}
	if err := k.Key.UnmarshalText([]byte(key)); err != nil {
		return err
	}
	k.Name = strings.TrimSpace(name)
	if named && k.Name == "" {
		return errors.New("there is an empty name")
	}
	if !named {
		hash := sha256.Sum256([]byte(k.Key.reveal()))
		k.Name = "key-" + hex.EncodeToString(hash[:4])
	}
	return nil
}

const (
	// minKey is the minimum length of a key if other machines can reach the server.
	minKey = 8
	// goodKey is the length from which on a key cannot be guessed.
	goodKey = 16
)

// length returns the number of characters of the key.
func (k apiKey) length() int { return utf8.RuneCountInString(k.Key.reveal()) }

// A byteSize is a number of bytes, written like 512MiB or 50MB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("want a size such as 512MiB or 50MB, got %q", text)
	}
	*b = byteSize(n)
	return nil
}

// A share is a number, or auto, which means a number that is computed from other settings.
type share struct {
	auto bool
	n    int
}

func (s *share) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*s = share{auto: true}
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("want a number, 0 or more, or auto, got %q", text)
	}
	*s = share{n: n}
	return nil
}

// A rate is a number of requests in a time, written like 20/30s, or off.
type rate api.Rate

func (r *rate) UnmarshalText(text []byte) error {
	if string(text) == "off" {
		*r = rate{}
		return nil
	}
	requests, window, _ := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(requests)
	d, err2 := time.ParseDuration(window)
	if err != nil || err2 != nil || n <= 0 || d <= 0 {
		return fmt.Errorf("want a rate such as 20/30s, or off, got %q", text)
	}
	*r = rate{Requests: n, Window: d}
	return nil
}
