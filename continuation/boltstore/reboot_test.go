package boltstore_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/continuation/storetest"
)

// reboot changes the files at path so that they belong to an earlier boot of the machine.
func reboot(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path+".boot", []byte("00000000-0000-0000-0000-000000000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// expire is the function for WithExpiry in these tests.
func expire(r continuation.Record, s continuation.Summary) (continuation.Chapter, error) {
	s.Ended, s.Content = true, []byte(`{"status":"expired"}`)
	return continuation.Chapter{
		First: r.Events + 1, Events: []json.RawMessage{storetest.Event(r.Events + 1)}, Summary: &s, Life: time.Hour,
	}, nil
}

// inArchive returns how many chapters the archive has while the store is closed.
func inArchive(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := bolt.Open(path+".journals", 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bolt.Tx) error {
		n = tx.Bucket([]byte("chapters")).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitArchived waits long enough for the journals of ended executions to be archived.
func awaitArchived() { time.Sleep(time.Second) }

func TestReboot(t *testing.T) {
	for name, wait := range map[string]func(){"archived before": awaitArchived, "not archived yet": func() {}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "records.db")
			s := open(t, path)
			ended, short, live, silent := storetest.NewAuthor(s, "ada"), storetest.NewAuthor(s, "ada"), storetest.NewAuthor(s, "ada"), storetest.NewAuthor(s, "bob")
			for range 4 {
				for _, a := range []*storetest.Author{ended, short, live} {
					a.Write(t, 2)
				}
			}
			silent.Write(t, 0)
			ended.End(t, time.Hour)
			short.End(t, 1500*time.Millisecond)
			wait()
			closeStore(t, s)
			if got, want := inArchive(t, path) > 0, name == "archived before"; got != want {
				t.Fatalf("the archive has journals: %t, want %t", got, want)
			}

			reboot(t, path)
			for range 2 { // by the first server and by the next one
				s = open(t, path, boltstore.WithExpiry(expire))
				storetest.WantEvents(t, s, ended.Record.ID, 1, 9)
				storetest.WantEvents(t, s, live.Record.ID, 1, 9)
				for _, id := range []string{live.Record.ID, silent.Record.ID} {
					if got, err := s.Summary(t.Context(), id); err != nil || !got.Ended || string(got.Content) != `{"status":"expired"}` {
						t.Errorf("Summary = ended %t, %s, %v, want the one of an expired execution", got.Ended, got.Content, err)
					}
				}
				if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
					t.Errorf("List = %d records, %v, want none", len(list), err)
				}
				closeStore(t, s)
			}
			if name == "archived before" {
				time.Sleep(600 * time.Millisecond) // The life of a journal goes on while no server runs.
			} else {
				time.Sleep(1600 * time.Millisecond)
			}
			s = open(t, path)
			defer closeStore(t, s)
			if _, err := s.Events(t.Context(), short.Record.ID, 0, 1); !errors.Is(err, continuation.ErrNotFound) {
				t.Errorf("Events of a journal whose life is over = %v, want ErrNotFound", err)
			}
			list, err := s.Summaries(t.Context(), "", true, continuation.Place{}, 10)
			if err != nil || len(list) != 3 {
				t.Errorf("Summaries = %d, %v, want 3", len(list), err)
			}
		})
	}
}

// Without WithExpiry nobody can say how a journal ends.
func TestRebootWithoutExpiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	s := open(t, path)
	live, ended := storetest.NewAuthor(s, "ada"), storetest.NewAuthor(s, "ada")
	live.Write(t, 2)
	ended.Write(t, 2)
	ended.End(t, time.Hour)
	closeStore(t, s)
	reboot(t, path)
	s = open(t, path)
	defer closeStore(t, s)
	storetest.WantEvents(t, s, ended.Record.ID, 1, 3)
	if _, err := s.Events(t.Context(), live.Record.ID, 0, 1); !errors.Is(err, continuation.ErrNotFound) {
		t.Errorf("Events of what was alive = %v, want ErrNotFound", err)
	}
}

// A crash of the machine may have damaged the file of records, but not the archive.
func TestRebootWithDamagedRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	s := open(t, path)
	a := storetest.NewAuthor(s, "ada")
	a.Write(t, 2)
	a.End(t, time.Hour)
	awaitArchived()
	b := storetest.NewAuthor(s, "ada")
	b.Write(t, 2)
	closeStore(t, s)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * os.Getpagesize(); i < len(content); i++ {
		content[i] = 0xff
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	reboot(t, path)
	s = open(t, path, boltstore.WithExpiry(expire))
	defer closeStore(t, s)
	storetest.WantEvents(t, s, a.Record.ID, 1, 3)
	if list, err := s.Summaries(t.Context(), "ada", false, continuation.Place{}, 10); err != nil || len(list) != 1 {
		t.Errorf("Summaries = %d, %v, want 1", len(list), err)
	}
}
