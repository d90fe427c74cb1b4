package files

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"

	"fermata/engine/core"
	"fermata/engine/filename"
)

// A Reference is a client's request that its program be given a file.
type Reference struct {
	// Owner, Session and ID say which file. If ID is empty, it is the latest file of the session that
	// has the Name.
	Owner       Owner
	Session, ID string
	// Name is the path of the file in the program's workspace. It may differ from the name
	// under which the file is stored.
	Name string
	// Resource is the client's id for what the file belongs to. If the owner is an agent or a
	// skill, it is the owner's id. Answers about the file repeat it. If it is empty, it is the id of
	// the file.
	Resource string
}

// Inputs returns the files that references name, in the form in which engine.Start.Inputs takes
// them. If one of them does not exist or belongs to another owner, Inputs returns ErrNotFound or
// ErrForeign. Of several references that cannot all have their places, the last one counts
// (see place).
func (s *Store) Inputs(ctx context.Context, references []Reference) ([]core.InputFile, error) {
	references, err := identified(ctx, s, references)
	if err != nil {
		return nil, err
	}
	inputs := make([]core.InputFile, len(references))
	errs := inParallel(len(references), func(i int) error {
		r := references[i]
		f, err := s.Stat(ctx, r.Owner, r.Session, r.ID)
		inputs[i] = inputOf(f, r)
		return s.gone(ctx, i, r, err)
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return place(inputs), nil
}

// A GoneError says that a file does not exist in a session that belongs to the owner of the reference. It is an
// ErrNotFound.
type GoneError struct {
	// Index is the index of the reference, and Name its name.
	Index int
	Name  string
}

func (e *GoneError) Error() string { return "files: " + e.Name + " does not exist any more" }

// Unwrap returns ErrNotFound.
func (e *GoneError) Unwrap() error { return ErrNotFound }

// gone returns the error of the i-th reference. It is a GoneError if it was ErrNotFound and the session is known to
// be the owner's, so that nobody learns of the sessions of others.
func (s *Store) gone(ctx context.Context, i int, r Reference, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if key, _, findErr := s.owners.find(ctx, r.Session); findErr == nil && key == r.Owner.key() {
		return &GoneError{i, r.Name}
	}
	return err
}

// identified returns the references with the ids of the files that some of them name. It returns
// ErrNotFound if a session has no file of such a name, and ErrForeign.
func identified(ctx context.Context, s *Store, references []Reference) ([]Reference, error) {
	type place struct {
		owner   Owner
		session string
	}
	listed := map[place][]File{}
	complete := slices.Clone(references)
	for i, r := range references {
		if r.ID == "" {
			at := place{r.Owner, r.Session}
			found, ok := listed[at]
			if !ok {
				var err error
				if found, err = s.List(ctx, r.Owner, r.Session); err != nil {
					return nil, err
				}
				listed[at] = found
			}
			f, err := latest(found, r.Name)
			if err != nil {
				return nil, s.gone(ctx, i, r, err)
			}
			complete[i].ID = f.ID
		}
		complete[i].Resource = cmp.Or(r.Resource, complete[i].ID)
	}
	return complete, nil
}

// latest returns the latest file of the name in a list that is sorted as List sorts, or ErrNotFound.
func latest(sorted []File, name string) (File, error) {
	for _, f := range slices.Backward(sorted) {
		if filename.Same(f.Name, name) {
			return f, nil
		}
	}
	return File{}, ErrNotFound
}

// SessionInputs returns the files that a program finds when it continues a session, in the form
// in which engine.Start.Inputs takes them: the latest file of each name, unless a program has
// deleted that one. A session that does not exist has none. For a session that belongs to
// another owner SessionInputs returns ErrForeign.
func (s *Store) SessionInputs(ctx context.Context, owner Owner, session string) ([]core.InputFile, error) {
	// Listing can take long, and most sessions have never had a file.
	key, _, err := s.owners.find(ctx, session)
	if err != nil || key == "" {
		return nil, err
	}
	found, err := s.List(ctx, owner, session)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	deleted := map[string]bool{}
	err = s.bucket.walk(ctx, deletionKey(owner, session, ""), func(o object) {
		_, id, _ := idsOf(o.key)
		deleted[id] = true
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b File) int { return a.Modified.Compare(b.Modified) })
	inputs := make([]core.InputFile, len(found))
	for i, f := range found {
		inputs[i] = inputOf(f, Reference{Owner: owner, Name: f.Name, Resource: f.ID})
	}
	return slices.DeleteFunc(place(inputs), func(f core.InputFile) bool { return deleted[f.ID] }), nil
}

// inputOf returns the input that gives a program the file f by the reference r.
func inputOf(f File, r Reference) core.InputFile {
	return core.InputFile{
		Session: f.Session, ID: f.ID, Name: r.Name, Size: f.Size, SHA256: f.SHA256, Type: f.Type,
		// A user's program cannot change the files of agents and skills.
		ReadOnly: f.ReadOnly || r.Owner.Kind != KindUser,
		Kind:     r.Owner.Kind, Resource: r.Resource, Version: r.Owner.Version,
	}
}

// place leaves out inputs that have no place in the workspace: of two that have the same name,
// or one of which has the name of a directory that the other needs, it keeps the later one. A
// session can contain both, because one program can leave a file and another one a directory of
// the same name.
func place(inputs []core.InputFile) []core.InputFile {
	placed := make([]core.InputFile, 0, len(inputs))
	taken, directories := map[string]bool{}, map[string]bool{}
	for _, f := range slices.Backward(inputs) {
		free := !taken[f.Name] && !directories[f.Name]
		for parent := path.Dir(f.Name); parent != "."; parent = path.Dir(parent) {
			free = free && !taken[parent]
		}
		if !free {
			continue
		}
		placed = append(placed, f)
		taken[f.Name] = true
		for parent := path.Dir(f.Name); parent != "."; parent = path.Dir(parent) {
			directories[parent] = true
		}
	}
	slices.Reverse(placed)
	return placed
}
