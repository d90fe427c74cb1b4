package files

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path"
	"strings"
)

// The objects in the bucket. Their keys and their contents must not change while there are
// stored files.
//
// The description of a file is an object of its own, because it contains the hash, which is
// known only when all contents are written. It is written last, so that every file that has
// a description is complete.
//
// Every key except that of a session's owner contains a hash of the owner. Whatever a server
// takes to be a session's owner, it cannot reach the files of anybody else.
const (
	// claims/<session> contains the key of the session's owner.
	ownersPrefix = "claims/"
	// files/<owner>/<session>.<file> is the description of a file.
	descriptionsPrefix = "files/"
	// contents/<account>/<owner>/<session>.<file> is the contents of a file.
	contentsPrefix = "contents/"
	// drops/<owner>/<session>.<file> is empty. It says that a program has deleted the file,
	// which therefore does not return with its session.
	deletionsPrefix = "drops/"
)

func descriptionKey(owner Owner, session, id string) string {
	return descriptionsPrefix + owner.key() + "/" + session + "." + id
}

func contentKey(owner Owner, session, id string) string {
	return contentsPrefix + owner.account() + "/" + owner.key() + "/" + session + "." + id
}

func deletionKey(owner Owner, session, id string) string {
	return deletionsPrefix + owner.key() + "/" + session + "." + id
}

// idsOf returns the ids that a key ends with. ok is false for any other object, such as the
// temporary file that a directory has while an object is being written.
func idsOf(key string) (session, id string, ok bool) {
	session, id, _ = strings.Cut(path.Base(key), ".")
	return session, id, ValidID(session) && ValidID(id)
}

// account returns what stands in keys for the account that the owner's files count against.
// Each user has an account. The agents and skills of a tenant share one, because clients can
// make up as many of them as they like.
func (o Owner) account() string {
	if o.Kind == KindUser {
		return o.key()
	}
	return Owner{Tenant: o.Tenant, Kind: "shared"}.key()
}

// key returns what stands in keys for the owner. Each field is hashed with its length, so
// that owners whose fields merely concatenate to the same text have different keys.
func (o Owner) key() string {
	h := sha256.New()
	for _, field := range []string{o.Tenant, o.Kind, o.ID} {
		_ = binary.Write(h, binary.BigEndian, int64(len(field))) // A hash never fails.
		h.Write([]byte(field))
	}
	_ = binary.Write(h, binary.BigEndian, int64(o.Version))
	return hex.EncodeToString(h.Sum(nil))
}
