package storetest

import (
	"bytes"
	"testing"

	"fermata/continuation"
)

// Benchmark measures what a round costs in the store: a Put of the next version of a
// record, a Get, both in turn, and both in turn from several goroutines.
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
