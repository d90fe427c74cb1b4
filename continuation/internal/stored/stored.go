// Package stored holds what the stores of continuation records have in common: the
// stored form of a record, the rounding of times to live, and the error that a store
// must return when it cannot do its work.
package stored

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
)

// Append appends the stored form of r to b. It is
//
//	4 bytes  length of the JSON, big-endian
//	         JSON of the record without its answer
//	         the answer
//
// and may not change, because servers of several versions share a store. The answer is
// kept apart so that it comes back byte for byte, and because a JSON encoder would take
// longer for an answer of 10 MB than everything else takes.
func Append(b []byte, r continuation.Record) ([]byte, error) {
	answer := r.Answer
	r.Answer = nil
	r.Format = continuation.RecordFormat
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	return append(b, answer...), nil
}

// Decode returns the record whose stored form is b. The record's answer shares the memory
// of b.
func Decode(b []byte) (continuation.Record, error) {
	var r continuation.Record
	if len(b) < 4 {
		return r, errors.New("decode record: too short")
	}
	n, b := binary.BigEndian.Uint32(b), b[4:]
	if uint64(n) > uint64(len(b)) {
		return r, errors.New("decode record: cut off")
	}
	if err := json.Unmarshal(b[:n], &r); err != nil {
		return continuation.Record{}, fmt.Errorf("decode record: %w", err)
	}
	if r.Format < 1 || r.Format > continuation.RecordFormat {
		return continuation.Record{}, fmt.Errorf("decode record: format %d, want at most %d", r.Format, continuation.RecordFormat)
	}
	if answer := b[n:]; len(answer) > 0 {
		r.Answer = answer
	}
	return r, nil
}

// Millis returns ttl in milliseconds, rounded up and at least 1: to Redis a time to live
// of 0 is an error.
func Millis(ttl time.Duration) int64 {
	return max(1, int64((ttl+time.Millisecond-1)/time.Millisecond))
}

// Unavailable returns the error of the operation op that failed with err. It wraps
// continuation.ErrUnavailable, and err as well, so that the caller can recognise that it
// cancelled its own context.
func Unavailable(op string, err error) error {
	return fmt.Errorf("%w: %s: %w", continuation.ErrUnavailable, op, err)
}
