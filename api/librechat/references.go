package librechat

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/api/auth"
	"fermata/engine"
	"fermata/engine/files"
)

// reservedName is the name of a file that other implementations keep between the runs of a program
// with tools.
const reservedName = "_ptc_history.json"

var resourcePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// referencesOf returns the files that a request refers to, checked as far as is possible
// without looking them up. For a program that calls tools some names are reserved.
func (p *programs) referencesOf(list array[fileMembers], who auth.Principal, callsTools bool) ([]files.Reference, error) {
	switch {
	case list.given() && list.kind != jsontext.KindBeginArray:
		return nil, errFiles
	case list.count > 0 && p.inputs == nil:
		return nil, errFilesNotTaken
	case list.count > MaxFiles:
		return nil, api.BadRequestf("Too many files provided (%d). Maximum is %d.", list.count, MaxFiles)
	case list.strays:
		return nil, api.BadRequestf("files[%d] must be an object", list.stray)
	}
	references := make([]files.Reference, len(list.entries))
	for i, members := range list.entries {
		r, err := referenceOf(i, members, who)
		if err == nil && callsTools {
			err = checkReserved(r.Name)
		}
		if err == nil {
			err = checkName(r.Name)
		}
		if err != nil {
			return nil, err
		}
		references[i] = r
	}
	return references, nil
}

// referenceOf returns the i-th reference of a request. It does not check what the name may
// be.
func referenceOf(i int, m fileMembers, who auth.Principal) (files.Reference, error) {
	var r files.Reference
	var ok bool
	if r.ID, _ = unquote(m.ID); !files.ValidID(r.ID) {
		return r, api.BadRequestf("files[%d].id is invalid", i)
	}
	if r.Name, ok = unquote(m.Name); !ok {
		return r, api.BadRequestf("files[%d].name must be a string", i)
	}
	session, member := m.StorageSession, "storage_session_id"
	if isNull(session) {
		session, member = m.Session, "session_id"
	}
	if r.Session, _ = unquote(session); !files.ValidID(r.Session) {
		return r, api.BadRequestf("files[%d].%s is invalid", i, member)
	}
	r.Resource = r.ID
	if !isNull(m.Resource) {
		if r.Resource, _ = unquote(m.Resource); !resourcePattern.MatchString(r.Resource) {
			return r, api.BadRequestf("files[%d].resource_id is invalid", i)
		}
	}
	var err error
	r.Owner, err = referenceOwner(i, m, r.Resource, who)
	return r, err
}

// referenceOwner returns the owner that the file must have.
func referenceOwner(i int, m fileMembers, resource string, who auth.Principal) (files.Owner, error) {
	sc := scope{id: resource}
	if !isNull(m.Kind) {
		var ok bool
		if sc.kind, ok = unquote(m.Kind); !ok || sc.kind == "" {
			return files.Owner{}, inReference(i, errScopeKind)
		}
	}
	if !isNull(m.Version) {
		version, err := strconv.ParseFloat(string(m.Version), 64)
		if err != nil || version != float64(int(version)) {
			return files.Owner{}, api.BadRequestf("files[%d].version must be an integer", i)
		}
		sc.version = strconv.Itoa(int(version))
	}
	owner, err := sc.owner(who)
	if err != nil {
		return owner, inReference(i, err)
	}
	return owner, nil
}

// checkReserved refuses the names that other implementations need for themselves.
func checkReserved(name string) error {
	if path.Base(name) == reservedName || strings.HasPrefix(path.Clean(name)+"/", "../") {
		return api.BadRequest(`files[].name "` + name + `" is reserved for PTC runtime and cannot be supplied by callers`)
	}
	return nil
}

func checkName(name string) error {
	if wrong, ok := errors.AsType[*files.NameError](files.CheckName(name)); ok {
		return api.BadRequest("files[].name " + wrong.Reason)
	}
	return nil
}

// inputsOf returns the input files and the scope of a start. The input files are those that the
// request refers to, or without references those of the session that the request names. If that
// session belongs to another owner, the start silently gets a new one.
func (p *programs) inputsOf(ctx context.Context, who auth.Principal, session string, given bool, references []files.Reference) (list []engine.InputFile, scoped json.RawMessage, ours string, err error) {
	if p.inputs == nil {
		return nil, nil, session, nil
	}
	user, err := scope{}.owner(who)
	if err != nil {
		return nil, nil, "", err
	}
	foreign := false
	switch {
	case len(references) > 0:
		if list, err = p.inputs.Inputs(ctx, references); err != nil {
			return nil, nil, "", referenceError(err)
		}
		if given {
			foreign, err = p.inputs.Foreign(ctx, user, session)
		}
	case given:
		list, err = p.inputs.SessionInputs(ctx, user, session)
		if errors.Is(err, files.ErrForeign) {
			foreign, err = true, nil
		}
	}
	if err != nil {
		return nil, nil, "", err
	}
	if foreign {
		session = files.NewID()
	}
	scoped, err = files.ScopeOf(user)
	return list, scoped, session, err
}

// referenceError returns the answer to a reference to a file that does not exist, or does not belong
// to the client.
func referenceError(err error) error {
	if errors.Is(err, files.ErrNotFound) || errors.Is(err, files.ErrForeign) {
		return errReference
	}
	return err
}
