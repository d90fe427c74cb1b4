package redisstore_test

import (
	"bytes"
	"testing"

	"fermata/continuation"
	"fermata/continuation/redisstore"
	"fermata/continuation/storetest"
)

func TestEncryptionHides(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url(), redisstore.WithKey(secret(1)))
	r := storetest.NewRecord()
	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	value, err := server.client.Get(t.Context(), "fermata:{"+r.ID+"}").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{r.Session, r.Principal, r.Sandbox, string(r.Answer)} {
		if bytes.Contains(value, []byte(part)) {
			t.Errorf("the value in Redis contains %q, want it hidden", part)
		}
	}
}

func TestEncryptionDetects(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url(), redisstore.WithKey(secret(1)))
	r, other := storetest.NewRecord(), storetest.NewRecord()
	for _, r := range []continuation.Record{r, other} {
		if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
			t.Fatalf("Put = %v, want success", err)
		}
	}
	key := "fermata:{" + r.ID + "}"
	good, err := server.client.Get(t.Context(), key).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	wantRefused := func(what string, value []byte) {
		t.Helper()
		if err := server.client.Set(t.Context(), key, value, ttl).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(t.Context(), r.ID)
		wantUnavailable(t, "Get of "+what, err)
	}

	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		wantRefused("a value with a changed byte", bad)
	}
	for n := range good {
		wantRefused("a value that is cut off", good[:n])
	}
	foreign, err := server.client.Get(t.Context(), "fermata:{"+other.ID+"}").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	wantRefused("another record's value", foreign)

	if err := server.client.Set(t.Context(), key, good, ttl).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), r.ID); err != nil {
		t.Errorf("Get of the value as it was = %v, want the record", err)
	}
}

func TestEncryptionRotates(t *testing.T) {
	server := startServer(t)
	old := open(t, server.url(), redisstore.WithKey(secret(1)))
	both := open(t, server.url(), redisstore.WithKey(secret(2), secret(1)))
	fresh := open(t, server.url(), redisstore.WithKey(secret(2)))

	r := storetest.NewRecord()
	if err := old.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	_, err := fresh.Get(t.Context(), r.ID)
	wantUnavailable(t, "Get with another key", err)

	if _, err := both.Get(t.Context(), r.ID); err != nil {
		t.Errorf("Get with both keys = %v, want the record", err)
	}
	r.Version = 2
	if err := both.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Errorf("Put with both keys = %v, want success", err)
	}
	if _, err := fresh.Get(t.Context(), r.ID); err != nil {
		t.Errorf("Get with the new key of what both keys wrote = %v, want the record", err)
	}
	_, err = old.Get(t.Context(), r.ID)
	wantUnavailable(t, "Get with the old key of what both keys wrote", err)
}

// Somebody who can write to Redis must not get round the key by writing plain records.
func TestEncryptionRefusesPlain(t *testing.T) {
	server := startServer(t)
	plain, sealed := open(t, server.url()), open(t, server.url(), redisstore.WithKey(secret(1)))
	one, two := storetest.NewRecord(), storetest.NewRecord()
	if err := plain.Put(t.Context(), one, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	if err := sealed.Put(t.Context(), two, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	_, err := sealed.Get(t.Context(), one.ID)
	wantUnavailable(t, "Get of a plain record with a key", err)
	_, err = plain.Get(t.Context(), two.ID)
	wantUnavailable(t, "Get of an encrypted record without a key", err)
}

func TestEncryptionSecrets(t *testing.T) {
	for name, secrets := range map[string][][]byte{
		"none":         {},
		"short":        {secret(1)[:31]},
		"second short": {secret(1), {}},
	} {
		if _, err := connect(t.Context(), "redis://127.0.0.1:1", redisstore.WithKey(secrets...)); err == nil {
			t.Errorf("Open with secrets %s = nil, want an error", name)
		}
	}
}
