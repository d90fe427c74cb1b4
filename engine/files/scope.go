package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"fermata/engine/core"
)

// A scope says which user an execution belongs to: whose files it may read, and who owns those
// that it leaves. Only this package writes and reads it. To everybody else it is opaque JSON:
// api gets it from ScopeOf and puts it into engine.Start.Scope; the engine stores it in
// continuation.Record.Scope and passes it to the methods of engine.Files, on whichever server
// the execution is then. Records outlive servers, so members may be added but never renamed.
type scope struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
}

// ScopeOf returns the scope of a user's executions, for engine.Start.Scope.
func ScopeOf(user Owner) (json.RawMessage, error) {
	encoded, err := json.Marshal(scope{user.Tenant, user.ID})
	if err != nil {
		return nil, fmt.Errorf("encode scope: %w", err)
	}
	return encoded, nil
}

func readScope(encoded json.RawMessage) (scope, error) {
	var sc scope
	if err := json.Unmarshal(encoded, &sc); err != nil {
		return sc, fmt.Errorf("read scope: %w", err)
	}
	return sc, nil
}

// user returns the owner of what the execution leaves.
func (sc scope) user() Owner { return Owner{Tenant: sc.Tenant, Kind: KindUser, ID: sc.User} }

// ownerOf returns the owner of an input. An input of the user is always of this user: the
// record cannot name another one.
func (sc scope) ownerOf(f core.InputFile) Owner {
	if f.Kind == KindUser {
		return sc.user()
	}
	return Owner{Tenant: sc.Tenant, Kind: f.Kind, ID: f.Resource, Version: f.Version}
}

// Open opens an input of an execution. Its contents can be read until ctx ends; the caller
// closes them. The errors are those of Stat. It is a method of engine.Files.
func (s *Store) Open(ctx context.Context, encoded json.RawMessage, f core.InputFile) (io.ReadCloser, error) {
	sc, err := readScope(encoded)
	if err != nil {
		return nil, err
	}
	content, _, err := s.Read(ctx, sc.ownerOf(f), f.Session, f.ID)
	return content, err
}

// Save stores a file that a program has left as a new file of its user in the session. The
// errors are those of Put. It is a method of engine.Files.
func (s *Store) Save(ctx context.Context, encoded json.RawMessage, session, name string, content io.Reader) (core.OutputFile, error) {
	sc, err := readScope(encoded)
	if err != nil {
		return core.OutputFile{}, err
	}
	f, err := s.Put(ctx, New{Owner: sc.user(), Session: session, Name: name, Content: content})
	return core.OutputFile{Session: f.Session, ID: f.ID, Name: f.Name, Size: f.Size, Type: f.Type}, err
}

// Drop notes that a program has deleted an input, so that SessionInputs leaves it out from now
// on. The file itself stays, and clients that have not heard of the deletion can still refer to
// it. It is a method of engine.Files.
func (s *Store) Drop(ctx context.Context, encoded json.RawMessage, f core.InputFile) error {
	sc, err := readScope(encoded)
	if err != nil {
		return err
	}
	if err := s.bucket.put(ctx, deletionKey(sc.ownerOf(f), f.Session, f.ID), nil, false); err != nil {
		return fmt.Errorf("note that file %s was deleted: %w", f.ID, err)
	}
	return nil
}

// Discard deletes a file that Save has stored, and gives its room in the quota back, even if ctx has
// ended. The errors are those of Stat. It is a method of engine.Files.
func (s *Store) Discard(ctx context.Context, encoded json.RawMessage, f core.InputFile) error {
	sc, err := readScope(encoded)
	if err != nil {
		return err
	}
	ctx, cancel := withDeadline(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return s.Delete(ctx, sc.user(), f.Session, f.ID)
}
