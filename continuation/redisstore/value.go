package redisstore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// A value in Redis begins with a head:
//
//	 1 byte   kind: plain or sealed
//	 8 bytes  version, big-endian
//	24 bytes  nonce, random for every write
//
// In a plain value the record in stored form follows. In a sealed value follow
//
//	 8 bytes  id of the key
//	          the stored form, encrypted
//	16 bytes  tag
//
// Servers of several versions share the values, so this form may not change.
const (
	kindPlain  = 1
	kindSealed = 2

	nonceLen = 24
	headLen  = 1 + 8 + nonceLen
	keyIDLen = 8
	tagLen   = 16
)

// headEnd is the offset of the last byte of a head, for the script put.
var headEnd = strconv.Itoa(headLen - 1)

// A codec converts between a record's stored form and the part of a value that follows
// the head.
type codec interface {
	kind() byte
	// seal returns value, which holds a head, with the encoded form appended.
	seal(value []byte, id string, form []byte) ([]byte, error)
	// open returns the stored form in value. The result may use the memory of value.
	open(value []byte, id string) ([]byte, error)
}

func encode(c codec, r continuation.Record) ([]byte, error) {
	form, err := stored.Append(nil, r)
	if err != nil {
		return nil, err
	}
	return wrap(c, r.ID, r.Version, form)
}

func decode(c codec, id string, value []byte) (continuation.Record, error) {
	form, err := unwrap(c, id, value)
	if err != nil {
		return continuation.Record{}, err
	}
	return stored.Decode(form)
}

// wrap makes a value of the stored form of something with a name and a version.
func wrap(c codec, name string, version int64, form []byte) ([]byte, error) {
	value := make([]byte, 0, headLen+keyIDLen+len(form)+tagLen)
	value = append(value, c.kind())
	value = binary.BigEndian.AppendUint64(value, uint64(version))
	value = value[:headLen]
	rand.Read(value[headLen-nonceLen:]) // never fails
	return c.seal(value, name, form)
}

// unwrap is the inverse of wrap.
func unwrap(c codec, name string, value []byte) ([]byte, error) {
	if len(value) < headLen {
		return nil, errors.New("value is cut off")
	}
	if value[0] != c.kind() {
		return nil, fmt.Errorf("value has kind %d, want %d: the server that wrote it has another encryption setting", value[0], c.kind())
	}
	return c.open(value, name)
}

// versionOf returns the version in the head of a value.
func versionOf(value []byte) int64 { return int64(binary.BigEndian.Uint64(value[1:])) }

// plain is the codec that leaves records as they are.
type plain struct{}

func (plain) kind() byte { return kindPlain }

func (plain) seal(value []byte, _ string, form []byte) ([]byte, error) {
	return append(value, form...), nil
}

func (plain) open(value []byte, _ string) ([]byte, error) { return value[headLen:], nil }

// sealed is the codec that encrypts, with AES-256-GCM. Each write has a key of its own,
// derived from a secret and the first half of the nonce; the other half is GCM's nonce.
// With one key for all writes, GCM's random nonces of 12 bytes would be safe for only 2³²
// writes. Head, key id and record id are authenticated together with the record.
type sealed struct {
	first sealKey
	byID  map[[keyIDLen]byte]sealKey
}

type sealKey struct {
	id  [keyIDLen]byte
	prk []byte // the pseudorandom key of HKDF
}

const minSecret = 32

func newSealed(secrets [][]byte) (*sealed, error) {
	if len(secrets) == 0 {
		return nil, errors.New("no encryption secret")
	}
	s := &sealed{byID: make(map[[keyIDLen]byte]sealKey, len(secrets))}
	for i, secret := range secrets {
		if len(secret) < minSecret {
			return nil, fmt.Errorf("encryption secret %d has %d bytes, want at least %d", i+1, len(secret), minSecret)
		}
		prk, err := hkdf.Extract(sha256.New, secret, []byte("fermata redis records"))
		if err != nil {
			return nil, err
		}
		id, err := hkdf.Expand(sha256.New, prk, "key id", keyIDLen)
		if err != nil {
			return nil, err
		}
		key := sealKey{id: [keyIDLen]byte(id), prk: prk}
		s.byID[key.id] = key
		if i == 0 {
			s.first = key
		}
	}
	return s, nil
}

// aead returns the cipher for the write that has this nonce.
func (k sealKey) aead(nonce []byte) (cipher.AEAD, error) {
	key, err := hkdf.Expand(sha256.New, k.prk, "record "+string(nonce[:nonceLen/2]), 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (*sealed) kind() byte { return kindSealed }

func (s *sealed) seal(value []byte, id string, form []byte) ([]byte, error) {
	nonce := value[headLen-nonceLen : headLen]
	aead, err := s.first.aead(nonce)
	if err != nil {
		return nil, err
	}
	value = append(value, s.first.id[:]...)
	return aead.Seal(value, nonce[nonceLen/2:], form, additional(value, id)), nil
}

func (s *sealed) open(value []byte, id string) ([]byte, error) {
	if len(value) < headLen+keyIDLen {
		return nil, errors.New("value is cut off")
	}
	head, body := value[:headLen+keyIDLen], value[headLen+keyIDLen:]
	key, known := s.byID[[keyIDLen]byte(head[headLen:])]
	if !known {
		return nil, errors.New("value is encrypted with an unknown key")
	}
	nonce := head[headLen-nonceLen : headLen]
	aead, err := key.aead(nonce)
	if err != nil {
		return nil, err
	}
	return aead.Open(body[:0], nonce[nonceLen/2:], body, additional(head, id))
}

// additional returns the data that GCM authenticates in addition to the record.
func additional(head []byte, id string) []byte {
	return append(append(make([]byte, 0, len(head)+len(id)), head...), id...)
}
