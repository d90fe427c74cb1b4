//go:build linux

package redisstore_test

import (
	"bytes"
	"testing"

	"github.com/redis/go-redis/v9"

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

// Somebody who can write to Redis can neither change the events of a journal nor move them to another place.
func TestEncryptionDetectsInJournals(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url(), redisstore.WithKey(secret(1)))
	var keys []string
	var journals [][]redis.XMessage
	var authors []*storetest.Author
	for range 2 {
		a := storetest.NewAuthor(s, "ada")
		for range 3 {
			a.Write(t, 2)
		}
		keys, authors = append(keys, "fermata:{"+a.Record.ID+"}"), append(authors, a)
		chapters, err := server.client.XRange(t.Context(), keys[len(keys)-1]+":journal", "-", "+").Result()
		if err != nil || len(chapters) != 3 {
			t.Fatalf("the stream of a journal has %d entries, %v, want 3", len(chapters), err)
		}
		journals = append(journals, chapters)
	}
	read := func(chapters ...redis.XMessage) error {
		t.Helper()
		if err := server.client.Del(t.Context(), keys[0]+":journal").Err(); err != nil {
			t.Fatal(err)
		}
		for _, c := range chapters {
			err := server.client.XAdd(t.Context(), &redis.XAddArgs{Stream: keys[0] + ":journal", ID: c.ID, Values: c.Values}).Err()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Events(t.Context(), authors[0].Record.ID, 0, 1<<20)
		return err
	}
	own, other := journals[0], journals[1]
	content := func(at, from redis.XMessage) redis.XMessage { return redis.XMessage{ID: at.ID, Values: from.Values} }
	wantUnavailable(t, "Events of another execution", read(other...))
	wantUnavailable(t, "Events with a chapter of another execution", read(own[0], other[1], own[2]))
	wantUnavailable(t, "Events in another order", read(content(own[0], own[1]), content(own[1], own[0]), own[2]))
	wantUnavailable(t, "Events of which some are repeated", read(own[0], own[1], own[2], content(redis.XMessage{ID: "8-2"}, own[2])))
	wantUnavailable(t, "Events of a chapter that is said to be longer", read(content(redis.XMessage{ID: "2-3"}, own[0]), own[1], own[2]))
	text, _ := own[1].Values["c"].(string)
	for i := range len(text) {
		bad := []byte(text)
		bad[i] ^= 1
		wantUnavailable(t, "Events with a changed byte", read(own[0], redis.XMessage{ID: own[1].ID, Values: map[string]any{"c": bad}}, own[2]))
	}
	if err := read(own...); err != nil {
		t.Errorf("Events of the journal as it was = %v, want success", err)
	}

	summary, err := server.client.Get(t.Context(), keys[1]+":summary").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.client.Set(t.Context(), keys[0]+":summary", summary, ttl).Err(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Summary(t.Context(), authors[0].Record.ID)
	wantUnavailable(t, "Summary of another execution", err)
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
