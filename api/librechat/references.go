package librechat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/api/auth"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/filename"
	"fermata/engine/files"
)

// reservedName is the name of a file that other implementations keep between the runs of a program
// with tools.
const reservedName = "_ptc_history.json"

var resourcePattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// wantedFiles are the files that a request wants its program to be given.
type wantedFiles struct {
	// references name the files, in the order of the request.
	references []files.Reference
	// contents are those of the files that the request itself contains, by the index of their
	// references. Of these references only the names count.
	contents map[int][]byte
}

// stored returns the references to stored files.
func (w wantedFiles) stored() []files.Reference {
	if len(w.contents) == 0 {
		return w.references
	}
	var list []files.Reference
	for i, r := range w.references {
		if _, inline := w.contents[i]; !inline {
			list = append(list, r)
		}
	}
	return list
}

// filesOf returns the files that a request wants, checked as far as is possible without looking them
// up. For a program that calls tools some names are reserved.
func (p *programs) filesOf(c echo.Context, list array[fileMembers], callsTools bool) (wantedFiles, error) {
	var wanted wantedFiles
	switch {
	case list.given() && list.kind != jsontext.KindBeginArray:
		return wanted, errFiles
	case list.count > 0 && p.inputs == nil:
		return wanted, errFilesNotTaken
	case list.count > MaxFiles:
		return wanted, api.BadRequestf("Too many files provided (%d). Maximum is %d.", list.count, MaxFiles)
	case list.strays:
		return wanted, api.BadRequestf("files[%d] must be an object: id, session_id and name of a stored file, or name and content of a new one", list.stray)
	}
	wanted.references = make([]files.Reference, len(list.entries))
	for i, members := range list.entries {
		r, err := wanted.entry(i, members, api.PrincipalOf(c))
		r.Name = filename.Composed(r.Name)
		if err == nil && callsTools {
			err = checkReserved(r.Name)
		}
		if err == nil {
			err = checkName(r.Name)
		}
		if err == nil {
			// The content is a copy of a part of the body.
			err = p.bodies.Hold(c, int64(len(wanted.contents[i])))
		}
		if err != nil {
			return wantedFiles{}, err
		}
		wanted.references[i] = r
	}
	return wanted, nil
}

// entry returns the reference of the i-th file, and notes its content if the request contains it.
func (w *wantedFiles) entry(i int, m fileMembers, who auth.Principal) (files.Reference, error) {
	if isNull(m.Content) {
		if !isNull(m.Encoding) {
			return files.Reference{}, api.BadRequestf("files[%d].encoding goes with content, which is missing", i)
		}
		return referenceOf(i, m, who)
	}
	name, content, err := inlineOf(i, m)
	if err != nil {
		return files.Reference{}, err
	}
	if w.contents == nil {
		w.contents = map[int][]byte{}
	}
	w.contents[i] = content
	return files.Reference{Name: name}, nil
}

// orElse returns a member, or if it is null or absent, another one.
func orElse(v, other jsontext.Value) jsontext.Value {
	if isNull(v) {
		return other
	}
	return v
}

// referenceOf returns the i-th file of a request if it is a stored one: a reference by id, or else by
// session and name. It does not check what the name may be.
func referenceOf(i int, m fileMembers, who auth.Principal) (files.Reference, error) {
	var r files.Reference
	var ok bool
	id, name := orElse(m.ID, m.FileID), orElse(m.Name, m.Filename)
	if isNull(id) && isNull(name) {
		return r, api.BadRequestf("files[%d].id is missing", i)
	}
	if r.ID, _ = unquote(id); !isNull(id) && !files.ValidID(r.ID) {
		return r, api.BadRequestf("files[%d].id is invalid", i)
	}
	if r.Name, ok = unquote(name); !ok {
		return r, api.BadRequestf("files[%d].name must be a string", i)
	}
	session, member := m.StorageSession, "storage_session_id"
	if isNull(session) {
		session, member = m.Session, "session_id"
	}
	if isNull(session) {
		return r, api.BadRequestf("files[%d].session_id is missing", i)
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
		if resource == "" && (sc.kind == files.KindAgent || sc.kind == files.KindSkill) {
			return files.Owner{}, api.BadRequestf("files[%d].resource_id is missing: whose file it is, if there is no id", i)
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
	if wrong, ok := errors.AsType[*filename.NameError](filename.Check(name)); ok {
		return api.BadRequest("files[].name " + wrong.Reason)
	}
	return nil
}

// placedStart is where a start gets its files from and leaves them.
type placedStart struct {
	session string
	inputs  []core.InputFile
	staging engine.Staging
	scope   json.RawMessage
}

// place returns the session, the input files and the scope of a start. The input files are those that the
// request wants, or without such those of the session that the request names. If that session belongs
// to another owner, the start silently gets a new one.
func (p *programs) place(ctx context.Context, who auth.Principal, session string, given bool, wanted wantedFiles) (at placedStart, err error) {
	at.session = session
	if p.inputs == nil {
		return at, nil
	}
	user, err := scope{}.owner(who)
	if err != nil {
		return at, err
	}
	foreign := false
	switch {
	case len(wanted.references) > 0:
		if stored := wanted.stored(); len(stored) > 0 {
			if at.inputs, err = p.inputs.Inputs(ctx, stored); err != nil {
				return at, wanted.refusal(err)
			}
		}
		if given {
			foreign, err = p.inputs.Foreign(ctx, user, session)
		}
	case given:
		at.inputs, err = p.inputs.SessionInputs(ctx, user, session)
		if errors.Is(err, files.ErrForeign) {
			foreign, err = true, nil
		}
	}
	if err != nil {
		return at, err
	}
	if foreign {
		at.session = files.NewID()
	}
	if len(wanted.contents) > 0 {
		at.staging = p.inputs.Staging(user, at.session, wanted.references, wanted.contents)
	}
	at.scope, err = files.ScopeOf(user)
	return at, err
}

// refusal returns the answer to a reference of the request that cannot be resolved. It names a file that is gone from
// the client's own session.
func (w wantedFiles) refusal(err error) error {
	gone, ok := errors.AsType[*files.GoneError](err)
	if !ok {
		return referenceError(err)
	}
	index := gone.Index // among those without content
	for i := range w.references {
		if _, inline := w.contents[i]; inline && i <= index {
			index++
		}
	}
	answer := *errReference
	answer.Detail = fmt.Sprintf("files[%d] (%s) does not exist any more: it was deleted, or has expired; upload it again", index, gone.Name)
	return &answer
}

// referenceError returns the answer to a reference to a file that does not exist, or does not belong
// to the client, and to a file whose content could not be stored.
func referenceError(err error) error {
	if content, ok := errors.AsType[*files.ContentError](err); ok {
		return contentError(content)
	}
	if errors.Is(err, files.ErrNotFound) || errors.Is(err, files.ErrForeign) {
		return errReference
	}
	return err
}
