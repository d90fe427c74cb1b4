package boltstore_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/continuation/storetest"
)

func TestArchiveIsPrivate(t *testing.T) {
	path, _ := makeStore(t, 1)
	info, err := os.Stat(path + ".journals")
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode of the archive = %v, want -rw-------", got)
	}
}

func TestDamagedArchive(t *testing.T) {
	for name, content := range map[string][]byte{
		"empty":          nil,
		"not a database": bytes.Repeat([]byte("not a database\n"), 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			path, r := makeStore(t, 1)
			if err := os.WriteFile(path+".journals", content, 0o600); err != nil {
				t.Fatal(err)
			}
			var logged bytes.Buffer
			s, err := boltstore.Open(path, slog.New(slog.NewTextHandler(&logged, nil)))
			if err != nil {
				t.Fatalf("Open = %v, want an empty archive", err)
			}
			defer closeStore(t, s)
			if !strings.Contains(logged.String(), path+".journals") {
				t.Errorf("log = %q, want a line about the archive", logged.String())
			}
			if aside, err := os.ReadFile(path + ".journals.damaged"); err != nil || !bytes.Equal(aside, content) {
				t.Errorf("%d bytes were set aside (%v), want the file", len(aside), err)
			}
			if _, err := s.Get(t.Context(), r.ID); err != nil {
				t.Errorf("Get = %v, want the record, which is not in the archive", err)
			}
			a := storetest.NewAuthor(s, "ada")
			a.Write(t, 1)
			a.End(t, time.Hour)
			awaitArchived()
			storetest.WantEvents(t, s, a.Record.ID, 1, 2)
		})
	}
}

// Readers find all of a journal at every moment of its way to the archive, and each execution is
// listed once.
func TestArchivingUnderReaders(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "records.db"))
	defer closeStore(t, s)
	const executions, events = 12, 300 // With so many they leave the file of records in several steps.
	var authors []*storetest.Author
	for range executions {
		a := storetest.NewAuthor(s, "ada")
		for a.Record.Events < events-1 {
			a.Write(t, 1)
		}
		authors = append(authors, a)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for r := range 3 {
		readers.Go(func() {
			for i := r; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a := authors[i%executions]
				page, err := s.Events(t.Context(), a.Record.ID, 0, 1<<20)
				if err != nil || len(page) < events-1 || page[len(page)-1].Seq != int64(len(page)) {
					t.Errorf("Events = %d events, %v, want all of the journal", len(page), err)
					return
				}
				list, err := s.Summaries(t.Context(), "ada", false, continuation.Place{}, 2*executions)
				if err != nil || len(list) != executions {
					t.Errorf("Summaries = %d, %v, want %d", len(list), err, executions)
					return
				}
			}
		})
	}
	for _, a := range authors {
		r, c := a.Next(1)
		c.Summary, c.Life = a.Summary(true), time.Hour
		if err := s.Put(t.Context(), r, ttl, c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	awaitArchived()
	close(stop)
	readers.Wait()
}

// Journals that Put has written survive a kill -9, in whichever file they are at that moment.
func TestKilledServerLosesNoEvent(t *testing.T) {
	if path := os.Getenv(childRole); path != "" {
		s := open(t, path)
		for { // until killed
			a := storetest.NewAuthor(s, "ada")
			for range 5 {
				a.Write(t, 3)
				fmt.Println("put", a.Record.ID, a.Record.Events)
			}
			a.End(t, time.Hour)
			fmt.Println("put", a.Record.ID, a.Record.Events)
		}
	}
	path := filepath.Join(t.TempDir(), "records.db")
	promised := make(map[string]int64)
	for range 4 {
		cmd := child(t, t.Name(), path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(700*time.Millisecond, func() { _ = cmd.Process.Kill() })
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var id string
			var events int64
			if n, _ := fmt.Sscanf(lines.Text(), "put %s %d", &id, &events); n == 2 && len(id) == 36 {
				promised[id] = max(promised[id], events)
			}
		}
		_ = cmd.Wait() // it was killed
		timer.Stop()
	}
	if len(promised) < 50 {
		t.Fatalf("the children wrote %d journals, want more", len(promised))
	}
	s := open(t, path)
	defer closeStore(t, s)
	for id, last := range promised {
		events, err := s.Events(t.Context(), id, 0, 1<<20)
		if err != nil || int64(len(events)) < last || events[len(events)-1].Seq != int64(len(events)) {
			t.Fatalf("Events = %d events, %v, want %d without gaps", len(events), err, last)
		}
		if summary, err := s.Summary(t.Context(), id); err != nil || last == 16 && !summary.Ended {
			t.Fatalf("Summary = ended %t, %v, with %d events", summary.Ended, err, last)
		}
	}
	awaitArchived()
	for id, last := range promised {
		if last == 16 {
			storetest.WantEvents(t, s, id, 1, 16)
		}
	}
}

// The sizes of journals are counted again at every start.
func TestLimitsSurviveReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	var ids []string
	for range 3 {
		s := open(t, path, boltstore.WithLimits(continuation.JournalLimits{Principal: 4 * continuation.JournalLeast}))
		for range 2 {
			a := storetest.NewAuthor(s, "ada")
			a.Write(t, 1)
			a.End(t, time.Hour)
			ids = append(ids, a.Record.ID)
			time.Sleep(2 * time.Millisecond)
		}
		awaitArchived()
		closeStore(t, s)
	}
	s := open(t, path)
	defer closeStore(t, s)
	for i, id := range ids {
		_, err := s.Summary(t.Context(), id)
		if gone := errors.Is(err, continuation.ErrNotFound); gone != (i < 2) {
			t.Errorf("Summary of the %d. journal of 6 = %v, want the last 4", i+1, err)
		}
	}
}

// Files that have grown large are small after a start, and still have everything that is kept.
func TestOpenShrinksJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	s := open(t, path)
	live, ended := storetest.NewAuthor(s, "ada"), storetest.NewAuthor(s, "ada")
	live.Write(t, 3)
	ended.Write(t, 3)
	ended.End(t, time.Hour)
	for range 3 {
		a := storetest.NewAuthor(s, "bob")
		r, c := a.Next(1)
		c.Summary = a.Summary(false)
		c.Events[0] = json.RawMessage(`"` + strings.Repeat("x", 30<<20) + `"`)
		a.Put(t, r, c)
		a.End(t, time.Hour)
		awaitArchived()
	}
	list, err := s.Summaries(t.Context(), "bob", false, continuation.Place{}, 10)
	if err != nil || len(list) != 3 {
		t.Fatalf("Summaries = %d, %v, want 3", len(list), err)
	}
	for _, summary := range list {
		if err := s.Forget(t.Context(), summary.ID); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	size := func(file string) int64 {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if size(path+".journals") < 64<<20 {
		t.Fatalf("the archive has %d bytes, want a large one", size(path+".journals"))
	}
	s = open(t, path)
	defer closeStore(t, s)
	for _, file := range []string{path, path + ".journals"} {
		if got := size(file); file != path && got > 1<<20 || got > 64<<20 {
			t.Errorf("%s has %d bytes after a start, want a small one", filepath.Base(file), got)
		}
	}
	storetest.WantEvents(t, s, live.Record.ID, 1, 3)
	storetest.WantEvents(t, s, ended.Record.ID, 1, 4)
	live.Store = s
	live.Write(t, 2)
	live.End(t, time.Hour)
	awaitArchived()
	storetest.WantEvents(t, s, live.Record.ID, 1, 6)
}
