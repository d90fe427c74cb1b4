package boltstore

import (
	"encoding/binary"

	bolt "go.etcd.io/bbolt"
)

// records is the bucket that maps the id of a record to its value. A value is
//
//	8 bytes  expiry, in milliseconds since the machine's boot, big-endian
//	8 bytes  version, big-endian
//	         the record in stored form
//
// After each record come the chapters of its execution, unless they are in the archive.
const (
	records   = "records"
	headerLen = 16
)

// current returns the value of the record with this id, or nil if there is none or it has
// expired.
func current(tx *bolt.Tx, id string, at int64) []byte {
	value := tx.Bucket([]byte(records)).Get([]byte(id))
	if value == nil || expired(value, at) {
		return nil
	}
	return value
}

func expired(value []byte, at int64) bool {
	return int64(binary.BigEndian.Uint64(value)) <= at
}
