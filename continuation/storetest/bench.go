package storetest

import (
	"bytes"
	"encoding/json"
	"testing"

	"fermata/continuation"
)

// Benchmark measures what a round costs in the store: a Put of the next version of a
// record, one with an event, a Get, both in turn, and both in turn from several goroutines.
func Benchmark(b *testing.B, s continuation.Store) {
	record := NewRecord()
	record.Answer = bytes.Repeat([]byte("x"), 1<<10)

	// step writes the next version of r.
	step := func(b *testing.B, r *continuation.Record) {
		if err := s.Put(b.Context(), *r, ttl, continuation.Chapter{}); err != nil {
			b.Fatal(err)
		}
		r.Version++
	}
	get := func(b *testing.B, id string) {
		if _, err := s.Get(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
	fresh := func() continuation.Record {
		r := record
		r.ID = NewRecord().ID
		return r
	}

	b.Run("Put", func(b *testing.B) {
		for r := fresh(); b.Loop(); {
			step(b, &r)
		}
	})
	// Each journal has as many chapters as the journal of a program with much output.
	b.Run("PutEvent", func(b *testing.B) {
		text := json.RawMessage(`{"seq":12,"time":"2026-11-22T10:00:00.000Z","type":"output","stream":"stdout","offset":100,"text":"hello\n"}`)
		r := fresh()
		for b.Loop() {
			if r.Events == 1000 {
				r = fresh()
			}
			r.Events++
			if err := s.Put(b.Context(), r, ttl, continuation.Chapter{First: r.Events, Events: []json.RawMessage{text}}); err != nil {
				b.Fatal(err)
			}
			r.Version++
		}
	})
	b.Run("Get", func(b *testing.B) {
		r := fresh()
		step(b, &r)
		for b.Loop() {
			get(b, r.ID)
		}
	})
	b.Run("PutGet", func(b *testing.B) {
		for r := fresh(); b.Loop(); {
			step(b, &r)
			get(b, r.ID)
		}
	})
	b.Run("PutGetParallel", func(b *testing.B) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for r := fresh(); pb.Next(); {
				if err := s.Put(b.Context(), r, ttl, continuation.Chapter{}); err != nil {
					b.Error(err)
					return
				}
				r.Version++
				if _, err := s.Get(b.Context(), r.ID); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("PutGet1MiB", func(b *testing.B) {
		r := fresh()
		for r.Answer = bytes.Repeat([]byte("x"), 1<<20); b.Loop(); {
			step(b, &r)
			get(b, r.ID)
		}
	})
}
