package api

import (
	"errors"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/engine"
	"fermata/engine/files"
)

// MaxFiles is the number of files that a request may refer to.
const MaxFiles = 300

// reservedName is what other servers keep between the runs of a program that calls tools.
const reservedName = "_ptc_history.json"

var resourcePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// references returns the files that a request refers to, as far as can be told without
// looking. For a program that calls tools some names are reserved.
func (s *server) references(c echo.Context, list array[fileMembers], callsTools bool) ([]files.Reference, error) {
	switch {
	case list.given() && list.kind != jsontext.KindBeginArray:
		return nil, errFiles
	case list.count > 0 && s.options.Files == nil:
		return nil, errFilesNotTaken
	case list.count > MaxFiles:
		return nil, tooManyReferences(list.count)
	case list.strays:
		return nil, referenceNotObject(list.stray)
	}
	references := make([]files.Reference, len(list.entries))
	for i, members := range list.entries {
		r, err := referenceOf(i, members, principal(c))
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

// referenceOf returns the i-th reference of a request but for its name's rules.
func referenceOf(i int, m fileMembers, who Principal) (files.Reference, error) {
	var r files.Reference
	var ok bool
	if r.ID, _ = unquote(m.ID); !files.ValidID(r.ID) {
		return r, referenceInvalid(i, "id")
	}
	if r.Name, ok = unquote(m.Name); !ok {
		return r, referenceName(i)
	}
	session, member := m.StorageSession, "storage_session_id"
	if isNull(session) {
		session, member = m.Session, "session_id"
	}
	if r.Session, _ = unquote(session); !files.ValidID(r.Session) {
		return r, referenceInvalid(i, member)
	}
	r.Resource = r.ID
	if !isNull(m.Resource) {
		if r.Resource, _ = unquote(m.Resource); !resourcePattern.MatchString(r.Resource) {
			return r, referenceInvalid(i, "resource_id")
		}
	}
	var err error
	r.Owner, err = referenceOwner(i, m, r.Resource, who)
	return r, err
}

// referenceOwner returns whose the file must be.
func referenceOwner(i int, m fileMembers, resource string, who Principal) (files.Owner, error) {
	sc := scope{id: resource}
	if !isNull(m.Kind) {
		var ok bool
		if sc.kind, ok = unquote(m.Kind); !ok || sc.kind == "" {
			return files.Owner{}, referenceKind(i)
		}
	}
	if !isNull(m.Version) {
		version, err := strconv.ParseFloat(string(m.Version), 64)
		if err != nil || version != float64(int(version)) {
			return files.Owner{}, referenceVersionNumber(i)
		}
		sc.version = strconv.Itoa(int(version))
	}
	owner, err := sc.owner(who)
	switch {
	case errors.Is(err, errScopeKind):
		return owner, referenceKind(i)
	case errors.Is(err, errScopeVersion):
		return owner, referenceVersion(i)
	case errors.Is(err, errScopeNoVersion):
		return owner, referenceNoVersion(i)
	}
	return owner, err
}

// checkReserved refuses the names that other servers need for themselves.
func checkReserved(name string) error {
	if path.Base(name) == reservedName || strings.HasPrefix(path.Clean(name)+"/", "../") {
		return referenceReserved(name)
	}
	return nil
}

func checkName(name string) error {
	if wrong, ok := errors.AsType[*files.NameError](files.CheckName(name)); ok {
		return referencePath(wrong.Reason)
	}
	return nil
}

// attach gives a start its session and its input files: those referred to, or without
// any what the session has, if the client has given it. A session that is another's is not
// spoken of: the execution gets one of its own.
func (s *server) attach(c echo.Context, start *engine.Start, session string, given bool, references []files.Reference) error {
	start.Session = session
	c.Set(sessionKey, session)
	if s.options.Files == nil {
		return nil
	}
	ctx, store := c.Request().Context(), s.options.Files
	user, err := scope{}.owner(principal(c))
	if err != nil {
		return err
	}
	if start.Scope, err = files.ScopeOf(user); err != nil {
		return err
	}
	foreign := false
	switch {
	case len(references) > 0:
		if start.Inputs, err = store.Inputs(ctx, references); err != nil {
			return referenceError(err)
		}
		if given {
			foreign, err = store.Foreign(ctx, user, session)
		}
	case given:
		start.Inputs, err = store.SessionInputs(ctx, user, session)
		if errors.Is(err, files.ErrForeign) {
			foreign, err = true, nil
		}
	}
	if foreign {
		start.Session = files.NewID()
		c.Set(sessionKey, start.Session)
	}
	return err
}

// referenceError is the answer to a reference to what is not there, or not the client's.
func referenceError(err error) error {
	if errors.Is(err, files.ErrNotFound) || errors.Is(err, files.ErrForeign) {
		return errReference
	}
	return err
}
