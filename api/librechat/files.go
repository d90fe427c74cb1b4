package librechat

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/api/auth"
	"fermata/engine/files"
)

// A scope names the owner of files, in a query or in a form.
type scope struct{ kind, id, version string }

func queryScope(c echo.Context) scope {
	return scope{c.QueryParam("kind"), c.QueryParam("id"), c.QueryParam("version")}
}

// owner returns the owner of the files of a scope. A client reaches the files of its own
// user, whatever id it names, and those of the agents and skills of its tenant. Everyone
// with a key is a tenant with one user.
func (sc scope) owner(who auth.Principal) (files.Owner, error) {
	o := api.OwnerOf(who)
	switch sc.kind {
	case "", "user":
	case "agent", "skill":
		if sc.id == "" {
			return files.Owner{}, api.BadRequestf("id is required for kind: '%s'", sc.kind)
		}
		o.Kind, o.ID = sc.kind, sc.id
	default:
		return files.Owner{}, errScopeKind
	}
	switch {
	case sc.kind != "skill" && sc.version != "":
		return files.Owner{}, errScopeNoVersion
	case sc.kind == "skill":
		version, err := strconv.Atoi(sc.version)
		if err != nil {
			return files.Owner{}, errScopeVersion
		}
		o.Version = version
	}
	return o, nil
}

// sessionFiles are the handlers of requests for stored files.
type sessionFiles struct{ store fileStore }

// readOwner returns the owner of the files that a request wants to read. An operator names their
// principal, and the log tells that it has looked.
func readOwner(c echo.Context) (files.Owner, error) {
	who := api.PrincipalOf(c)
	if who.Operator {
		var known bool
		if who, known = auth.Named(c.QueryParam("principal")); !known {
			return files.Owner{}, errPrincipal
		}
		api.Note(c, slog.String("of", who.ID), slog.String("session", c.Param("session")), slog.String("file", c.Param("file")))
	}
	return queryScope(c).owner(who)
}

// fileOf returns the owner and the ids of the file that a request wants to read.
func fileOf(c echo.Context) (owner files.Owner, session, id string, err error) {
	session, id = c.Param("session"), c.Param("file")
	if !files.ValidID(session) || !files.ValidID(id) {
		return files.Owner{}, "", "", errBadRequest
	}
	owner, err = readOwner(c)
	return owner, session, id, err
}

// list answers with the files of a session.
func (h *sessionFiles) list(c echo.Context) error {
	session := c.Param("session")
	if !files.ValidID(session) {
		return errBadRequest
	}
	owner, err := readOwner(c)
	if err != nil {
		return err
	}
	stored, err := h.store.List(c.Request().Context(), owner, session)
	if err != nil {
		return err
	}
	answer := make([]any, len(stored))
	for i, f := range stored {
		answer[i] = inDetail(c.QueryParam("detail"), f)
	}
	return api.Answer(c, http.StatusOK, answer)
}

// stat answers with the description of a file.
func (h *sessionFiles) stat(c echo.Context) error {
	owner, session, id, err := fileOf(c)
	if err != nil {
		return err
	}
	f, err := h.store.Stat(c.Request().Context(), owner, session, id)
	if err != nil {
		return err
	}
	return api.Answer(c, http.StatusOK, fileObject{lastModified(f), f.Name, objectName(f), f.Size, f.ETag, f.Type, f.ReadOnly})
}

// remove deletes a file.
func (h *sessionFiles) remove(c echo.Context) error {
	owner, session, id, err := fileOf(c)
	if err != nil {
		return err
	}
	if err := h.store.Delete(c.Request().Context(), owner, session, id); err != nil {
		return err
	}
	return api.Answer(c, http.StatusOK, deletedAnswer{"File deleted successfully", session, id})
}
