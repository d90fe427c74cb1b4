package files

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"gocloud.dev/blob"

	"fermata/engine"
)

// A Reference is a file that a client wants its program to have.
type Reference struct {
	// Owner, Session and ID say which.
	Owner       Owner
	Session, ID string
	// Name is its path in the workspace, whatever it is stored as.
	Name string
	// Resource is the client's word for what it belongs to, and goes back to it.
	Resource string
}

// A scope is whose files an execution sees, as its record keeps it. Its names may not
// change.
type scope struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
}

// ScopeOf returns the scope of the executions of a user, for an engine.Start.
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

// user is the owner of what the execution leaves.
func (sc scope) user() Owner { return Owner{Tenant: sc.Tenant, Kind: "user", ID: sc.User} }

// owner is the owner of an input.
func (sc scope) owner(f engine.InputFile) Owner {
	if f.Kind == "user" {
		return sc.user()
	}
	return Owner{Tenant: sc.Tenant, Kind: f.Kind, ID: f.Resource, Version: f.Version}
}

// Open opens an input of an execution.
func (s *Store) Open(ctx context.Context, encoded json.RawMessage, f engine.InputFile) (io.ReadCloser, error) {
	sc, err := readScope(encoded)
	if err != nil {
		return nil, err
	}
	content, _, err := s.Read(ctx, sc.owner(f), f.Session, f.ID)
	return content, err
}

// Save keeps a file that a program has left.
func (s *Store) Save(ctx context.Context, encoded json.RawMessage, session, name string, content io.Reader) (engine.OutputFile, error) {
	sc, err := readScope(encoded)
	if err != nil {
		return engine.OutputFile{}, err
	}
	f, err := s.Put(ctx, New{Owner: sc.user(), Session: session, Name: name, Content: content})
	return engine.OutputFile{Session: f.Session, ID: f.ID, Name: f.Name}, err
}

// Drop notes that a program has deleted a file, which will not come back with its
// session. It can still be referred to: the client may not have heard of it.
func (s *Store) Drop(ctx context.Context, encoded json.RawMessage, f engine.InputFile) error {
	sc, err := readScope(encoded)
	if err != nil {
		return err
	}
	if err := s.writeSmall(ctx, drops+sc.owner(f).key()+"/"+f.Session+"."+f.ID, nil, false); err != nil {
		return fmt.Errorf("drop file %s: %w", f.ID, err)
	}
	return nil
}

// Inputs returns the inputs that references name, if all of them are there: otherwise
// ErrNotFound or ErrForeign. Of several with one name the last one counts.
func (s *Store) Inputs(ctx context.Context, references []Reference) ([]engine.InputFile, error) {
	const atOnce = 16
	var (
		group  sync.WaitGroup
		inputs = make([]engine.InputFile, len(references))
		errs   = make([]error, len(references))
		free   = make(chan struct{}, atOnce)
	)
	for i, r := range references {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			var f File
			f, errs[i] = s.Stat(ctx, r.Owner, r.Session, r.ID)
			inputs[i] = inputOf(f, r)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return place(inputs), nil
}

// SessionInputs returns what a program finds that goes on with a session: the latest
// file of each name that no program has deleted. If the session is another owner's it
// returns ErrForeign.
func (s *Store) SessionInputs(ctx context.Context, owner Owner, session string) ([]engine.InputFile, error) {
	// A list may take long, and most sessions have never had a file.
	claim, err := s.readClaim(ctx, session)
	if err != nil || claim.owner == "" {
		return nil, err
	}
	found, err := s.List(ctx, owner, session)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	dropped := map[string]bool{}
	err = s.walk(ctx, drops+owner.key()+"/"+session+".", func(o *blob.ListObject) {
		_, id, _ := strings.Cut(path.Base(o.Key), ".")
		dropped[id] = true
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b File) int { return a.Modified.Compare(b.Modified) })
	inputs := make([]engine.InputFile, len(found))
	for i, f := range found {
		inputs[i] = inputOf(f, Reference{Owner: owner, Name: f.Name, Resource: f.ID})
	}
	return slices.DeleteFunc(place(inputs), func(f engine.InputFile) bool { return dropped[f.ID] }), nil
}

func inputOf(f File, r Reference) engine.InputFile {
	return engine.InputFile{
		Session: f.Session, ID: f.ID, Name: r.Name, Size: f.Size, SHA256: f.SHA256,
		// What agents and skills have is not a user's to change.
		ReadOnly: f.ReadOnly || r.Owner.Kind != "user",
		Kind:     r.Owner.Kind, Resource: r.Resource, Version: r.Owner.Version,
	}
}

// place returns those of the inputs that a workspace has room for: of two with one name,
// or of which one would have to be a directory for the other, the last one. Two runs can
// leave a file and a directory of one name.
func place(inputs []engine.InputFile) []engine.InputFile {
	placed := make([]engine.InputFile, 0, len(inputs))
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

var _ engine.Files = (*Store)(nil)
