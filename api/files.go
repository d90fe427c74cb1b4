package api

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"fermata/engine/files"
)

// fileRoutes are there if there is a store for files.
func (s *server) fileRoutes(e *echo.Echo, prefix string) {
	if s.options.Files == nil {
		return
	}
	e.POST(prefix+"/upload", s.upload, s.authenticated, s.limit(uploadRequests))
	e.POST(prefix+"/upload/batch", s.uploadBatch, s.authenticated, s.limit(uploadRequests))
	e.GET(prefix+"/files/:session", s.listFiles, s.authenticated, s.limit(listRequests))
	e.GET(prefix+"/sessions/:session/objects/:file", s.statFile, s.authenticated, s.limit(listRequests))
	e.GET(prefix+"/download/:session/:file", s.download, s.authenticated, s.limit(downloadRequests))
	e.DELETE(prefix+"/files/:session/:file", s.deleteFile, s.authenticated)
	e.DELETE(prefix+"/sessions/:session/objects/:file", s.deleteFile, s.authenticated)
}

// A scope is what a client says of whose files it means, in a query or in a form.
type scope struct{ kind, id, version string }

func queryScope(c echo.Context) scope {
	return scope{c.QueryParam("kind"), c.QueryParam("id"), c.QueryParam("version")}
}

// owner returns the owner of the files of a scope. A client reaches its own user's
// files, whatever id it says, and those of its tenant's agents and skills. Everyone
// with a key is a tenant with one user.
func (sc scope) owner(who Principal) (files.Owner, error) {
	// The prefixes keep a key apart from a token's tenant of the same name.
	o := files.Owner{Tenant: "token:" + who.Tenant, Kind: sc.kind, ID: sc.id}
	user := who.User
	if user == "" {
		o.Tenant, user = "key:"+who.ID, who.ID
	}
	switch sc.kind {
	case "", "user":
		o.Kind, o.ID = "user", user
	case "agent", "skill":
		if sc.id == "" {
			return files.Owner{}, scopeID(sc.kind)
		}
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

// fileOf returns the owner and the ids that a request names.
func fileOf(c echo.Context) (owner files.Owner, session, id string, err error) {
	session, id = c.Param("session"), c.Param("file")
	if !files.ValidID(session) || !files.ValidID(id) {
		return files.Owner{}, "", "", errBadRequest
	}
	owner, err = queryScope(c).owner(principal(c))
	return owner, session, id, err
}

func (s *server) listFiles(c echo.Context) error {
	session := c.Param("session")
	if !files.ValidID(session) {
		return errBadRequest
	}
	owner, err := queryScope(c).owner(principal(c))
	if err != nil {
		return err
	}
	found, err := s.options.Files.List(c.Request().Context(), owner, session)
	if err != nil {
		return err
	}
	encode := fileEncoders[c.QueryParam("detail")]
	if encode == nil {
		encode = encodeFileName
	}
	return write(c, http.StatusOK, encodeList(found, encode))
}

func (s *server) statFile(c echo.Context) error {
	owner, session, id, err := fileOf(c)
	if err != nil {
		return err
	}
	f, err := s.options.Files.Stat(c.Request().Context(), owner, session, id)
	if err != nil {
		return err
	}
	return write(c, http.StatusOK, encodeFileObject(f))
}

func (s *server) deleteFile(c echo.Context) error {
	owner, session, id, err := fileOf(c)
	if err != nil {
		return err
	}
	if err := s.options.Files.Delete(c.Request().Context(), owner, session, id); err != nil {
		return err
	}
	var o object
	o.text("message", "File deleted successfully")
	o.text("session_id", session)
	o.text("fileId", id)
	return write(c, http.StatusOK, o.end())
}

// download sends a file as it is. A browser keeps it and shows none of it: its type is
// whatever a program or a client has said.
func (s *server) download(c echo.Context) error {
	owner, session, id, err := fileOf(c)
	if err != nil {
		return err
	}
	content, f, err := s.options.Files.Read(c.Request().Context(), owner, session, id)
	if err != nil {
		return downloadError(err)
	}
	defer func() { _ = content.Close() }()
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, f.Type)
	header.Set(echo.HeaderContentLength, strconv.FormatInt(f.Size, 10))
	// This is a name and no path.
	header.Set(echo.HeaderContentDisposition, "attachment; filename*=UTF-8''"+percent(path.Base(f.Name)))
	c.Response().WriteHeader(http.StatusOK)
	_, err = io.Copy(newMovingWriter(c.Response(), http.NewResponseController(c.Response())), content)
	if err != nil && c.Request().Context().Err() == nil {
		// Too few bytes tell the client; net/http closes the connection after them.
		c.Set(causeKey, fmt.Errorf("send file: %w", err))
	}
	return nil
}

// percent encodes all of a text that RFC 5987 might want encoded.
func percent(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
