// Package files keeps the files of sessions: what clients upload, what programs
// see in /mnt/data, and what they leave there. Contents and descriptions live in a
// bucket (a local directory or an object store) and nowhere else, so that any server
// finds them. It is the engine's Files, and knows nothing of HTTP or sandboxes.
package files

import (
	"errors"
	"io"
	"time"
)

// Errors of a Store. They are compared with errors.Is.
var (
	// ErrNotFound means that there is no such file, or its life is over.
	ErrNotFound = errors.New("files: no such file")
	// ErrForeign means that the session belongs to another owner.
	ErrForeign = errors.New("files: another owner's session")
	// ErrTooLarge means that a file is larger than a file may be.
	ErrTooLarge = errors.New("files: file is too large")
	// ErrQuota means that the owner's files would be larger than they may be together.
	ErrQuota = errors.New("files: quota is exceeded")
	// ErrFull means that the session has as many files as a session may have.
	ErrFull = errors.New("files: session has too many files")
)

// An Owner is who may see a file.
type Owner struct {
	// Tenant separates installations that share nothing.
	Tenant string
	// Kind is user, agent or skill.
	Kind string
	// ID is the user's, agent's or skill's id; Version the skill's, otherwise 0.
	ID      string
	Version int
}

// A File is the description of a stored file.
type File struct {
	// Session and ID name the file; both have 21 characters of A-Za-z0-9_-.
	Session, ID string
	// Name is its path relative to /mnt/data.
	Name string
	// Size is in bytes, SHA256 is hex.
	Size     int64
	SHA256   string
	Type     string // media type
	ETag     string
	Modified time.Time
	// ReadOnly says that a program's changes to it are thrown away.
	ReadOnly bool
	Owner    Owner
}

// A New is a file that is to be stored.
type New struct {
	Owner    Owner
	Session  string
	Name     string
	Type     string // media type; guessed from name and content if empty
	ReadOnly bool
	Content  io.Reader
}
