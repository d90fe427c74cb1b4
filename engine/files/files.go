// Package files keeps the files of sessions: those that clients upload, those that the
// engine copies into the workspace (/mnt/data) of a program, and those that programs leave
// there. Contents and descriptions are stored in a bucket, which is a local directory or an
// object store, and nowhere else, so that every server of a group finds them. The package
// implements engine.Files, and knows nothing of HTTP or of sandboxes.
package files

import (
	"errors"
	"io"
	"time"
)

// Errors of a Store, for errors.Is.
var (
	// ErrNotFound means that there is no such file, or that it has expired.
	ErrNotFound = errors.New("files: no such file")
	// ErrForeign means that the session belongs to another owner.
	ErrForeign = errors.New("files: the session belongs to another owner")
	// ErrTooLarge means that a file is larger than Options.MaxFile.
	ErrTooLarge error = refusedError("the file is too large")
	// ErrQuota means that a file does not fit into its owner's Options.Quota.
	ErrQuota error = refusedError("the quota is exceeded")
	// ErrFull means that the session already has Options.MaxFiles files.
	ErrFull error = refusedError("the session has too many files")
)

// A refusedError refuses a file, in words for whoever has made it.
type refusedError string

func (e refusedError) Error() string { return "files: " + string(e) }

// Refusal returns the words.
func (e refusedError) Refusal() string { return string(e) }

// The kinds of owners.
const (
	KindUser  = "user"
	KindAgent = "agent"
	KindSkill = "skill"
)

// An Owner is a user, an agent or a version of a skill. Each session belongs to one owner,
// and nobody else can see its files.
type Owner struct {
	// Tenant separates installations that share nothing.
	Tenant string
	// Kind is KindUser, KindAgent or KindSkill.
	Kind string
	// ID is the id of the user, agent or skill.
	ID string
	// Version is the version of a skill, and 0 for users and agents.
	Version int
}

// A File describes a stored file. Its JSON form is stored: the names of its members must not
// change.
type File struct {
	// Session and ID together name the file. Both satisfy ValidID.
	Session string `json:"session"`
	ID      string `json:"id"`
	// Name is the path of the file relative to the workspace. Several files of one session
	// can have the same name: each time a program changes a file, the result is a new file.
	Name string `json:"name"`
	// Size is the size of the contents in bytes.
	Size int64 `json:"size"`
	// SHA256 is the hash of the contents in hexadecimal.
	SHA256 string `json:"sha256"`
	// Type is the media type.
	Type string `json:"type"`
	// ReadOnly says that a program's changes to the file are not kept.
	ReadOnly bool `json:"read_only,omitempty"`
	// Modified is when the file was stored, in UTC. The bucket's own time is no substitute:
	// some object stores round it to seconds, within which two programs can store a file of
	// the same name.
	Modified time.Time `json:"made"`
	// ETag differs between files of different contents. It is derived from SHA256.
	ETag string `json:"-"`
	// Owner is the owner of the session.
	Owner Owner `json:"-"`
}

// A New is a file for Store.Put to store.
type New struct {
	Owner   Owner
	Session string
	// Name is the path of the file relative to the workspace. filename.Check must accept it.
	Name string
	// Type is the media type that the client has declared. If it is empty, malformed or
	// application/octet-stream, the type is guessed from the name and the contents.
	Type string
	// ReadOnly says that a program's changes to the file are not kept.
	ReadOnly bool
	// Content is read to its end. The caller closes it, if it needs to be closed.
	Content io.Reader
}
